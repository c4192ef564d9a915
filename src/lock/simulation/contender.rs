//! What a contender does: its errands, one after the other, through the acquire loop of
//! production; and the board on which it says what it believes.

use std::hash::Hash;
use std::sync::Arc;
use std::task::{Poll, Waker};

use futures_lite::future::or;
use parking_lot::Mutex;

use super::scenario::{Errand, LOCK, Scenario};
use super::service::{Shared, SimulatedService};
use crate::client::Hold;
use crate::error::{Code, Error, Result};
use crate::lock::guard::Tenure;
use crate::lock::memory::PathMemory;
use crate::lock::name::Naming;
use crate::lock::sentinel::Sentinel;
use crate::lock::{Spec, acquire, claim::Node};
use crate::znode::Acl;

/// What contenders are told, and what they say.
#[derive(Default)]
pub(super) struct Board {
    pub(super) posts: Vec<Post>,
    /// The largest token of any tenure.
    pub(super) token: i64,
    pub(super) tenures: usize,
    /// What went wrong first.
    pub(super) violation: Option<String>,
}

/// One contender's place on the board.
#[derive(Default)]
pub(super) struct Post {
    pub(super) client: usize,
    /// An acquire is under way.
    pub(super) acquires: bool,
    pub(super) tenure: Option<Arc<Tenure>>,
    pub(super) done: bool,
    told_to_cancel: bool,
    told_to_release: bool,
    waker: Option<Waker>,
}

impl Post {
    pub(super) fn on(client: usize) -> Post {
        Post { client, ..Post::default() }
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
        post.tenure.is_some() && !post.told_to_release
    }

    fn wake(&mut self, contender: usize) {
        if let Some(waker) = self.posts[contender].waker.take() {
            waker.wake();
        }
    }
}

pub(super) type SharedBoard = Arc<Mutex<Board>>;

/// One contender, with all it needs.
struct Party {
    number: usize,
    spec: Arc<Spec>,
    sentinel: Option<Arc<Sentinel>>,
    world: Shared,
    board: SharedBoard,
    /// Whether anything may have gone wrong.
    calm: bool,
    waits: bool,
}

/// Does all errands of a contender.
pub(super) async fn contend(
    world: Shared,
    board: SharedBoard,
    memory: Arc<PathMemory>,
    number: usize,
    of: Arc<Scenario>,
) {
    let contender = &of.contenders[number];
    let service =
        Arc::new(SimulatedService { world: Arc::clone(&world), client: contender.client });
    let spec = Spec {
        service,
        path: LOCK.to_owned(),
        strategy: of.strategy,
        label: String::new(),
        acl: Acl::open().into(),
        naming: Naming::default(),
        memory,
        on_position: None,
    };
    spec.memory.set_contended(of.contended);
    let sentinel = of.sentinel.then(Arc::default);
    let (calm, waits) = (of.faults == 0, contender.waits);
    let spec = Arc::new(spec);
    let party = Party { number, spec, sentinel, world, board, calm, waits };
    for errand in &contender.errands {
        party.run(*errand).await;
    }
    party.board.lock().posts[number].done = true;
}

impl Party {
    async fn run(&self, errand: Errand) {
        let spec = Arc::clone(&self.spec);
        let (once, deadline) = match errand {
            Errand::Acquire => (false, None),
            Errand::Within(limit) => (false, Some(spec.service.now() + limit)),
            Errand::Try => (true, None),
        };
        self.post(|post| post.acquires = true);
        let acquiring = async { Some(acquire::acquire(spec, once, deadline).await) };
        let cancelled = async {
            self.told(|post| post.told_to_cancel).await;
            None
        };
        let outcome = or(acquiring, cancelled).await;
        self.post(|post| {
            post.acquires = false;
            post.told_to_cancel = false;
        });
        match outcome {
            Some(Ok(Some((node, hold)))) => self.hold(node, hold).await,
            Some(Ok(None)) if once => {}
            Some(Err(error)) if deadline.is_some() && error.is_timeout() => {}
            None => {}
            Some(Ok(None)) => self.complain(|| "an acquire that waits gave nothing".to_owned()),
            Some(Err(error)) => self.complain(|| format!("an acquire failed: {error}")),
        }
    }

    async fn hold(&self, node: Node, hold: Hold) {
        let token = node.czxid;
        let tenure = Tenure::begin(Arc::clone(&self.spec.service), node, hold);
        if let Some(sentinel) = &self.sentinel {
            sentinel.add(&tenure);
        }
        let robbed = self.world.lock().robbed.contains(&token);
        {
            let mut board = self.board.lock();
            board.tenures += 1;
            let before = board.token;
            if !robbed && token <= before {
                let number = self.number;
                board.complain(|| {
                    format!("contender {number} holds with token {token}, after {before}")
                });
            }
            board.token = before.max(token);
            board.posts[self.number].tenure = Some(Arc::clone(&tenure));
        }
        self.told(|post| post.told_to_release).await;
        self.post(|post| {
            post.told_to_release = false;
            post.tenure = None;
        });
        let released = tenure.release();
        if self.waits {
            self.check_release(token, released.await);
        }
    }

    fn check_release(&self, token: i64, released: Result<()>) {
        let there = self.world.lock().leader.tree.nodes.values().any(|node| node.czxid == token);
        match released {
            Ok(()) if there => self.complain(|| format!("{token} was released and is there")),
            Ok(()) => {}
            Err(error) if self.calm => self.complain(|| format!("a release failed: {error}")),
            Err(error) if is_told(&error) => {}
            Err(error) => self.complain(|| format!("a release gave up: {error}")),
        }
    }

    fn complain(&self, what: impl FnOnce() -> String) {
        self.board.lock().complain(|| format!("contender {}: {}", self.number, what()));
    }

    fn post<T>(&self, change: impl FnOnce(&mut Post) -> T) -> T {
        change(&mut self.board.lock().posts[self.number])
    }

    async fn told(&self, what: impl Fn(&Post) -> bool) {
        std::future::poll_fn(|context| {
            let mut board = self.board.lock();
            let post = &mut board.posts[self.number];
            if what(post) {
                return Poll::Ready(());
            }
            post.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// What a holder may be told: its session was over, or its znode gone.
fn is_told(error: &Error) -> bool {
    [Code::SESSION_EXPIRED, Code::NO_NODE].contains(&error.code())
}

/// What a contender is told is part of what its client's code was ever told.
pub(super) fn note(world: &Shared, client: usize, what: impl Hash) {
    what.hash(&mut world.lock().clients[client].history);
}
