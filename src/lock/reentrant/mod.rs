//! Re-entrant locks: an owner that holds acquires again at once.

mod joint;
mod owner;

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use self::joint::Joint;
pub(crate) use self::joint::Joints;
pub use self::owner::Owner;
use super::Lock;
use super::ahead::Ahead;
use super::caller::Caller;
use super::contender::Contender;
use super::error::LockError;
use super::guard::Guard;
use super::store::{Change, LockView, StoredLock};
use super::strategy::Strategy;
use crate::lock::op::{LockOp, ready};
use crate::process::Process;
use crate::runtime::{Pending, now};

/// A lock that its holder can acquire again, for functions that need it and call each other.
///
/// ```
/// use zklock::{LockError, Owner, ReentrantLock, LocalStore};
///
/// fn transfer(lock: &ReentrantLock, owner: &Owner) -> Result<(), LockError> {
///     let guard = lock.acquire(owner).wait()?;
///     book(lock, owner)?; // acquires again, at once
///     assert_eq!(guard.holds(), 1);
///     guard.release().wait() // the last one: now others may hold it
/// }
///
/// fn book(lock: &ReentrantLock, owner: &Owner) -> Result<(), LockError> {
///     let guard = lock.acquire(owner).wait()?;
///     assert_eq!(guard.holds(), 2);
///     guard.release().wait()
/// }
///
/// # fn main() -> Result<(), LockError> {
/// let lock = LocalStore::new().lock("/locks/account").reentrant();
/// transfer(&lock, &Owner::this_thread())?; // or an `Owner::new()` for each task
/// # Ok(()) }
/// ```
///
/// All guards of an owner share one claim: they have one [token](Guard::fencing_token) and are lost together, and each
/// reports the loss. [`Guard::holds`] counts them. The last one that is released or dropped releases the claim; the
/// release of any other returns at once. Different owners exclude each other, also in one process.
///
/// Only clones of one [`ReentrantLock`] know each other's owners. Call [`Lock::reentrant`] once for each path: an owner
/// that holds one of two such locks waits for itself at the other.
#[derive(Clone)]
pub struct ReentrantLock {
    stored: Arc<dyn StoredLock>,
    joints: Arc<Joints>,
    process: Process,
}

impl Lock {
    /// The same lock, which an [`Owner`] that holds it can acquire again at once: see [`ReentrantLock`]. Choose
    /// strategy and ACL before. A lock that several may hold (of readers, permits of a semaphore) is held once by each
    /// owner.
    pub fn reentrant(self) -> ReentrantLock {
        self.reentrant_by(Arc::default())
    }

    /// The same lock, re-entrant for the owners of these claims.
    pub(crate) fn reentrant_by(self, joints: Arc<Joints>) -> ReentrantLock {
        ReentrantLock { stored: self.shared(), joints, process: Process::this() }
    }
}

impl ReentrantLock {
    /// The lock's path.
    pub fn path(&self) -> &str {
        self.stored.path()
    }

    /// The lock as seen by one owner, for functions that take a [`Lock`]. Its acquires are that owner's.
    pub fn owned_by(&self, owner: &Owner) -> Lock {
        let ReentrantLock { stored, joints, process } = self.clone();
        Lock::new(Arc::new(Owned { stored, joints, owner: owner.clone(), process }))
    }

    /// Acquires the lock for an owner. If the owner holds it, this costs no request. If another acquire of that owner
    /// is in flight, for example in another thread, both share its claim and hold together.
    ///
    /// # Errors
    /// [`NotHeld`](LockError::NotHeld) if the owner's claim is lost and some of its guards are left: drop them before
    /// the owner acquires again. Otherwise as [`Lock::acquire`].
    ///
    /// # On connection loss
    /// If the owner holds the lock, it checks the local clock, as [`Guard::state`] does. The guard may then be
    /// [`Suspended`](crate::GuardState::Suspended). Otherwise as [`Lock`](Lock#on-connection-loss).
    ///
    /// # Cancel safety
    /// Dropping it does not affect the owner's other acquires. When the last of them is dropped, their claim is
    /// deleted.
    pub fn acquire(&self, owner: &Owner) -> Pending<Guard, LockError> {
        self.owned_by(owner).acquire()
    }

    /// Acquires the lock for an owner that holds it, or if no other contender is ahead: no holder and, in a queue, no
    /// waiter. Another acquire of that owner in flight counts as ahead.
    ///
    /// Cancel safety: as [`acquire`](ReentrantLock::acquire).
    ///
    /// # Errors
    /// As [`acquire`](ReentrantLock::acquire). [`TimedOut`](LockError::TimedOut) means that no server answered within
    /// the client's operation timeout.
    pub fn try_acquire(&self, owner: &Owner) -> Pending<Option<Guard>, LockError> {
        self.owned_by(owner).try_acquire()
    }
}

impl std::fmt::Debug for ReentrantLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReentrantLock").field("path", &self.path()).finish_non_exhaustive()
    }
}

#[derive(Clone)]
struct Owned {
    stored: Arc<dyn StoredLock>,
    joints: Arc<Joints>,
    owner: Owner,
    process: Process,
}

impl Owned {
    async fn acquire_jointly(&self, ahead: &Ahead, asked: Instant) -> Result<Guard, LockError> {
        let caller = Caller::present();
        loop {
            let acquire = || Joint::acquire(&self.stored);
            let joint = self.joints.join(&self.owner, || caller.acts(acquire));
            ahead.is_of(joint.late.clone());
            let is_try = joint.is_try;
            match joint.part(self.path(), asked).await {
                Ok(Ok(guard)) => return Ok(guard),
                Err(error) if error.is_lost() || !is_try => return Err(error),
                // What was in flight was only a try, and came to nothing.
                Ok(Err(_)) | Err(_) => {}
            }
        }
    }
}

impl StoredLock for Owned {
    fn path(&self) -> &str {
        self.stored.path()
    }

    fn strategy(&self) -> Strategy {
        self.stored.strategy()
    }

    fn with(&self, change: Change) -> Arc<dyn StoredLock> {
        let mut changed = self.clone();
        if !matches!(change, Change::Label(_)) {
            // It is contended for otherwise, so what is held is another lock.
            changed.joints = Arc::default();
        }
        changed.stored = self.stored.with(change);
        Arc::new(changed)
    }

    fn acquire(self: Arc<Self>) -> Pending<Guard, LockError> {
        if !self.process.is_this() {
            // Somebody may have been changing what there is.
            return Arc::clone(&self.stored).acquire();
        }
        let path: Arc<str> = self.path().into();
        let ahead = Arc::new(Ahead::default());
        let (late, asked) = (Arc::clone(&ahead), now());
        LockOp::Acquire
            .run(path, async move { self.acquire_jointly(&late, asked).await })
            .when_late(ahead)
    }

    fn try_acquire(self: Arc<Self>) -> Pending<Result<Guard, Option<Contender>>, LockError> {
        if !self.process.is_this() {
            return Arc::clone(&self.stored).try_acquire();
        }
        let joint = self.joints.join(&self.owner, || Joint::try_acquire(&self.stored));
        if joint.is_waiting() {
            return ready(Ok(Err(None)));
        }
        let (path, asked): (Arc<str>, _) = (self.path().into(), now());
        LockOp::Acquire.run(Arc::clone(&path), async move { joint.part(&path, asked).await })
    }

    fn view(self: Arc<Self>) -> Arc<dyn LockView> {
        Arc::clone(&self.stored).view()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
