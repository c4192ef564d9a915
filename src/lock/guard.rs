//! A lock that is held, and how its holder learns that it is no more.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_lite::future::Boxed;

use super::error::LockError;
use super::loss::{GuardState, LostReason};
use super::op::ready;
use super::states::{self, GuardStates};
use super::tenure::{StoreRef, Tenure};
use crate::process::{Process, inherited};
use crate::runtime::{Pending, block_on, block_on_until, now};

/// A lock that is held. Dropping the guard releases the lock in the background.
///
/// # At the end of the process
/// When `main` returns or [`std::process::exit`] is called, the process waits up to a second for unconfirmed releases
/// and cancelled acquires. Claims that are unconfirmed after that stay until the session times out. So does a lock that
/// is still held, and everything after any other end of the process.
///
/// # What it promises, and what it can't
/// While [`state`](Guard::state) is `Held`, no other client holds the lock. Other readers of a
/// [`ReadWriteLock`](crate::ReadWriteLock) and other permits of a [`Semaphore`](crate::Semaphore) may share it. The
/// guard becomes `Lost` by the local clock before the servers can admit another client, whatever fails: leader, network
/// or process.
///
/// It cannot promise this if
/// - another client deletes the znode by hand,
/// - another client takes over the session ([`ClientOptions::session`](crate::ClientOptions::session)), or
/// - the servers grant sessions of less than two ticks, and [`tick_time`](crate::ClientOptions::tick_time) does not say
///   so.
///
/// Time also passes between a check and the write that follows. To be safe even then, send the
/// [`fencing_token`](Guard::fencing_token) with the write, or write inside ZooKeeper with [`multi`](Guard::multi).
#[must_use = "dropping a guard releases the lock"]
pub struct Guard {
    tenure: Arc<dyn Tenure>,
    /// Empty once released.
    store: Option<StoreRef>,
    asked: Instant,
    since: Instant,
    /// The process that holds. In a forked child the lock is lost.
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

    /// The holding, in the process that made it. In a child, nobody unlocks what another thread had locked at the fork.
    pub(super) fn here(&self) -> Option<&(dyn Tenure + 'static)> {
        self.process.is_this().then_some(&*self.tenure)
    }

    /// Why it is lost, if it is.
    pub(crate) fn ended(&self) -> Option<LostReason> {
        self.here().map_or(Some(LostReason::Session), Tenure::ended)
    }

    /// The reference that keeps the store open; `None` only during the release, which takes the guard.
    pub(crate) fn store(&self) -> Option<&StoreRef> {
        self.store.as_ref()
    }

    /// A number that grows with every acquire of this lock, by any client: in ZooKeeper the czxid of the lock's znode.
    /// If a store remembers the largest token and rejects smaller ones, a holder that has lost the lock cannot write to
    /// it. Another program can ask whether the hold still stands: then the lock's
    /// [`contenders`](crate::Lock::contenders) have one with this token and a `held_since`. It may end right after, so
    /// that is no substitute for the comparison.
    pub fn fencing_token(&self) -> i64 {
        self.tenure.token()
    }

    /// How many holders of this process had the lock before this one under the same claim and
    /// [token](Guard::fencing_token): see [`Lock::local_handoff`](crate::Lock::local_handoff). 0 for all other locks.
    pub fn turn(&self) -> u64 {
        self.here().map_or(0, Tenure::turn)
    }

    /// The path and the [token](Guard::fencing_token) of each lock, in the order of the paths. There is one entry,
    /// except for a [`MultiLock`](crate::MultiLock). Queues that it took in one transaction have the same token.
    pub fn tokens(&self) -> Vec<(&str, i64)> {
        match self.tenure.members() {
            [] => vec![(self.path(), self.fencing_token())],
            members => members.iter().map(|member| (member.lock_path(), member.token())).collect(),
        }
    }

    /// How many guards the owner has of this claim, pending acquires included: see
    /// [`Lock::reentrant`](crate::Lock::reentrant). 1 for all other locks.
    pub fn holds(&self) -> usize {
        self.here().map_or(0, Tenure::holds)
    }

    /// The lock's path, as in [`Lock::path`](crate::Lock::path). For a [`MultiLock`](crate::MultiLock), the path of the
    /// first lock.
    pub fn path(&self) -> &str {
        self.tenure.lock_path()
    }

