//! Deletions that must happen: repeated until the znode, or its session, is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Link;
use super::lease::Proof;
use super::multi::culprit;
use super::unconfirmed::{GuaranteedDelete, How};
use crate::error::Code;
use crate::logging::log;
use crate::raw::{RawOp, RawOpResult, Sink, Turn, WatchOn};
use crate::runtime::{BootInstant, Pending};
use crate::znode::Stat;

/// How old a look may be that a deletion follows, and how often it is repeated for that: a link may be
/// slower than this at any time.
const FRESH: Duration = Duration::from_millis(100);
const STALE_LOOKS: u32 = 3;

/// It was refused, or its outcome is not known.
fn end_or_try_later(mut delete: GuaranteedDelete, code: Code, link: Option<&Link>) {
    let Some(link) = link else {
        return delete.end(Err(code));
    };
    // Whatever else went wrong, the znode is still there and has to go.
    if code.is_server_decision() || code.is_session_over() && !code.is_outcome_unknown() {
        let forbidden = (code == Code::NO_AUTH).then(|| Arc::clone(&delete.path));
        delete.end(Err(code));
        if let Some(path) = forbidden {
            link.leave_behind(&path);
        }
        return;
    }
    // A name, even one with a number, may be another's by the time that this is repeated.
    delete.how.look = true;
    let mut unconfirmed = link.unconfirmed.lock();
    if unconfirmed.over {
        drop(unconfirmed);
        return delete.end(Err(Code::SESSION_EXPIRED));
    }
    // The driver looks here on its every turn; waking it now would only try in a loop what a
    // broken connection can't do.
    unconfirmed.deletes.push(delete);
}

impl Link {
    /// Deletes a znode of this session for certain: the deletion is submitted now, and as often as
    /// its outcome is unknown, until the znode or the session is gone. Whether the result is
    /// awaited makes no difference to that.
    ///
    /// Only the znode that was created by the transaction `czxid` is deleted. That costs a look
    /// first; without `look`, the caller vouches that the name can't be another's yet. Gives
    /// `false` if the first deletion found no such znode. `gone` is set once it is certain that the znode is gone,
    /// and kept until the deletion has ended.
    pub(crate) fn guaranteed_delete(
        self: &Arc<Self>,
        path: &Arc<str>,
        czxid: i64,
        look: bool,
        gone: Arc<AtomicBool>,
    ) -> Pending<bool> {
        self.begin_delete(path, czxid, How { look, ..How::default() }, gone)
    }

    /// As [`guaranteed_delete`](Link::guaranteed_delete), without a look, of a znode that nobody else may write to: who watches
    /// its data is told "changed", unless the first deletion fails.
    pub(crate) fn announced_delete(
        self: &Arc<Self>,
        path: &Arc<str>,
        czxid: i64,
        gone: Arc<AtomicBool>,
    ) -> Pending<bool> {
        self.begin_delete(path, czxid, How { announced: true, ..How::default() }, gone)
    }

    /// As [`guaranteed_delete`](Link::guaranteed_delete) with a look, after a request that may have deleted it, unless
    /// this is the `first`.
    pub(super) fn delete_after_all(
        self: &Arc<Self>,
        path: &Arc<str>,
        czxid: i64,
        first: bool,
        gone: Arc<AtomicBool>,
    ) -> Pending<bool> {
        self.begin_delete(path, czxid, How { look: true, announced: false, first }, gone)
    }

    fn begin_delete(
        self: &Arc<Self>,
        path: &Arc<str>,
        czxid: i64,
        how: How,
        gone: Arc<AtomicBool>,
    ) -> Pending<bool> {
        let (send, done) = oneshot::async_channel();
        self.attempt_delete(GuaranteedDelete {
            path: Arc::clone(path),
            czxid,
            how,
            stale_looks: 0,
            done: send,
            gone,
            _duty: self.duties.begin(),
        });
        Pending::reply("delete", Arc::clone(path), done)
    }

    fn attempt_delete(self: &Arc<Self>, delete: GuaranteedDelete) {
        if !delete.how.look {
            return self.delete_for(delete);
        }
        if delete.how.first {
            return self.look_for(delete);
        }
        // An earlier deletion may have succeeded, and the server that we are connected to now may
        // not have heard of it yet: it would show a znode whose name is another's by now.
        let Some(handle) = self.handle.get() else {
            return;
        };
        let link = Arc::downgrade(self);
        let path = Arc::clone(&delete.path);
        let sink: Sink<()> = Box::new(move |reply| match (reply, link.upgrade()) {
            (Ok(()), Some(link)) => link.look_for(delete),
            (Ok(()), None) => delete.end(Err(Code::CLOSING)),
            (Err(code), link) => end_or_try_later(delete, code, link.as_deref()),
        });
        handle.sync(self.terms(Turn::Ahead), &path, sink);
    }

