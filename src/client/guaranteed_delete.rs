//! Deletions that must happen: repeated until the znode, or its session, is gone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::Link;
use super::lease::Proof;
use super::multi::culprit;
use crate::error::{Code, Error};
use crate::logging::log;
use crate::raw::{Handle, RawOp, Sink, Terms, Turn, WatchOn};
use crate::runtime::{BootInstant, Pending, run_in_place, wake};

/// How old a look may be that a deletion follows, and how often it is repeated for that: a link may be
/// slower than this at any time.
const FRESH: Duration = Duration::from_millis(100);
const STALE_LOOKS: u32 = 3;

type Reply<T> = std::result::Result<T, Code>;

/// How a znode is to be deleted next.
#[derive(Clone, Copy)]
pub(super) struct How {
    /// Whether to look first if it is still the one that its transaction created.
    pub(super) look: bool,
    /// Whether it is written to before, in the same transaction, which tells who watches it that its holder has released it.
    pub(super) announced: bool,
    /// Whether no deletion was tried before: after one, a missing znode is how success looks.
    pub(super) first: bool,
    /// Whether the last request was that look.
    pub(super) looks: bool,
}

impl Default for How {
    fn default() -> How {
        How { look: false, announced: false, first: true, looks: false }
    }
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
    /// its data is notified of a change, unless the first deletion fails.
    pub(crate) fn announced_delete(
        self: &Arc<Self>,
        path: &Arc<str>,
        czxid: i64,
        gone: Arc<AtomicBool>,
    ) -> Pending<bool> {
        self.begin_delete(path, czxid, How { announced: true, ..How::default() }, gone)
    }

    pub(super) fn begin_delete(
        self: &Arc<Self>,
        path: &Arc<str>,
        czxid: i64,
        mut how: How,
        gone: Arc<AtomicBool>,
    ) -> Pending<bool> {
        let (send, done) = oneshot::async_channel();
        let delete = GuaranteedDelete { link: Arc::downgrade(self), path: Arc::clone(path), czxid };
        let duty = self.duties.begin();
        // On the threads that bring the answers: a release wakes no other.
        run_in_place(async move {
            let reply = delete.until_certain(&mut how).await;
            if matches!(reply, Ok(()) | Err(Code::NO_NODE)) {
                gone.store(true, Ordering::Release);
            }
            let result = match reply {
                Ok(()) => Ok(true),
                Err(Code::NO_NODE) => Ok(!how.first),
                Err(code) => {
                    let op = if how.looks && code == Code::NO_AUTH { "get" } else { "delete" };
                    Err(Error::new(op, &delete.path, code))
                }
            };
            wake::send(send, result);
            if let (Err(Code::NO_AUTH), Some(link)) = (reply, delete.link.upgrade()) {
                link.leave_behind(&delete.path);
            }
            drop(duty);
        });
        Pending::reply("delete", Arc::clone(path), done)
    }

    /// Whether one of this session's znodes has to go and can't be deleted.
    pub(crate) fn has_undeletable(&self) -> bool {
        self.has_undeletable.load(Ordering::Acquire)
    }

    /// A znode has to go, and the session may not delete it or look at it: it goes with the session.
    pub(crate) fn leave_behind(&self, path: &str) {
        let path = path.to_owned();
        log!(
            WARN,
            path,
            "the session may not delete this znode (DELETE on its directory) or look at it (READ): it blocks others until the session ends"
        );
        self.has_undeletable.store(true, Ordering::Release);
        if let Some(owner) = self.owner.upgrade() {
            owner.wake();
        }
    }
}

/// A znode that must go.
struct GuaranteedDelete {
    link: Weak<Link>,
    path: Arc<str>,
    czxid: i64,
}

impl GuaranteedDelete {
    /// Ends once the znode is gone for certain, or can't be deleted.
    async fn until_certain(&self, how: &mut How) -> Reply<()> {
        loop {
            let Err(code) = self.attempt(how).await else { return Ok(()) };
            if code.is_server_decision() || code.is_session_over() && !code.is_outcome_unknown() {
                return Err(code);
            }
            // Whatever else went wrong, the znode is still there and has to go. But a name, even one with a
            // number, may be another's by the time that this is repeated.
            how.look = true;
            self.connected_again().await?;
        }
    }

