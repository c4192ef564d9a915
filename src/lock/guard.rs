//! A lock that is held, and how its holder learns that it is no more.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_lite::future::Boxed;

use super::error::LockError;
use super::loss::{GuardState, LostReason};
use super::states::{self, GuardStates};
use super::tenure::{StoreRef, Tenure};
use crate::process::{Process, inherited};
use crate::runtime::{Pending, block_on, block_on_until, now};

/// A lock that is held. Dropping it releases the lock in the background.
///
/// # At the end of the process
/// What was released or given up, and is not confirmed yet, is waited for when `main` returns or
/// [`std::process::exit`] is called: for up to a second. What a server has not confirmed by then, and after any
/// other end of the process, stays until the session times out; so does a lock that is still held.
///
/// # What it promises, and what it can't
/// While [`state`](Guard::state) says `Held`, no other client holds the lock, but those that may beside it (other
/// readers of a [`ReadWriteLock`](crate::ReadWriteLock), permits of a [`Semaphore`](crate::Semaphore)): the guard turns to
/// `Lost` by the local clock before the servers can let anyone else in, whatever becomes of leader,
/// network or process. It can't where somebody deletes its znode by hand, or takes its session up
/// ([`ClientOptions::session`](crate::ClientOptions::session)), or where the servers grant sessions
/// of less than two ticks and [`tick_time`](crate::ClientOptions::tick_time) does not say so. And
/// time passes between a look and the write that follows it. What must be safe even then is done
/// with [`fencing_token`](Guard::fencing_token), or inside ZooKeeper with [`multi`](Guard::multi).
#[must_use = "dropping a guard releases the lock"]
pub struct Guard {
    tenure: Arc<dyn Tenure>,
    /// Empty once released.
    store: Option<StoreRef>,
    asked: Instant,
    since: Instant,
    /// Where it is held: in a child of that it is lost.
    process: Process,
}

impl Guard {
    /// Of a tenure that begins, and was asked for at that time; `store` is kept until it has ended.
    pub(crate) fn new(tenure: Arc<dyn Tenure>, store: StoreRef, asked: Instant) -> Guard {
        Guard { tenure, store: Some(store), asked, since: now(), process: Process::this() }
    }

    /// One that holds in another way, was asked for at that time, and keeps the same store open.
    pub(super) fn of_another_tenure(&self, tenure: Arc<dyn Tenure>, asked: Instant) -> Guard {
        let (store, process) = (self.store.clone(), self.process);
        Guard { tenure, store, asked, since: now(), process }
    }

    pub(super) fn asked(&self) -> Instant {
        self.asked
    }

    pub(crate) fn tenure(&self) -> &Arc<dyn Tenure> {
        &self.tenure
    }

    /// What keeps its store open; empty only while it is being released, which takes the guard.
    pub(crate) fn store(&self) -> Option<&StoreRef> {
        self.store.as_ref()
    }

    /// A number that grows with every acquire of this lock, whoever acquires it: in ZooKeeper the czxid of the
    /// lock's znode. A store that remembers the largest token it has seen, and refuses smaller
    /// ones, can't be written to by a holder that has lost the lock unnoticed.
    pub fn fencing_token(&self) -> i64 {
        self.tenure.token()
    }

    /// How many have held the lock before, of those of this process who take turns with one claim, and so have one
    /// [token](Guard::fencing_token): see [`Lock::local_handoff`](crate::Lock::local_handoff). 0 of all other locks.
    pub fn turn(&self) -> u64 {
        self.tenure.turn()
    }

    /// The path of each lock, and its [token](Guard::fencing_token), in the order of the locks' paths:
    /// one, but of a [`MultiLock`](crate::MultiLock). Where that is of one client, all tokens are the same.
    pub fn tokens(&self) -> Vec<(&str, i64)> {
        match self.tenure.members() {
            [] => vec![(self.path(), self.fencing_token())],
            members => members.iter().map(|member| (member.lock_path(), member.token())).collect(),
        }
    }

    /// How many guards its owner has of this claim, and acquires that are about to give one: see
    /// [`Lock::reentrant`](crate::Lock::reentrant). 1 of all other locks.
    pub fn holds(&self) -> usize {
        self.tenure.holds()
    }

    /// The lock's path, as [`Lock::path`](crate::Lock::path) gives it; of a [`MultiLock`](crate::MultiLock) that of the
    /// first lock.
    pub fn path(&self) -> &str {
        self.tenure.lock_path()
    }

    /// Where the store keeps the claim: in ZooKeeper the path of its znode. It is the `path` of this holder's
    /// [`Contender`](crate::Contender). An upgrade or a downgrade may change it.
    pub fn claim_path(&self) -> Arc<str> {
        self.tenure.claim_path()
    }

    /// How long the acquire took: from the call to the moment when the lock was held.
    pub fn waited(&self) -> Duration {
        self.since.saturating_duration_since(self.asked)
    }

    /// How long ago the lock was acquired. It goes on when the lock is lost.
    pub fn held_for(&self) -> Duration {
        now().saturating_duration_since(self.since)
    }

    /// Whether the lock is still held, looked at now by the local clock. Costs no request.
    pub fn state(&self) -> GuardState {
        self.tenure.state()
    }

