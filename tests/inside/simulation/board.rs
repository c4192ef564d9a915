//! The board on which contenders say what they hold and believe, and are ordered what to do.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;
use std::task::Waker;

use parking_lot::Mutex;

use super::scenario::{Contender, Wait};
use super::server::number;
use super::share::Share;
use crate::lock::{Guard, tenure};
use crate::zookeeper::hold::Tenure;

/// A guard's tenure, beside the guard: of several locks one of them.
pub(super) struct SeenTenure(Arc<dyn tenure::Tenure>);

impl SeenTenure {
    /// All that a guard stands for, in the order of the locks.
    pub(super) fn all_of(guard: &Guard) -> Vec<SeenTenure> {
        let tenure = guard.tenure();
        let members = match tenure.members() {
            [] => std::slice::from_ref(tenure),
            members => members,
        };
        members.iter().map(|member| SeenTenure(Arc::clone(member))).collect()
    }

    /// The number of its claim.
    pub(super) fn number(&self) -> i64 {
        number(&self.node.path, self.node.czxid)
    }
}

impl Deref for SeenTenure {
    type Target = Tenure;

    fn deref(&self) -> &Tenure {
        self.0.as_any().downcast_ref().unwrap()
    }
}

/// What contenders are ordered to do, and what they report.
#[derive(Default)]
pub(super) struct Board {
    pub(super) posts: Vec<Post>,
    /// The largest token of any tenure, by its lock and what it leaves to others.
    pub(super) largest: BTreeMap<(&'static str, Share), i64>,
    pub(super) tenures: usize,
    /// How many acquires ended by their deadline.
    pub(super) late: usize,
    /// The numbers of the claims of all tenures.
    pub(super) tokens: BTreeSet<i64>,
    /// What went wrong first.
    pub(super) violation: Option<String>,
}

/// One contender's place on the board.
pub(super) struct Post {
    pub(super) client: usize,
    pub(super) locks: &'static [&'static str],
    pub(super) share: Share,
    /// An acquire is under way, and how it was asked for.
    pub(super) acquires: Option<Wait>,
    /// How many acquires were begun: claims carry the number.
    pub(super) attempts: usize,
    /// What it holds, if it does: one, or one for each of its locks.
    pub(super) tenures: Vec<SeenTenure>,
    pub(super) done: bool,
    pub(super) told_to_cancel: bool,
    pub(super) told_to_release: bool,
    pub(super) waker: Option<Waker>,
}

impl Post {
    pub(super) fn of(contender: &Contender) -> Post {
        Post {
            client: contender.client,
            locks: contender.locks,
            share: contender.share,
            acquires: None,
            attempts: 0,
            tenures: Vec::new(),
            done: false,
            told_to_cancel: false,
            told_to_release: false,
            waker: None,
        }
    }
}

impl Board {
    pub(super) fn complain(&mut self, what: impl FnOnce() -> String) {
        self.violation.get_or_insert_with(what);
    }

    pub(super) fn tell_to_cancel(&mut self, contender: usize) {
        self.posts[contender].told_to_cancel = true;
        self.wake(contender);
    }

    pub(super) fn tell_to_release(&mut self, contender: usize) {
        self.posts[contender].told_to_release = true;
        self.wake(contender);
    }

    pub(super) fn may_release(&self, contender: usize) -> bool {
        let post = &self.posts[contender];
        !post.tenures.is_empty() && !post.told_to_release && post.acquires.is_none()
    }

    fn wake(&mut self, contender: usize) {
        if let Some(waker) = self.posts[contender].waker.take() {
            waker.wake();
        }
    }
}

pub(super) type SharedBoard = Arc<Mutex<Board>>;
