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
mod op;
mod read_write;
mod reentrant;
mod requests;
mod reserved;
mod revocation;
mod semaphore;
mod shared_tenure;
mod states;
mod store;
mod strategy;
pub(crate) mod tenure;
mod together;
mod trace;
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
pub(crate) use op::{LockOp, ready};
pub use read_write::ReadWriteLock;
#[cfg(feature = "capi")]
pub(crate) use reentrant::Joints;
pub use reentrant::{Owner, ReentrantLock};
pub(crate) use requests::{Requests, Revocation};
pub use revocation::ReleaseRequests;
pub use semaphore::Semaphore;
pub use states::GuardStates;
pub(crate) use store::{Change, LockView, NO_ACL, NO_OTHER_LIBRARIES, StoredLock, Tried};
pub use strategy::Strategy;
pub(crate) use tenure::StoreRef;
pub(crate) use trace::{ACQUIRED, AcquireTrace, HoldTrace, TAKEN};
pub use whenever_held::WheneverHeld;
pub use while_held::{WhileHeld, WhileHeldError};

use crate::runtime::Pending;

/// A lock on a path. Clones are the same lock. Acquires by clones exclude each other too.
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
/// [`Client::lock`](crate::Client::lock) makes a lock in ZooKeeper and names the permissions that it needs.
/// [`LocalStore::lock`](crate::LocalStore::lock) makes one within this process.
///
/// # On connection loss
/// An acquire waits for the next connection and looks up its claim. If the session survived, it keeps its place in the
/// queue; otherwise it makes a new claim. It ends only at its limit, or when the client is closed.
///
/// # Cancel safety
/// Dropping the [`Pending`] of an acquire cancels it. Its claim is deleted in the background, even if the reply to the
/// create was lost; [at the end of the process](Guard#at-the-end-of-the-process), it is treated as that of a dropped
/// guard.
#[derive(Clone)]
pub struct Lock {
    stored: Arc<dyn StoredLock>,
}

impl Lock {
    pub(crate) fn new(stored: Arc<dyn StoredLock>) -> Lock {
        Lock { stored }
    }

    fn of_kind(&self, kind: Kind) -> Lock {
        Lock::new(self.stored.with(Change::Kind(kind)))
    }

    fn shared(&self) -> Arc<dyn StoredLock> {
        Arc::clone(&self.stored)
    }

    pub(crate) fn stored(&self) -> &dyn StoredLock {
        &*self.stored
    }

    /// Sets the strategy. All users of one path must use the same strategy.
    #[must_use]
    pub fn strategy(mut self, strategy: Strategy) -> Lock {
        self.stored = self.stored.with(Change::Strategy(strategy));
        self
    }

    /// Chooses which other libraries wait for this lock on its path. Users of zklock exclude each other there, even if
    /// they choose differently.
    ///
    /// With [`Interop::All`] an acquire of a free lock takes two round trips instead of one; a release takes one. Both
    /// znodes have the same [token](Guard::fencing_token). The guard is lost when either is deleted, and
    /// [`contenders`](Lock::contenders) lists the two as one. A [`MultiLock`] acquires such locks one after the other.
    ///
    /// [`Interop::All`] needs an exclusive lock of [`Strategy::Queue`] in ZooKeeper. With any other lock, operations
    /// fail with [`Unusable`](LockError::Unusable).
    ///
    /// Connection loss and cancel safety: as of [every acquire](Lock#on-connection-loss), for both znodes.
    #[must_use]
    pub fn interoperate(mut self, with: Interop) -> Lock {
        self.stored = self.stored.with(Change::Interop(with));
        self
    }

