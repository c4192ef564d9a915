//! What a lock remembers of its path from one acquire to the next. All of it may be outdated: it
//! decides how an acquire begins, never how it ends.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

#[derive(Default)]
pub(super) struct PathMemory {
    /// Whether the last acquire had to wait, so that the next one probably has to.
    contended: AtomicBool,
    /// The transaction that made the lock's directory; 0 where there is none, or it is not known.
    directory: AtomicI64,
}

impl PathMemory {
    pub(super) fn is_contended(&self) -> bool {
        self.contended.load(Ordering::Relaxed)
    }

    pub(super) fn set_contended(&self, contended: bool) {
        self.contended.store(contended, Ordering::Relaxed);
    }

    pub(super) fn directory(&self) -> i64 {
        self.directory.load(Ordering::Relaxed)
    }

    pub(super) fn saw_directory(&self, czxid: i64) {
        self.directory.store(czxid, Ordering::Relaxed);
    }
}