    /// Whether the lock is lost: see [`state`](Guard::state).
    pub fn is_lost(&self) -> bool {
        self.state() == GuardState::Lost
    }

    /// How long the lock stays held if no server answers any more; zero once it is lost. Costs no request.
    ///
    /// Each proof that the session is alive extends it. Over a working connection it is between 0.4 and 0.95 of the
    /// session timeout, usually 0.53 to 0.65. Use it if another process must end the work in time, even while this one
    /// stands still: read a clock that continues during sleep (`CLOCK_BOOTTIME`) **before** the call, and add the
    /// result. For a lock within this process ([`LocalStore`](crate::LocalStore)), it is [`Duration::MAX`].
    ///
    /// It does not foresee that another client deletes the lock's znode, or that a server ends the session: see
    /// [`lost`](Guard::lost).
    pub fn remaining(&self) -> Duration {
        self.tenure.remaining()
    }

    /// A signal that comes when the lock is lost. It may outlive the guard.
    ///
    /// A lost session is reported before the server can let anyone else in. That somebody deleted the
    /// znode is reported only after the fact, and once the lock has been held for about 100 ms.
    pub fn lost(&self) -> LostSignal {
        LostSignal { tenure: Arc::clone(&self.tenure), over: None, process: self.process }
    }

    /// Its states, from the present one on. A [`Suspended`](GuardState::Suspended) that came and went between two
    /// looks is left out. It ends after [`Lost`](GuardState::Lost), which also follows a release. It neither holds
    /// the lock nor keeps its store open.
    pub fn states(&self) -> GuardStates {
        states::of(Arc::clone(&self.tenure), self.process)
    }

    /// Releases the lock. The deletion of its znode is submitted now and repeated until it, or the
    /// session, is gone; waiting is only for the confirmation.
    ///
    /// # Errors
    /// [`Lost`](LockError::Lost) when the session was lost before the release was confirmed, or somebody had
    /// deleted the znode: others may have held the lock meanwhile. [`NotPermitted`](LockError::NotPermitted)
    /// when the session may not delete it: see [permissions](crate::Client::lock).
    /// [`Closed`](LockError::Closed), or [`OutcomeUnknown`](LockError::OutcomeUnknown), when the client is closed
    /// meanwhile; [`OutcomeUnknown`](LockError::OutcomeUnknown) when no server has confirmed it
    /// [within](Pending::within) a limit: it goes on in the background.
    ///
    /// # On connection loss
    /// Waits for the next connection, but not for longer than the session can be trusted: so it
    /// ends within the session timeout. Of a guard that is [`Lost`](GuardState::Lost) it ends at once.
    ///
    /// # Cancellation
    /// The lock is released all the same.
    pub fn release(mut self) -> Pending<(), LockError> {
        // Taken out of the guard, which is then dropped.
        let store = if self.process.is_this() { self.store.take() } else { None };
        self.release_with(store)
    }

    /// As [`release`](Guard::release), for whoever has the guard yet. A second release finds it lost.
    pub(crate) fn release_now(&self) -> Pending<(), LockError> {
        if self.lost().get() == Some(LostReason::Released) {
            let lost = LockError::lost(self.path(), LostReason::Released);
            return Pending::ready_as(LockError::of_pending, Err(lost));
        }
        self.release_with(self.store.clone())
    }

    fn release_with(&self, store: Option<StoreRef>) -> Pending<(), LockError> {
        if !self.process.is_this() {
            let error = LockError::closed(self.path(), inherited("release", ""));
            return Pending::ready_as(LockError::of_pending, Err(error));
        }
        Arc::clone(&self.tenure).release(store)
    }

    /// Releases the lock in the background, for whoever has the guard yet. A second release does nothing.
    pub(crate) fn let_go(&self) {
        if self.process.is_this() {
            Arc::clone(&self.tenure).let_go();
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.process.is_this() {
            // It is held by the process that has made it, and goes on to be.
            return std::mem::forget((Arc::clone(&self.tenure), self.store.take()));
        }
        if self.store.is_some() {
            self.let_go();
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
    tenure: Arc<dyn Tenure>,
    over: Option<Boxed<LostReason>>,
    process: Process,
}

impl LostSignal {
    /// Whether the lock is lost by now, and why. Costs no request.
    pub fn get(&self) -> Option<LostReason> {
        self.tenure.ended()
    }

    /// Blocks this thread until the lock is lost or released.
    pub fn wait(&self) -> LostReason {
        block_on(self.clone())
    }

    /// As [`wait`](LostSignal::wait), but no longer than `timeout`: `None` when it has passed.
    pub fn wait_timeout(&self, timeout: Duration) -> Option<LostReason> {
        block_on_until(Instant::now().checked_add(timeout), self.clone())
    }
}

impl Clone for LostSignal {
    fn clone(&self) -> LostSignal {
        LostSignal { tenure: Arc::clone(&self.tenure), over: None, process: self.process }
    }
}

impl Future for LostSignal {
    type Output = LostReason;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<LostReason> {
        if !self.process.is_this() {
            return Poll::Ready(LostReason::Session);
        }
        let tenure = Arc::clone(&self.tenure);
        let reason = self.over.get_or_insert_with(|| tenure.over()).as_mut().poll(cx);
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