    /// Where the store keeps the claim: in ZooKeeper the path of its znode. It equals the `path` of this holder's
    /// [`Contender`](crate::Contender). An upgrade or a downgrade may change it.
    pub fn claim_path(&self) -> Arc<str> {
        self.tenure.claim_path()
    }

    /// How long the acquire took: from the call to the moment when the lock was held.
    pub fn waited(&self) -> Duration {
        self.since.saturating_duration_since(self.asked)
    }

    /// How long ago the lock was acquired. It keeps growing after a loss.
    pub fn held_for(&self) -> Duration {
        now().saturating_duration_since(self.since)
    }

    /// Whether the lock is still held, by the local clock at this moment. Costs no request.
    pub fn state(&self) -> GuardState {
        self.here().map_or(GuardState::Lost, Tenure::state)
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
        self.here().map_or(Duration::ZERO, Tenure::remaining)
    }

    /// A signal that the lock is lost. It may outlive the guard.
    ///
    /// A lost session is reported before the servers can admit another client. A deletion of the znode by another
    /// client is reported only afterwards, and only once the lock has been held for about 100 ms.
    pub fn lost(&self) -> LostSignal {
        LostSignal { tenure: Arc::clone(&self.tenure), over: None, process: self.process }
    }

    /// The states of the guard as they change, the present one first. A [`Suspended`](GuardState::Suspended) that comes
    /// and goes between two looks is left out. The stream ends after [`Lost`](GuardState::Lost), which also follows a
    /// release. It neither holds the lock nor keeps its store open.
    pub fn states(&self) -> GuardStates {
        states::of(Arc::clone(&self.tenure), self.process)
    }

    /// Releases the lock. The deletion of its znode is submitted before this returns, and repeated until the znode or
    /// the session is gone. Waiting for the result only waits for the confirmation.
    ///
    /// # Errors
    /// - [`Lost`](LockError::Lost): the session was lost before the release was confirmed, or another client broke the
    ///   hold or deleted the znode. Others may have held the lock meanwhile.
    /// - [`NotPermitted`](LockError::NotPermitted): the session may not delete the znode: see
    ///   [permissions](crate::Client::lock).
    /// - [`OutcomeUnknown`](LockError::OutcomeUnknown): no server confirmed the release [within](Pending::within) the
    ///   limit. It continues in the background.
    /// - [`Closed`](LockError::Closed) or [`OutcomeUnknown`](LockError::OutcomeUnknown): the client was closed
    ///   meanwhile.
    ///
    /// # On connection loss
    /// It waits for the next connection, for as long as the session can be trusted. So it ends within the session
    /// timeout. If the guard is [`Lost`](GuardState::Lost), it ends at once.
    ///
    /// # Cancel safety
    /// Dropping it does not stop the release, which continues in the background.
    pub fn release(mut self) -> Pending<(), LockError> {
        // Taken out of the guard, which is then dropped.
        let store = if self.process.is_this() { self.store.take() } else { None };
        self.release_with(store)
    }

    /// As [`release`](Guard::release), while others share the guard. A second release finds it lost.
    pub(crate) fn release_now(&self) -> Pending<(), LockError> {
        if self.ended() == Some(LostReason::Released) {
            let lost = LockError::lost(self.path(), LostReason::Released);
            return ready(Err(lost));
        }
        self.release_with(self.store.clone())
    }

    fn release_with(&self, store: Option<StoreRef>) -> Pending<(), LockError> {
        if !self.process.is_this() {
            let error = LockError::closed(self.path(), inherited("release", ""));
            return ready(Err(error));
        }
        Arc::clone(&self.tenure).release(store)
    }

    /// Releases the lock in the background, while others share the guard. A second release does nothing.
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

/// A signal that a lock is lost: a future and a blocking receiver in one. It can be checked, waited for and awaited any
/// number of times.
#[must_use = "a signal that nobody waits for tells nobody"]
pub struct LostSignal {
    tenure: Arc<dyn Tenure>,
    over: Option<Boxed<LostReason>>,
    process: Process,
}

impl LostSignal {
    /// Why the lock is lost, or `None` while it is held. Costs no request.
    pub fn get(&self) -> Option<LostReason> {
        if self.process.is_this() { self.tenure.ended() } else { Some(LostReason::Session) }
    }

    /// Blocks this thread until the lock is lost or released.
    pub fn wait(&self) -> LostReason {
        block_on(self.clone())
    }

    /// As [`wait`](LostSignal::wait), for at most `timeout`. `None` means that the time has passed.
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
