//! The interface of a store. `Lock` and `Guard` know nothing else of it.

use std::any::Any;
use std::sync::Arc;

use super::contender::Contender;
use super::error::LockError;
use super::guard::Guard;
use super::interop::Interop;
use super::kind::Kind;
use super::requests::Revocation;
use super::strategy::Strategy;
use crate::runtime::Pending;
use crate::znode::Acl;

/// A lock at a path, as its store has it. Everyone who has it contends for the same lock.
pub(crate) trait StoredLock: Send + Sync + 'static {
    fn path(&self) -> &str;

    fn strategy(&self) -> Strategy;

    /// The same lock, contended for in another way from now on.
    fn with(&self, change: Change) -> Arc<dyn StoredLock>;

    /// Makes a claim, and waits until it holds. However it ends, and wherever it is dropped, no claim is left
    /// behind but that of the guard. Where it ends because of a limit, it says who was ahead.
    fn acquire(self: Arc<Self>) -> Pending<Guard, LockError>;

    /// As [`acquire`](StoredLock::acquire), but where anybody is ahead it gives who that is.
    fn try_acquire(self: Arc<Self>) -> Pending<Tried<Guard>, LockError>;

    /// The servers and the client of a lock that can be [acquired together](StoredLock::acquire_together) with others of
    /// that client. `None`: it is acquired alone.
    fn transaction(&self) -> Option<(&str, u64)> {
        None
    }

    /// Acquires all of these locks, with this one among them, by claims that are made in one step. Returns their guards in
    /// the same order, or `None` if the store can't.
    fn acquire_together(
        self: Arc<Self>,
        _all: &[Arc<dyn StoredLock>],
    ) -> Option<Pending<Vec<Guard>, LockError>> {
        None
    }

    /// As [`try_acquire`](StoredLock::try_acquire) of all of these: see
    /// [`acquire_together`](StoredLock::acquire_together).
    fn try_together(
        self: Arc<Self>,
        _all: &[Arc<dyn StoredLock>],
    ) -> Option<Pending<Tried<Vec<Guard>>, LockError>> {
        None
    }

    /// The lock as it is without a claim.
    fn view(self: Arc<Self>) -> Arc<dyn LockView>;

    /// Sets how many permits a semaphore at this path has, for all.
    fn set_limit(self: Arc<Self>, limit: u32) -> Pending<(), LockError> {
        self.view().set_limit(limit)
    }

    fn as_any(&self) -> &dyn Any;
}

/// The operations of a lock that need no claim.
pub(crate) trait LockView: Send + Sync + 'static {
    /// The holder and the waiters, in their order, at most `number` of them.
    fn contenders(self: Arc<Self>, number: usize) -> Pending<Vec<Contender>, LockError>;

    /// The holder, or nobody, as soon as that is not the one that was reported by this token (`Some(None)`:
    /// nobody was); of `None` the present one.
    fn holder_other_than(
        self: Arc<Self>,
        reported: Option<Option<i64>>,
    ) -> Pending<Option<Contender>, LockError>;

    /// Asks a holder for the lock, or takes it away. `false`: it does not hold any more.
    fn revoke(
        self: Arc<Self>,
        holder: Contender,
        revocation: Revocation,
    ) -> Pending<bool, LockError>;

    /// How many permits a semaphore at this path has.
    fn limit(self: Arc<Self>) -> Pending<u32, LockError>;

    fn set_limit(self: Arc<Self>, limit: u32) -> Pending<(), LockError>;
}

/// The result of a try, or the contender ahead.
pub(crate) type Tried<T> = Result<T, Option<Contender>>;

/// A change of a lock's settings that all stores know.
pub(crate) enum Change {
    Strategy(Strategy),
    Label(Arc<str>),
    Kind(Kind),
    /// How many permits a semaphore has, where its store does not know.
    Limit(u32),
    /// It is another lock then.
    Path(String),
    /// It is then another lock, and leaves nothing in the store while nobody uses it.
    Key(String),
    /// Which other libraries wait for it.
    Interop(Interop),
    Acl(Arc<[Acl]>),
}

/// Why a lock of another store than ZooKeeper is unusable with [`Change::Acl`].
pub(crate) const NO_ACL: &str =
    "this store can't protect single locks: leave the ACL out, and restrict who may use the store";
/// Why it is with [`Interop::All`].
pub(crate) const NO_OTHER_LIBRARIES: &str =
    "no other library has locks in this store: leave out Interop::All";
