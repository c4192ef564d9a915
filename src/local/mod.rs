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

/// Keeps locks within this process. Clones are the same store; another [`LocalStore`] has other locks.
///
/// They are used as those of ZooKeeper are, and keep their promises: one holder, in the order of the acquires,
/// tokens that grow, and nothing left behind by an acquire that ends. Each [`Strategy`](crate::Strategy) is a fair
/// queue here, and all claims of a lock are seen. There is no connection to lose: a guard is
/// [`Held`](crate::GuardState::Held) until it is released, or [`lose`](LocalStore::lose) or [`close`](LocalStore::close)
/// takes it away.
///
/// ```
/// use zklock::{LocalStore, Lock, LockError, LostReason};
///
/// /// What is to be tested.
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

    /// A lock on a path; the rules for paths are ZooKeeper's.
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

    /// A semaphore on a path, which has so many permits unless another was made there before.
    pub fn semaphore(&self, path: &str, permits: u32) -> Semaphore {
        Semaphore::new(self.lock(path), permits)
    }

    /// Locks by key below a path.
    pub fn locks(&self, path: &str) -> KeyedLocks {
        KeyedLocks::below(self.lock(path))
    }

    /// Takes the lock away from its holder, as the end of its session would: its guard is lost, and whoever waits
    /// for it next holds it. Of several who hold it, from the first. Gives whether anybody held it.
    pub fn lose(&self, path: &str) -> bool {
        self.queues.lose(path)
    }

    #[cfg(feature = "capi")]
    pub(crate) fn is_closed(&self) -> bool {
        self.queues.is_closed()
    }

    /// Ends the store, as closing a client does: guards are lost, and all that is under way, or begins after
    /// this, fails with [`Closed`](crate::LockError::Closed).
    pub fn close(&self) {
        self.queues.close();
    }
}

impl std::fmt::Debug for LocalStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalStore").finish_non_exhaustive()
    }
}
