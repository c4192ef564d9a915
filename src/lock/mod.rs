//! The face of locks: what programs use, whatever store keeps them. No unsafe code, and nothing of a store:
//! `store.rs` has the traits that stores implement.

mod access;
mod ahead;
mod caller;
mod change;
mod contender;
mod election;
mod error;
mod guard;
mod handover;
mod holders;
mod interop;
mod keyed;
mod kind;
mod local_handoff;
mod loss;
mod multi_lock;
mod part;
mod read_write;
mod reentrant;
mod requests;
mod reserved;
mod revocation;
mod semaphore;
mod states;
mod store;
mod strategy;
pub(crate) mod tenure;
mod together;
mod whenever_held;
mod while_held;

use std::sync::Arc;

pub use access::Access;
pub(crate) use access::IS_BEING_CHANGED;
pub(crate) use caller::Caller;
pub use contender::{Contender, HeldSince};
pub(crate) use contender::{MAX_TEXT, with_owner};
pub use election::{Election, Leadership};
pub use error::LockError;
pub use guard::{Guard, LostSignal};
pub use holders::Holders;
pub use interop::Interop;
pub use keyed::KeyedLocks;
pub(crate) use kind::Kind;
pub use local_handoff::LocalHandoff;
pub use loss::{GuardState, LostReason};
pub use multi_lock::MultiLock;
pub use read_write::ReadWriteLock;
pub use reentrant::{Owner, ReentrantLock};
pub(crate) use requests::{Requests, Revocation};
pub use revocation::ReleaseRequests;
pub use semaphore::Semaphore;
pub use states::GuardStates;
pub(crate) use store::{Change, NO_ACL, NO_OTHER_LIBRARIES, StoredLock, Tried};
pub use strategy::Strategy;
pub(crate) use tenure::StoreRef;
pub use whenever_held::WheneverHeld;
pub use while_held::{WhileHeld, WhileHeldError};

use crate::runtime::Pending;

/// A lock on a path. Clones are the same lock; every acquire, also by clones, contends for it.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
///
/// let zk = zklock::Client::connect("127.0.0.1:2181").wait()?;
/// let lock = zk.lock("/locks/invoices").label("nightly run");
/// match lock.acquire().within(Duration::from_secs(5)).wait() {
///     Ok(guard) => println!("mine, with token {}", guard.fencing_token()),
///     Err(error) if error.is_timeout() => println!("{error}"),
///     Err(error) => return Err(error.into()),
/// }
/// # Ok(()) }
/// ```
///
/// [`Client::lock`](crate::Client::lock) makes one that is kept in ZooKeeper, and says what permissions that needs;
/// [`LocalStore::lock`](crate::LocalStore::lock) one within this process.
///
/// # On connection loss
/// An acquire goes on: it waits for the next connection, looks up what became of its claim, and
/// keeps its place in the queue if the session survived. It ends by its limit, if it has one,
/// or when the client is closed.
///
/// # Cancellation
/// Dropping the [`Pending`] of an acquire gives it up. Its claim is deleted in the background,
/// also when the reply to its creation was lost, and [at the end of the process](Guard#at-the-end-of-the-process)
/// as that of a guard that was dropped.
#[derive(Clone)]
pub struct Lock {
    stored: Arc<dyn StoredLock>,
}

impl Lock {
    pub(crate) fn new(stored: Arc<dyn StoredLock>) -> Lock {
        Lock { stored }
    }

    /// The same lock with claims of that kind.
    fn of_kind(&self, kind: Kind) -> Lock {
        Lock::new(self.stored.with(Change::Kind(kind)))
    }

    fn shared(&self) -> Arc<dyn StoredLock> {
        Arc::clone(&self.stored)
    }

    pub(crate) fn stored(&self) -> &dyn StoredLock {
        &*self.stored
    }

    /// Contends in another way. Everyone on one path has to use the same strategy.
    #[must_use]
    pub fn strategy(mut self, strategy: Strategy) -> Lock {
        self.stored = self.stored.with(Change::Strategy(strategy));
        self
    }

    /// Chooses which other libraries wait for this lock on its path. Users of zklock may choose differently there, and
    /// exclude each other.
    ///
    /// With [`Interop::All`] an acquire of a free lock takes two round trips rather than one, and a release one.
    /// Both znodes have the same [token](Guard::fencing_token); the guard is lost when either is deleted, and
    /// [`contenders`](Lock::contenders) lists the two as one. It is for the exclusive lock of [`Strategy::Queue`]:
    /// another strategy, readers, writers and permits are [`Unusable`](LockError::Unusable) with it. A
    /// [`MultiLock`] acquires such locks one after the other. A lock that is not kept in ZooKeeper is
    /// [`Unusable`](LockError::Unusable) with it, too: no other library has locks there.
    ///
    /// # On connection loss
    /// As of every acquire: what became of the transaction is looked up before another is sent.
    ///
    /// # Cancellation
    /// As of every acquire: both znodes are deleted.
    #[must_use]
    pub fn interoperate(mut self, with: Interop) -> Lock {
        self.stored = self.stored.with(Change::Interop(with));
        self
    }

