//! Receipts: what tells whether a transaction was executed when its reply is lost.
//!
//! A receipt is an ephemeral znode without data under [`DIRECTORY`]. Each transaction that must not
//! be repeated blindly begins with an operation on one: it creates the receipt, or replaces the
//! data of one that is at version `n`, which makes it `n + 1`. Such a transaction can be executed
//! only once, however often it is sent. So after an unknown outcome it is simply sent again: either
//! it is executed now, or the receipt refuses it, which proves that it was executed before. That
//! holds also when the first copy is still in flight somewhere and comes later than the second.
//!
//! A transaction of the receipt alone asks only how it ended: it is refused if the one before was
//! executed, and otherwise uses up the receipt, so that no copy can be executed any more.
//!
//! A receipt is used by one operation at a time, and kept for the next one of its session. If an operation is cancelled
//! while its transaction is in flight, it also returns its receipt, but only once the outcome is known (`transaction.rs`).
//! A session keeps [`KEPT`] receipts that are not in use, and deletes the others. They die with the session. The directory
//! is a container, which the servers remove when it is empty.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use uuid::Uuid;

use crate::client::{Link, Op, packet};
use crate::error::{Code, Error};
use crate::znode::CreateMode;

/// The directory of receipts. It is not a queue, nor the path of a lock.
pub(super) const DIRECTORY: &str = "/zklock/receipts";

/// How many receipts that are not in use a session keeps.
const KEPT: usize = 64;

/// One receipt, in the hands of one operation.
pub(super) struct Receipt {
    path: String,
    /// The version of its data; `None` before it exists.
    version: Option<i32>,
    /// Whether the reply to its creation was lost. A copy of that request may arrive later, so the receipt must stay: it
    /// is what refuses the copy.
    created_in_doubt: bool,
    /// The number of executed transactions of the receipt alone. It is also the receipt's data, for readers that count
    /// changes by the receipt's version.
    alone: u32,
}

/// The meaning of a refused transaction for its receipt.
pub(super) enum Word {
    /// This transaction, or one by somebody else who changed the receipt, was executed before.
    Used,
    /// The directory for it is missing. The transaction was not executed.
    NoDirectory,
    /// Somebody has deleted it.
    Deleted,
    /// There can't be one now: access control, a quota or the sort of the session forbids it.
    Forbidden,
}

/// The unused receipts of a session.
#[derive(Default)]
struct Pool {
    free: Vec<Receipt>,
    refusals: Option<Refusals>,
}

/// That the session could have no receipt the last few times. It may be otherwise by now: identities
/// can be added to a session (on a handle of the program's, without our hearing of it), and access
/// control can be changed.
struct Refusals {
    in_a_row: u32,
    /// The latest.
    at: Instant,
    /// How many transactions have done without a receipt since.
    without: u32,
}

/// How long a session does without receipts at most, before it tries again.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);

impl Refusals {
    /// Whether to try again: for the next transaction after the first refusal, then after ever more
    /// of them, because a try costs some round trips.
    fn are_outdated(&self) -> bool {
        let pause = 1_u32.checked_shl(self.in_a_row - 1).map_or(u32::MAX, |pause| pause - 1);
        self.without >= pause || self.at.elapsed() >= TRY_AGAIN_AFTER
    }
}

/// That of a session.
fn pool<T>(link: &Link, with: impl FnOnce(&mut Pool) -> T) -> T {
    let pool = link.registry.of::<Mutex<Pool>>(DIRECTORY);
    let mut pool = pool.lock();
    with(&mut pool)
}

/// A receipt of that session; `None` where there can be none, as far as is known.
pub(super) fn take(link: &Link) -> Option<Receipt> {
    pool(link, |pool| {
        if let Some(refusals) = pool.refusals.as_mut().filter(|refusals| !refusals.are_outdated()) {
            refusals.without += 1;
            return None;
        }
        Some(pool.free.pop().unwrap_or_else(|| Receipt::new(Uuid::new_v4())))
    })
}

