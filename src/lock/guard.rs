//! A lock that is held, and how its holder learns that it is no more.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_lite::future::Boxed;

use super::claim::Node;
use super::error::LockError;
use super::loss::{GuardState, LostReason};
use super::refusal::{not_released, not_written};
use crate::client::{CheckHeld, Client, ClientInner, Hold, Op, OpResult};
use crate::error::Result;
use crate::process::{Process, inherited};
use crate::runtime::{Latest, Pending, block_on, block_on_until, now, within};

/// One holding of a lock, from the acquire on.
pub(super) struct Tenure {
    pub(super) client: Arc<ClientInner>,
    pub(super) node: Node,
    pub(super) since: Instant,
    hold: Arc<Hold>,
    end: Latest<Option<LostReason>>,
    /// Where it is held: in a child of that it is lost.
    process: Process,
}

impl Tenure {
    pub(super) fn begin(client: Arc<ClientInner>, node: Node, hold: Hold) -> Arc<Tenure> {
        let since = now();
        let (hold, end, process) = (Arc::new(hold), Latest::new(None), Process::this());
        Arc::new(Tenure { client, node, since, hold, end, process })
    }

    /// Ends the tenure, unless it has ended before. Gives why it has.
    pub(super) fn end(&self, reason: LostReason) -> LostReason {
        // The clock before the event: when a process goes on after its session, the first that it
        // reads may be that its znode was deleted.
        let is_trusted = self.node.session.is_trusted();
        let reason = if is_trusted { reason } else { LostReason::Session };
        self.end.update(|end| {
            let first = end.is_none();
            end.get_or_insert(reason);
            first
        });
        self.hold.end();
        self.end.get().unwrap_or(reason)
    }

    /// Why the tenure is over, if it is: looks at the clock.
    pub(super) fn ended(&self) -> Option<LostReason> {
        if !self.process.is_this() {
            return Some(LostReason::Session);
        }
        let ended = self.end.get();
        ended.or_else(|| {
            let lost = !self.node.session.is_trusted();
            lost.then(|| self.end(LostReason::Session))
        })
    }

    /// Ends the tenure by its holder's will. The deletion of the znode is submitted now, and
    /// repeated until it is certain; the future only waits for that, and not once it is lost.
    pub(super) fn release(
        self: &Arc<Self>,
    ) -> impl Future<Output = Result<(), LockError>> + Send + use<> {
        let lost = self.ended().or_else(|| {
            let reason = self.end(LostReason::Released);
            (reason != LostReason::Released).then_some(reason)
        });
        // Unless it is known to be gone: under its name there may be a successor's.
        let gone = (lost != Some(LostReason::Deleted)).then(|| self.node.guaranteed_delete());
        let tenure = Arc::clone(self);
        async move {
            let path = &tenure.node.path;
            let was_lost = |reason| Err(LockError::lost(path, reason));
            let gone = match (lost, gone) {
                (None, Some(gone)) => gone,
                // Nothing was submitted for what is known to be gone.
                (lost, _) => return was_lost(lost.unwrap_or(LostReason::Deleted)),
            };
            let confirmed = async {
                match gone.await {
                    Ok(true) => Ok(()),
                    Ok(false) => was_lost(LostReason::Deleted),
                    Err(error) => Err(not_released(path, error)),
                }
            };
            let session_lost = async {
                tenure.node.session.lost().await;
                was_lost(LostReason::Session)
            };
            futures_lite::future::or(confirmed, session_lost).await
        }
    }

    pub(super) async fn over(&self) -> LostReason {
        if !self.process.is_this() {
            return LostReason::Session;
        }
        let session = async {
            self.node.session.lost().await;
            self.end(LostReason::Session)
        };
        futures_lite::future::or(self.end.wait_for(|end| *end), session).await
    }
}