    /// What the owner calls itself, for people who look at who holds the lock: one line of up to
    /// 256 characters. Host, process and thread are written anyway.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Lock {
        self.stored = self.stored.with(Change::Label(label.into()));
        self
    }

    /// The lock's path.
    pub fn path(&self) -> &str {
        self.stored.path()
    }

    /// Acquires the lock, however long that takes, or [within](Pending::within) a limit. Its first request is submitted
    /// when this returns, if there is a session. Where this client has used the lock's path before, and knows what is
    /// there, that is the claim itself: then acquires are in the queue in the order of the calls. What
    /// follows is done while the result is awaited or waited for, so a claim whose [`Pending`] is kept and not polled
    /// holds others up.
    ///
    /// # Errors
    /// [`Unusable`](LockError::Unusable) for a path that is not allowed, too long, or whose last name begins with `zl-`
    /// (those names are zklock's own), for `/` with another strategy than [`Strategy::Queue`], a path that is
    /// something else than a lock of this strategy, in ZooKeeper a chroot that does not exist or an empty ACL;
    /// [`NotPermitted`](LockError::NotPermitted);
    /// [`Closed`](LockError::Closed) when the store is closed, in ZooKeeper the client, and no session will follow;
    /// [`Store`](LockError::Store) for what else the store refuses (a quota, say). Within a limit
    /// [`TimedOut`](LockError::TimedOut), which says who was ahead. Nothing is left behind. See
    /// [on connection loss](Lock#on-connection-loss) and [cancellation](Lock#cancellation).
    pub fn acquire(&self) -> Pending<Guard, LockError> {
        Arc::clone(&self.stored).acquire()
    }

    /// Acquires the lock if nobody is ahead: neither a holder nor, in a queue, a waiter. It creates a claim only if
    /// the lock seems to be free. Await the result, or drop it: a [`Pending`] that is kept and not polled can keep that
    /// claim, and holds others up.
    ///
    /// # Errors
    /// As [`acquire`](Lock::acquire), and [`TimedOut`](LockError::TimedOut) when no server answers within the
    /// client's operation timeout.
    pub fn try_acquire(&self) -> Pending<Option<Guard>, LockError> {
        Arc::clone(&self.stored).try_acquire().map(|tried| Ok(tried?.ok()))
    }

    /// As [`try_acquire`](Lock::try_acquire), but where anybody is ahead the time is over.
    #[cfg(feature = "capi")]
    pub(crate) fn acquire_at_once(&self) -> Pending<Guard, LockError> {
        let lock = Arc::clone(&self.stored);
        Arc::clone(&self.stored)
            .try_acquire()
            .map(move |tried| tried?.map_err(|ahead| LockError::timed_out(lock.path(), ahead)))
    }

    /// Whether anybody holds the lock. In a queue, waiters alone count too: the first of them holds
    /// it the moment it looks.
    ///
    /// # Errors
    /// As [`contenders`](Lock::contenders).
    pub fn is_locked(&self) -> Pending<bool, LockError> {
        self.first_contenders(1).map(|first| Ok(!first?.is_empty()))
    }

    /// Who holds the lock; of several who may hold it together, the first.
    ///
    /// # Errors
    /// As [`contenders`](Lock::contenders).
    pub fn holder(&self) -> Pending<Option<Contender>, LockError> {
        self.first_contenders(1).map(|first| Ok(first?.into_iter().next()))
    }

    /// Who holds the lock as that changes, from the present holder on; `None` is nobody. A holder that came and went
    /// between two looks is left out. It costs one watch, and a listing with each change.
    ///
    /// # Errors
    /// As [`contenders`](Lock::contenders), but it waits for a server to answer. It ends after an error.
    ///
    /// # On connection loss
    /// It goes on with the next connection or session, and reports nothing twice.
    pub fn watch_holder(&self) -> Holders {
        holders::of(Arc::clone(&self.stored))
    }

    /// Who holds the lock, and who waits for it, in their order. Waiters are known only in a
    /// queue: those of the other strategies leave no node.
    ///
    /// # Errors
    /// As [`acquire`](Lock::acquire); [`Store`](LockError::Store) with the client's error also when no server
    /// answers within its operation timeout ([`is_timeout`](LockError::is_timeout)), or the connection is lost.
    pub fn contenders(&self) -> Pending<Vec<Contender>, LockError> {
        self.first_contenders(usize::MAX)
    }

    /// The first of them, up to that number.
    pub(crate) fn first_contenders(&self, number: usize) -> Pending<Vec<Contender>, LockError> {
        Arc::clone(&self.stored).contenders(number)
    }
}

impl std::fmt::Debug for Lock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lock")
            .field("path", &self.path())
            .field("strategy", &self.stored.strategy())
            .finish_non_exhaustive()
    }
}
