//! Locks within this process.

mod ahead;
mod change;
mod queue;
mod stored;
mod tenure;

use std::sync::Arc;

use queue::Queues;
use stored::LocalLock;

use crate::lock::{KeyedLocks, Lock, ReadWriteLock, Semaphore};

/// Locks within this process. Clones are the same store; each other [`LocalStore`] has its own locks.
///
/// They work and promise the same as locks in ZooKeeper: one holder, in the order of the acquires, growing tokens, and
/// nothing left behind. Every [`Strategy`](crate::Strategy) is a fair queue here, and all claims can be seen. There is
/// no connection to lose: a guard stays [`Held`](crate::GuardState::Held) until its release, [`lose`](LocalStore::lose)
/// or [`close`](LocalStore::close).
///
/// ```
/// use zklock::{LocalStore, Lock, LockError, LostReason};
///
/// /// The code to test.
/// fn count(lock: &Lock, counter: &mut i32) -> Result<(), LockError> {
///     let guard = lock.acquire().wait()?;
///     *counter += 1;
///     guard.release().wait()
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = LocalStore::new();
/// let mut counter = 0;
/// count(&store.lock("/locks/counter"), &mut counter)?;
/// assert_eq!(counter, 1);
///
/// // How the program behaves when it loses its lock:
/// let guard = store.lock("/locks/counter").acquire().wait()?;
/// store.lose("/locks/counter");
/// assert_eq!(guard.lost().wait(), LostReason::Session);
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct LocalStore {
    queues: Arc<Queues>,
}

impl LocalStore {
    /// A store without locks.
    pub fn new() -> LocalStore {
        LocalStore::default()
    }

    /// A lock on a path. The rules for paths are those of ZooKeeper.
    pub fn lock(&self, path: &str) -> Lock {
        Lock::of_program(LocalLock::new(Arc::clone(&self.queues), path))
    }

    pub(crate) fn raise_tokens(&self, above: i64) {
        self.queues.raise_tokens(above);
    }

    /// A read/write lock on a path.
    pub fn read_write(&self, path: &str) -> ReadWriteLock {
        ReadWriteLock::new(self.lock(path))
    }

    /// A semaphore on a path. It has this number of permits, unless it was made there before with another.
    pub fn semaphore(&self, path: &str, permits: u32) -> Semaphore {
        Semaphore::new(self.lock(path), permits)
    }

    /// Locks by key below a path.
    pub fn locks(&self, path: &str) -> KeyedLocks {
        KeyedLocks::below(self.lock(path))
    }

    /// Takes the lock from its holder, as the end of its session would: its guard is lost, and the next waiter holds.
    /// If several hold the lock, the first of them loses it. Gives whether the lock was held.
    pub fn lose(&self, path: &str) -> bool {
        self.queues.lose(path)
    }

    #[cfg(feature = "capi")]
    pub(crate) fn is_closed(&self) -> bool {
        self.queues.is_closed()
    }

    /// Closes the store, as closing a client does: guards are lost, and operations in flight and later ones fail with
    /// [`Closed`](crate::LockError::Closed).
    pub fn close(&self) {
        self.queues.close();
    }
}

impl std::fmt::Debug for LocalStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalStore").finish_non_exhaustive()
    }
}