    /// A name for the owner, shown to people who look at the lock: one line of up to 256 characters. Host, process and
    /// thread are shown anyway.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Lock {
        self.stored = self.stored.with(Change::Label(label.into().into()));
        self
    }

    /// The lock's path.
    pub fn path(&self) -> &str {
        self.stored.path()
    }

    /// Acquires the lock. It waits without a limit, or [within](Pending::within) one.
    ///
    /// If there is a session, the first request is submitted before this returns. If this client has used the path
    /// before, its first request is the claim itself. Such claims stand in the queue in the order of the calls. The
    /// later steps are taken while the result is awaited or waited for. A [`Pending`] that is kept and not polled can
    /// therefore hold up other clients.
    ///
    /// # Errors
    /// Nothing is left behind.
    /// - [`Unusable`](LockError::Unusable): the path is not allowed or too long, or its last name begins with `zl-`
    ///   (reserved for zklock). The path is `/` and the strategy is not [`Strategy::Queue`]. Something other than a
    ///   lock of this strategy is at the path. In ZooKeeper also: the chroot does not exist, or the ACL is empty.
    /// - [`NotPermitted`](LockError::NotPermitted): a permission is missing.
    /// - [`Closed`](LockError::Closed): the store is closed (in ZooKeeper, the client), or no session will follow.
    /// - [`Store`](LockError::Store): the store refuses for another reason, such as a quota.
    /// - [`TimedOut`](LockError::TimedOut): the limit has passed. The error names the contender ahead.
    ///
    /// See also [on connection loss](Lock#on-connection-loss) and [cancel safety](Lock#cancel-safety).
    pub fn acquire(&self) -> Pending<Guard, LockError> {
        Arc::clone(&self.stored).acquire()
    }

    /// Acquires the lock if no other contender is ahead: no holder and, in a queue, no waiter. It creates a claim only
    /// if the lock seems to be free.
    ///
    /// Await the result or drop it. A [`Pending`] that is kept and not polled can keep that claim and hold up other
    /// clients.
    ///
    /// Cancel safety: as [`acquire`](Lock#cancel-safety).
    ///
    /// # Errors
    /// As [`acquire`](Lock::acquire). [`TimedOut`](LockError::TimedOut) means that no server answered within the
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

    /// Whether the lock is held. In a queue, a waiter alone counts too, because the first waiter holds the lock as soon
    /// as it looks.
    ///
    /// Cancel safety: it changes nothing.
    ///
    /// # Errors
    /// As [`contenders`](Lock::contenders).
    pub fn is_locked(&self) -> Pending<bool, LockError> {
        self.first_contenders(1).map(|first| Ok(!first?.is_empty()))
    }

    /// The holder. If several contenders hold the lock together, the first of them.
    ///
    /// Cancel safety: it changes nothing.
    ///
    /// # Errors
    /// As [`contenders`](Lock::contenders).
    pub fn holder(&self) -> Pending<Option<Contender>, LockError> {
        self.first_contenders(1).map(|first| Ok(first?.into_iter().next()))
    }

    /// Watches the holder: gives the present one first, then each new one; `None` means that the lock is free. A holder
    /// that comes and goes between two looks is left out. It costs one watch, and one listing for each change.
    ///
    /// # Errors
    /// As [`contenders`](Lock::contenders), but it waits for a server to answer. It ends after an error.
    ///
    /// # On connection loss
    /// It continues with the next connection or session and reports nothing twice.
    pub fn watch_holder(&self) -> Holders {
        holders::of(Arc::clone(&self.stored))
    }

    /// The contenders in their order: holders first, then waiters. Waiters are known only in a queue, because waiters
    /// of the other strategies have no znode.
    ///
    /// Cancel safety: it changes nothing.
    ///
    /// # Errors
    /// As [`acquire`](Lock::acquire). [`Store`](LockError::Store) also if no server answers within the client's
    /// operation timeout ([`is_timeout`](LockError::is_timeout)), or if the connection is lost.
    pub fn contenders(&self) -> Pending<Vec<Contender>, LockError> {
        self.first_contenders(usize::MAX)
    }

    pub(crate) fn first_contenders(&self, number: usize) -> Pending<Vec<Contender>, LockError> {
        self.shared().view().contenders(number)
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
