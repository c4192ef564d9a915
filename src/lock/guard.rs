//! A lock that is held, and how its holder learns that it is no more.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::claim::{self, ClaimPlace, Node};
use super::service::{BoxFuture, Service};
use crate::client::{Client, Latest, Op, Pending, block_on};
use crate::error::{Code, Error, Result};

/// Whether a lock is still held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GuardState {
    /// It is held: no other client can acquire it now.
    Held,
    /// The connection is lost. It is held yet, but may be lost soon: stop writing.
    Suspended,
    /// It is lost: others may hold it. It stays so.
    Lost,
}

/// Why a guard's tenure is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LostReason {
    /// The session expired, or could not be trusted any more by the local clock.
    Session,
    /// Somebody deleted the lock's znode.
    Deleted,
    /// The guard was released or dropped.
    Released,
}

/// One holding of a lock, from the acquire on.
pub(super) struct Tenure {
    pub(super) service: Arc<dyn Service>,
    place: ClaimPlace,
    pub(super) node: Node,
    pub(super) since: Instant,
    end: Latest<Option<LostReason>>,
}

impl Tenure {
    pub(super) fn begin(service: Arc<dyn Service>, place: ClaimPlace, node: Node) -> Arc<Tenure> {
        let since = service.now();
        Arc::new(Tenure { service, place, node, since, end: Latest::new(None) })
    }

    /// Ends the tenure, unless it has ended before.
    pub(super) fn end(&self, reason: LostReason) {
        self.end.update(|end| {
            let first = end.is_none();
            end.get_or_insert(reason);
            first
        });
    }

    /// Why the tenure is over, if it is: looks at the clock.
    pub(super) fn ended(&self) -> Option<LostReason> {
        self.end.get().or_else(|| {
            let lost = !self.node.session.is_trusted();
            lost.then_some(LostReason::Session)
        })
    }

    /// Deletes the znode, unless it is known to be gone: under its name there may be a successor's,
    /// even in a queue, whose numbers begin anew when its directory is made anew.
    fn dispose(&self, lost: Option<LostReason>) -> Option<Pending<bool>> {
        let gone = lost == Some(LostReason::Deleted);
        (!gone).then(|| claim::dispose(&self.node, &self.place))
    }

    /// Ends the tenure by its holder's will. The deletion of the znode is submitted now, and
    /// repeated until it is certain; the future only waits for that.
    pub(super) fn release(self: &Arc<Self>) -> impl Future<Output = Result<()>> + Send + use<> {
        let lost = self.ended();
        self.end(LostReason::Released);
        let gone = self.dispose(lost);
        let tenure = Arc::clone(self);
        async move {
            let gone = match gone {
                Some(gone) => gone.await,
                None => Ok(false),
            };
            let path = &tenure.node.path;
            let error = |code, detail| Err(Error::with_detail("release", path, code, detail));
            match (lost, gone) {
                (Some(LostReason::Deleted), _) | (None, Ok(false)) => {
                    error(Code::NO_NODE, "somebody had deleted the lock's znode")
                }
                (Some(_), _) => {
                    error(Code::SESSION_EXPIRED, "the lock was lost before it was released")
                }
                (None, Err(gone)) => {
                    error(gone.code(), "the session ended before the release was confirmed")
                }
                (None, Ok(true)) => Ok(()),
            }
        }
    }

    async fn over(&self) -> LostReason {
        let session = async {
            self.node.session.lost().await;
            LostReason::Session
        };
        futures_lite::future::or(self.end.wait_for(|end| *end), session).await
    }
}

/// A lock that is held. Dropping it releases the lock in the background.
///
/// # What it promises, and what it can't
/// While [`state`](Guard::state) says `Held`, no other client holds the lock: the guard turns to
/// `Lost` by the local clock before the servers can let anyone else in (given a session timeout of
/// at least two and a half times their `tickTime`, and nobody who deletes its znode by hand). But
/// time passes between a look and the write that follows it. What must be safe even then is done
/// with [`fencing_token`](Guard::fencing_token) or [`check`](Guard::check).
#[must_use = "dropping a guard releases the lock"]
pub struct Guard {
    tenure: Arc<Tenure>,
    /// Empty once released.
    client: Option<Client>,
}

impl Guard {
    pub(super) fn new(tenure: Arc<Tenure>, client: Client) -> Guard {
        Guard { tenure, client: Some(client) }
    }

    /// The client that holds.
    #[cfg(feature = "capi")]
    pub(crate) fn client(&self) -> Client {
        // Empty only while a guard is being released, which takes the guard.
        self.client.clone().unwrap_or_else(|| unreachable!("a guard that was released is gone"))
    }