/// Notes that the session could have no receipt.
pub(super) fn refused(link: &Link) {
    pool(link, |pool| {
        let before = pool.refusals.as_ref().map_or(0, |refusals| refusals.in_a_row);
        let in_a_row = before.saturating_add(1);
        pool.refusals = Some(Refusals { in_a_row, at: Instant::now(), without: 0 });
    });
}

/// Forgets that the session could have none: it is tried again for the next transaction.
pub(super) fn forget_refusals(link: &Link) {
    pool(link, |pool| pool.refusals = None);
}

/// The most bytes that a receipt adds to a transaction.
pub(super) fn len() -> usize {
    let receipt = Receipt::new(Uuid::nil());
    packet::together([&receipt.op(false)]) - packet::together([])
}

impl Receipt {
    fn new(id: Uuid) -> Receipt {
        let path = format!("{DIRECTORY}/{id}");
        Receipt { path, version: None, created_in_doubt: false, alone: 0 }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The first operation of a transaction, which may be the only one.
    pub(super) fn op(&self, is_alone: bool) -> Op {
        let alone = self.alone + u32::from(is_alone);
        let data = if alone == 0 { String::new() } else { alone.to_string() };
        match self.version {
            None => Op::create(&self.path, data, CreateMode::Ephemeral),
            version => Op::Set { path: self.path.clone(), data: data.into(), version },
        }
    }

    /// The meaning of a refused transaction, if the receipt, its first operation, was refused.
    pub(super) fn word(&self, error: &Error) -> Option<Word> {
        if error.failed_op_index() != Some(0) {
            // A local session owns no znodes. Which of the two codes it gets depends on the rest of the transaction.
            let is_of_local =
                matches!(error.code(), Code::EPHEMERAL_ON_LOCAL_SESSION | Code::SESSION_EXPIRED);
            return (is_of_local && !self.exists()).then_some(Word::Forbidden);
        }
        match (error.code(), self.version) {
            (Code::NODE_EXISTS, None) | (Code::BAD_VERSION, Some(_)) => Some(Word::Used),
            (Code::NO_NODE, None) => Some(Word::NoDirectory),
            (Code::NO_NODE, Some(_)) => Some(Word::Deleted),
            (Code::NO_AUTH | Code::NO_CHILDREN_FOR_EPHEMERALS | Code::QUOTA_EXCEEDED, _) => {
                Some(Word::Forbidden)
            }
            _ => None,
        }
    }

    /// The transaction was executed.
    pub(super) fn stamp(&mut self, was_alone: bool) {
        self.alone += u32::from(was_alone);
        self.version = Some(self.version.map_or(0, |version| version.wrapping_add(1)));
    }

    /// The reply to a transaction was lost.
    pub(super) fn doubt(&mut self) {
        self.created_in_doubt |= self.version.is_none();
    }

    /// Back for the next operation, after the servers took it for this one. Nothing may be in flight that names its
    /// present version. Gives it back where it is to be deleted.
    pub(super) fn put_back(self, link: &Link) -> Option<Receipt> {
        // The version after the largest would come to be -1, which means any version.
        let is_used_up = self.version == Some(i32::MAX);
        pool(link, |pool| {
            pool.refusals = None;
            if !is_used_up && (self.created_in_doubt || pool.free.len() < KEPT) {
                pool.free.push(self);
                return None;
            }
            self.exists().then_some(self)
        })
    }

    /// It could not be deleted, so it is used again.
    pub(super) fn keep(self, link: &Link) {
        if self.exists() {
            pool(link, |pool| pool.free.push(self));
        }
    }

    /// Somebody else has changed or deleted it.
    pub(super) fn is_not_ours(&mut self) {
        self.version = None;
    }

    /// Whether the servers have it, and it can be used again.
    pub(super) fn exists(&self) -> bool {
        self.version.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_refusals_it_is_tried_again_ever_more_seldom_but_once_a_second() {
        let refused =
            |in_a_row, ago, without| Refusals { in_a_row, at: Instant::now() - ago, without };
        assert!(refused(1, Duration::ZERO, 0).are_outdated());
        assert!(!refused(3, Duration::ZERO, 2).are_outdated());
        assert!(refused(3, Duration::ZERO, 3).are_outdated());
        assert!(refused(40, TRY_AGAIN_AFTER, 0).are_outdated());
    }
}