    async fn attempt(&self, how: &mut How) -> Reply<()> {
        if how.look {
            if !how.first {
                // An earlier deletion may have succeeded, and the server that we are connected to now may
                // not have heard of it yet: it would show a znode whose name is another's by now.
                self.sync().await?;
            }
            how.looks = true;
            self.look(how.first).await?;
            how.looks = false;
        }
        // After a look it is the look that was in order, and the sooner after it the better.
        let turn = turn(how.first && !how.look);
        let deleted = if std::mem::take(&mut how.announced) {
            match self.delete_announced(turn).await {
                // Not the deletion was refused, but what goes with it.
                Err(code) if code.is_server_decision() && code != Code::NO_NODE => {
                    self.delete(turn).await
                }
                deleted => deleted,
            }
        } else {
            self.delete(turn).await
        };
        how.first &= !deleted.is_err_and(Code::is_outcome_unknown);
        deleted
    }

    async fn sync(&self) -> Reply<()> {
        let sync = |handle: &dyn Handle, terms, sink| handle.sync(terms, &self.path, sink);
        ask(&self.link, Turn::Ahead, sync).await
    }

    /// `NO_NODE` if it is not there, or somebody else's is by now.
    async fn look(&self, is_first: bool) -> Reply<()> {
        for _ in 0..=STALE_LOOKS {
            let asked = BootInstant::now();
            // After what its owner has submitted before the release. A repetition can't keep that order.
            let (_, stat) = ask(&self.link, turn(is_first), |handle, terms, sink| {
                handle.get(terms, &self.path, WatchOn::No, sink);
            })
            .await?;
            if stat.czxid != self.czxid {
                return Err(Code::NO_NODE);
            }
            // Between the look and the deletion somebody else's znode can take its place, so
            // the time between them is kept short: also when this process stood still.
            if BootInstant::now() - asked <= FRESH {
                break;
            }
        }
        Ok(())
    }

    async fn delete(&self, turn: Turn) -> Reply<()> {
        let delete = |handle: &dyn Handle, terms, sink| handle.delete(terms, &self.path, -1, sink);
        write(&self.link, turn, delete).await
    }

    async fn delete_announced(&self, turn: Turn) -> Reply<()> {
        let results = write(&self.link, turn, |handle, terms, sink| {
            let path = &self.path;
            let ops =
                [RawOp::Set { path, data: b"", version: -1 }, RawOp::Delete { path, version: -1 }];
            handle.multi(terms, &ops, sink);
        })
        .await?;
        culprit(&results).map_or(Ok(()), |at| Err(results[at].code))
    }

    async fn connected_again(&self) -> Reply<()> {
        let link = self.link.upgrade().ok_or(Code::CLOSING)?;
        let connected = link.unconfirmed.connected_again()?;
        drop(link);
        connected.await.unwrap_or(Err(Code::CLOSING))
    }
}

fn turn(is_in_order: bool) -> Turn {
    if is_in_order { Turn::InOrderAlways } else { Turn::Ahead }
}

/// Submits a request; gives its answer.
async fn ask<T: Send + 'static>(
    link: &Weak<Link>,
    turn: Turn,
    submit: impl FnOnce(&dyn Handle, Terms, Sink<T>),
) -> Reply<T> {
    let (send, reply) = oneshot::async_channel();
    {
        let link = link.upgrade().ok_or(Code::CLOSING)?;
        let meant = link.meaning();
        let sink = move |reply: Reply<T>| wake::send(send, reply.map_err(meant));
        submit(&*link.handle, link.terms(turn), Box::new(sink));
    }
    reply.await.unwrap_or(Err(Code::CLOSING))
}

/// As [`ask`], of what a quorum commits, which renews the lease.
pub(super) async fn write<T: Send + 'static>(
    link: &Weak<Link>,
    turn: Turn,
    submit: impl FnOnce(&dyn Handle, Terms, Sink<T>),
) -> Reply<T> {
    let submitted = BootInstant::now();
    let reply = ask(link, turn, submit).await;
    if let Some(link) = link.upgrade() {
        link.lease.learn(&reply, submitted, Proof::Write);
    }
    reply
}