    /// A number that grows with every acquire of this lock, whoever acquires it: the czxid of the
    /// lock's znode. A store that remembers the largest token it has seen, and refuses smaller
    /// ones, can't be written to by a holder that has lost the lock unnoticed.
    pub fn fencing_token(&self) -> i64 {
        self.tenure.node.czxid
    }

    /// The lock's znode.
    pub fn path(&self) -> &str {
        &self.tenure.node.path
    }

    /// Whether the lock is still held, looked at now by the local clock. Costs no request.
    pub fn state(&self) -> GuardState {
        match self.tenure.ended() {
            Some(_) => GuardState::Lost,
            None if self.tenure.service.is_connected() => GuardState::Held,
            None => GuardState::Suspended,
        }
    }

    /// Whether the lock is lost: see [`state`](Guard::state).
    pub fn is_lost(&self) -> bool {
        self.state() == GuardState::Lost
    }

    /// A signal that comes when the lock is lost. It may outlive the guard.
    ///
    /// A lost session is told before the server can let anyone else in. That somebody deleted the
    /// znode is told only after the fact, and once the lock has been held for about 100 ms.
    pub fn lost(&self) -> LostSignal {
        LostSignal { tenure: Arc::clone(&self.tenure), over: None }
    }

    /// An operation for [`Client::multi`] which fails the transaction when the lock is no longer
    /// held, so that a write inside ZooKeeper happens only while it is: with `NO_NODE` when the
    /// lock's znode is gone, with `SESSION_EXPIRED` when the client is on another session by now.
    ///
    /// The one thing it can't tell is a znode of the same name that another client made after
    /// somebody had deleted ours by hand.
    pub fn check(&self) -> Op {
        let session = self.tenure.node.session.id();
        Op::CheckHeld { path: self.path().to_owned(), session }
    }

    /// Releases the lock. The deletion of its znode is submitted now and repeated until it, or the
    /// session, is gone; waiting is only for the confirmation.
    ///
    /// # Errors
    /// `SESSION_EXPIRED` when the session was lost before the release, `NO_NODE` when somebody had
    /// deleted the znode: others may have held the lock meanwhile.
    ///
    /// # On connection loss
    /// Waits for the next connection, or for the end of the session.
    ///
    /// # Cancellation
    /// The lock is released all the same.
    pub fn release(mut self) -> Pending<()> {
        // Taken out of the guard, so that the session stays open until the end is known.
        let client = self.client.take();
        let released = self.tenure.release();
        Pending::run("release", &self.tenure.node.path, async move {
            let released = released.await;
            drop(client);
            released
        })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.client.is_some() {
            drop(self.tenure.release());
        }
    }
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard")
            .field("path", &self.path())
            .field("fencing_token", &self.fencing_token())
            .field("state", &self.state())
            .finish()
    }
}

/// Comes when a lock is lost: a future and a blocking receiver. It can be looked at, waited for
/// and awaited as often as one likes.
#[must_use = "a signal that nobody waits for tells nobody"]
pub struct LostSignal {
    tenure: Arc<Tenure>,
    over: Option<BoxFuture<LostReason>>,
}

impl LostSignal {
    /// Whether the lock is lost by now, and why. Costs no request.
    pub fn get(&self) -> Option<LostReason> {
        self.tenure.ended()
    }

    /// Blocks this thread until the lock is lost or released.
    pub fn wait(&self) -> LostReason {
        loop {
            if let Some(reason) = block_on(self.tenure.over(), None) {
                return reason;
            }
        }
    }

    /// As [`wait`](LostSignal::wait), but no longer than `timeout`: `None` when it has passed.
    pub fn wait_timeout(&self, timeout: Duration) -> Option<LostReason> {
        block_on(self.tenure.over(), Instant::now().checked_add(timeout))
    }
}

impl Clone for LostSignal {
    fn clone(&self) -> LostSignal {
        LostSignal { tenure: Arc::clone(&self.tenure), over: None }
    }
}

impl Future for LostSignal {
    type Output = LostReason;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<LostReason> {
        let tenure = Arc::clone(&self.tenure);
        let over = self.over.get_or_insert_with(|| Box::pin(async move { tenure.over().await }));
        let reason = over.as_mut().poll(cx);
        if reason.is_ready() {
            self.over = None;
        }
        reason
    }
}

impl std::fmt::Debug for LostSignal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LostSignal").field("lost", &self.get()).finish()
    }
}