/// A lock that is held. Dropping it releases the lock in the background.
///
/// # At the end of the process
/// What was released or given up, and is not confirmed yet, is waited for when `main` returns or
/// [`std::process::exit`] is called: for up to a second. What a server has not confirmed by then, and after any
/// other end of the process, stays until the session times out; so does a lock that is still held.
///
/// # What it promises, and what it can't
/// While [`state`](Guard::state) says `Held`, no other client holds the lock: the guard turns to
/// `Lost` by the local clock before the servers can let anyone else in, whatever becomes of leader,
/// network or process. It can't where somebody deletes its znode by hand, or takes its session up
/// ([`ClientOptions::session`](crate::ClientOptions::session)), or where the servers grant sessions
/// of less than two ticks and [`tick_time`](crate::ClientOptions::tick_time) does not say so. And
/// time passes between a look and the write that follows it. What must be safe even then is done
/// with [`fencing_token`](Guard::fencing_token), or inside ZooKeeper with [`multi`](Guard::multi).
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

    #[cfg(test)]
    pub(super) fn tenure(&self) -> &Arc<Tenure> {
        &self.tenure
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
            None if self.tenure.client.is_connected() => GuardState::Held,
            None => GuardState::Suspended,
        }
    }

    /// Whether the lock is lost: see [`state`](Guard::state).
    pub fn is_lost(&self) -> bool {
        self.state() == GuardState::Lost
    }

    /// A signal that comes when the lock is lost. It may outlive the guard.
    ///
    /// A lost session is reported before the server can let anyone else in. That somebody deleted the
    /// znode is reported only after the fact, and once the lock has been held for about 100 ms.
    pub fn lost(&self) -> LostSignal {
        LostSignal { tenure: Arc::clone(&self.tenure), over: None }
    }

    /// An operation for [`Client::multi`] which fails the transaction when the lock is no longer
    /// held, so that a write inside ZooKeeper happens only while it is: with `NO_NODE` when the
    /// lock's znode is gone, with `SESSION_EXPIRED` (and nothing is sent) once the guard was released or
    /// dropped, or is [`Lost`](GuardState::Lost).
    ///
    /// The servers check that there is a znode by the name of the lock's. In a queue that is this
    /// guard's znode or none: no other gets its name. Under [`Strategy::Poll`](crate::Strategy) and
    /// [`Strategy::Watch`](crate::Strategy) it may be another client's, where somebody has deleted ours by hand
    /// and this guard does not know yet; nothing that a server offers tells the two apart.
    pub fn check(&self) -> Op {
        let (path, hold) = (self.path().to_owned(), Arc::clone(&self.tenure.hold));
        Op::CheckHeld(CheckHeld { path, hold })
    }

    /// Executes several operations in one transaction with the [`check`](Guard::check) that the lock is still
    /// held: all of them, or none. An empty list asks the servers whether it is.
    ///
    /// # Errors
    /// [`NotHeld`](LockError::NotHeld) when the lock is lost, or somebody has deleted its znode;
    /// [`OutcomeUnknown`](LockError::OutcomeUnknown) when the servers' answer was lost; otherwise
    /// [`Store`](LockError::Store) with that of [`Client::multi`], where the check counts as operation 0. In each case
    /// but an unknown outcome nothing was done.
    ///
    /// # Cancellation
    /// It is executed all the same.
    pub fn multi(&self, ops: &[Op]) -> Pending<Vec<OpResult>, LockError> {
        let client = match (self.tenure.ended(), &self.client) {
            (None, Some(client)) => client,
            (reason, _) => {
                let reason = reason.unwrap_or(LostReason::Released);
                let error = LockError::not_held(self.path(), reason);
                return Pending::ready_as(LockError::of_pending, Err(error));
            }
        };
        let checked: Vec<Op> = std::iter::once(self.check()).chain(ops.iter().cloned()).collect();
        let written = client.multi(&checked);
        let tenure = Arc::clone(&self.tenure);
        Pending::run_as(
            "multi",
            Arc::clone(&self.tenure.node.path),
            LockError::of_pending,
            async move {
                let written = written.await;
                let mut results = written.map_err(|error| not_written(&tenure.node.path, error))?;
                // That of the check.
                results.remove(0);
                Ok(results)
            },
        )
    }

    /// Releases the lock. The deletion of its znode is submitted now and repeated until it, or the
    /// session, is gone; waiting is only for the confirmation.
    ///
    /// # Errors
    /// [`Lost`](LockError::Lost) when the session was lost before the release was confirmed, or somebody had
    /// deleted the znode: others may have held the lock meanwhile. [`NotPermitted`](LockError::NotPermitted)
    /// when the session may not delete it: see [permissions](crate::Lock#permissions).
    /// [`Closed`](LockError::Closed), or [`OutcomeUnknown`](LockError::OutcomeUnknown), when the client is closed
    /// meanwhile.
    ///
    /// # On connection loss
    /// Waits for the next connection, but not for longer than the session can be trusted: so it
    /// ends within the session timeout. Of a guard that is [`Lost`](GuardState::Lost) it ends at once.
    ///
    /// # Cancellation
    /// The lock is released all the same.
    pub fn release(self) -> Pending<(), LockError> {
        self.release_by(None)
    }

    /// As [`release`](Guard::release), but waits no longer than `timeout`; zero does not wait.
    ///
    /// # Errors
    /// As [`release`](Guard::release), and [`OutcomeUnknown`](LockError::OutcomeUnknown) when no server has
    /// confirmed it in time: it goes on in the background.
    pub fn release_within(self, timeout: Duration) -> Pending<(), LockError> {
        let deadline = now().checked_add(timeout);
        self.release_by(deadline)
    }

    fn release_by(mut self, deadline: Option<Instant>) -> Pending<(), LockError> {
        if !self.tenure.process.is_this() {
            let error = LockError::closed(self.path(), inherited("release", ""));
            return Pending::ready_as(LockError::of_pending, Err(error));
        }
        // Taken out of the guard, so that the session stays open until the end is known.
        let client = self.client.take();
        let released = self.tenure.release();
        let tenure = Arc::clone(&self.tenure);
        Pending::run_as(
            "release",
            Arc::clone(&self.tenure.node.path),
            LockError::of_pending,
            async move {
                let late = || Err(LockError::outcome_unknown(&tenure.node.path, None));
                let released = within(deadline, released, late).await;
                drop(client);
                released
            },
        )
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.tenure.process.is_this() {
            // It is held by the process that has made it, and goes on to be.
            return std::mem::forget((Arc::clone(&self.tenure), self.client.take()));
        }
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
    over: Option<Boxed<LostReason>>,
}

impl LostSignal {
    /// Whether the lock is lost by now, and why. Costs no request.
    pub fn get(&self) -> Option<LostReason> {
        self.tenure.ended()
    }

    /// Blocks this thread until the lock is lost or released.
    pub fn wait(&self) -> LostReason {
        block_on(self.tenure.over())
    }

    /// As [`wait`](LostSignal::wait), but no longer than `timeout`: `None` when it has passed.
    pub fn wait_timeout(&self, timeout: Duration) -> Option<LostReason> {
        block_on_until(Instant::now().checked_add(timeout), self.tenure.over())
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
        if !self.tenure.process.is_this() {
            return Poll::Ready(LostReason::Session);
        }
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
