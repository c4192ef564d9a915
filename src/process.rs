//! Which process this is: a child that was made by `fork` is another.
//!
//! A child has copies of all objects, and none of the threads that work on them. So every object knows
//! the process that made it, and cannot be used in another. Process-wide data is recreated in the child.

use std::ops::Deref;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Code, Error};

/// How many forks lie between the process that began to use zklock and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process(u32);

impl Process {
    pub(crate) fn this() -> Process {
        Process(FORKS.load(Ordering::Relaxed))
    }

    pub(crate) fn is_this(self) -> bool {
        self == Process::this()
    }

    /// A number that differs in a process and the one that has made it.
    pub(crate) fn forks(self) -> u32 {
        self.0
    }

    /// Runs in a child, on its only thread, before anything else.
    pub(crate) fn has_forked() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
}

/// Why what another process has made is of no use here.
pub(crate) const INHERITED: &str =
    "made before a fork, in another process: make a client in this one, or call exec first";

/// As an error.
pub(crate) fn inherited(op: &'static str, path: &str) -> Error {
    Error::with_detail(op, path, Code::INVALID_STATE, INHERITED)
}

/// A value for each process, made when it is first used there. A child leaves its parent's alone: a
/// thread that is not there any more may have been changing it.
pub(crate) struct PerProcess<T: 'static> {
    first: Kept<T>,
    make: fn() -> T,
}

struct Kept<T> {
    value: OnceLock<T>,
    /// A child's.
    next: OnceLock<Box<Kept<T>>>,
}

impl<T> Kept<T> {
    const fn new() -> Kept<T> {
        Kept { value: OnceLock::new(), next: OnceLock::new() }
    }
}

impl<T> PerProcess<T> {
    pub(crate) const fn new(make: fn() -> T) -> PerProcess<T> {
        PerProcess { first: Kept::new(), make }
    }

    /// The values of the processes that this one descends from.
    #[cfg(not(zklock_loom))]
    pub(crate) fn inherited(&self) -> impl Iterator<Item = &T> {
        let kept = std::iter::successors(Some(&self.first), |kept| Some(kept.next.get()?));
        kept.take(Process::this().0 as usize).filter_map(|kept| kept.value.get())
    }
}

impl<T> Deref for PerProcess<T> {
    type Target = T;

    fn deref(&self) -> &T {
        let mut kept = &self.first;
        for _ in 0..Process::this().0 {
            kept = kept.next.get_or_init(|| Box::new(Kept::new()));
        }
        kept.value.get_or_init(self.make)
    }
}