    fn look_for(self: &Arc<Self>, delete: GuaranteedDelete) {
        let Some(handle) = self.handle.get() else {
            return;
        };
        let czxid = delete.czxid;
        let link = Arc::downgrade(self);
        let (path, asked) = (Arc::clone(&delete.path), BootInstant::now());
        // After what its owner has submitted before the release. A repetition can't keep that order.
        let turn = if delete.how.first { Turn::InOrderAlways } else { Turn::Ahead };
        let sink: Sink<(Vec<u8>, Stat)> = Box::new(move |reply| match (reply, link.upgrade()) {
            (Ok((_, stat)), Some(link)) if stat.czxid == czxid => {
                // Between the look and the deletion somebody else's znode can take its place, so
                // the time between them is kept short: also when this process stood still.
                let is_stale = BootInstant::now() - asked > FRESH;
                if is_stale && delete.stale_looks < STALE_LOOKS {
                    let stale_looks = delete.stale_looks + 1;
                    return link.look_for(GuaranteedDelete { stale_looks, ..delete });
                }
                link.delete_for(delete);
            }
            // Somebody else's by now.
            (Ok(_), _) => delete.end(Err(Code::NO_NODE)),
            (Err(code), link) => end_or_try_later(delete, code, link.as_deref()),
        });
        handle.get(self.terms(turn), &path, WatchOn::No, sink);
    }

    fn delete_for(self: &Arc<Self>, mut delete: GuaranteedDelete) {
        let Some(handle) = self.handle.get() else {
            return;
        };
        let link = Arc::downgrade(self);
        let path = Arc::clone(&delete.path);
        let submitted = BootInstant::now();
        // After a look it is the look that was in order, and the sooner after it the better.
        let in_order = delete.how.first && !delete.how.look;
        let turn = if in_order { Turn::InOrderAlways } else { Turn::Ahead };
        let was_announced = std::mem::take(&mut delete.how.announced);
        let answered = move |reply: std::result::Result<(), Code>| {
            let link = link.upgrade();
            if let Some(link) = &link {
                link.learn(&reply, submitted, Proof::Write);
            }
            match reply {
                Ok(()) => delete.end(Ok(())),
                // Not the deletion was refused, but what goes with it.
                Err(code)
                    if was_announced && code.is_server_decision() && code != Code::NO_NODE =>
                {
                    match link {
                        Some(link) => link.delete_for(delete),
                        None => delete.end(Err(code)),
                    }
                }
                Err(code) => {
                    delete.how.first &= !code.is_outcome_unknown();
                    end_or_try_later(delete, code, link.as_deref());
                }
            }
        };
        if !was_announced {
            return handle.delete(self.terms(turn), &path, -1, Box::new(answered));
        }
        let ops = [
            RawOp::Set { path: &path, data: b"", version: -1 },
            RawOp::Delete { path: &path, version: -1 },
        ];
        let sink: Sink<Vec<RawOpResult>> = Box::new(move |reply| {
            answered(reply.and_then(|results| match culprit(&results) {
                Some(at) => Err(results[at].code),
                None => Ok(()),
            }));
        });
        handle.multi(self.terms(turn), &ops, sink);
    }

    /// A znode has to go, and the session may not delete it: it goes with the session.
    fn leave_behind(&self, path: &str) {
        let path = path.to_owned();
        log!(
            WARN,
            path,
            "the session has no DELETE permission on the directory: what is left there blocks others until the session ends"
        );
        self.has_left.store(true, Ordering::Release);
        if let Some(owner) = self.owner.upgrade() {
            owner.wake();
        }
    }

    /// Whether something has to go that only the session's end can delete.
    pub(super) fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Acquire)
    }

    /// Tries the deletions again whose outcome is unknown. Called while connected.
    pub(super) fn retry_deletes(self: &Arc<Self>) {
        let deletes = std::mem::take(&mut self.unconfirmed.lock().deletes);
        for delete in deletes {
            self.attempt_delete(delete);
        }
    }

    /// The session is over: nothing can be tried any more.
    pub(super) fn end_deletes(&self, code: Code) {
        let deletes = {
            let mut unconfirmed = self.unconfirmed.lock();
            unconfirmed.over = true;
            std::mem::take(&mut unconfirmed.deletes)
        };
        for delete in deletes {
            delete.end(Err(code));
        }
    }
}
