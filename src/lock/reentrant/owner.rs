//! Owners of re-entrant locks.

use std::sync::atomic::{AtomicU64, Ordering};

static MADE: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static THIS_THREAD: Owner = Owner::new();
}

/// The owner of a [`ReentrantLock`](super::ReentrantLock): a thread, a task, a request, as the program decides. Clones
/// are the same owner.
///
/// ```
/// use zklock::Owner;
///
/// let owner = Owner::new();
/// assert_eq!(owner, owner.clone());
/// assert_ne!(owner, Owner::new());
/// assert_eq!(Owner::this_thread(), Owner::this_thread());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner(u64);

impl Owner {
    /// A new owner, different from all others.
    #[allow(clippy::new_without_default, reason = "no owner is the default")]
    pub fn new() -> Owner {
        Owner(MADE.fetch_add(1, Ordering::Relaxed))
    }

    /// The calling thread, for programs that block. A task that may move between threads needs its own owner.
    pub fn this_thread() -> Owner {
        THIS_THREAD.with(Owner::clone)
    }
}
