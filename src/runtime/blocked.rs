//! By which waker this thread blocks.

use std::cell::Cell;
use std::ptr;
use std::task::Waker;

thread_local! {
    /// The waker by which this thread waits in [`block_on`](super::block_on).
    static BLOCKED: Cell<*const ()> = const { Cell::new(ptr::null()) };
}

/// A thread blocks by this waker, while it lasts.
pub(super) struct Blocked {
    before: *const (),
}

impl Blocked {
    pub(super) fn begin(waker: &Waker) -> Blocked {
        Blocked { before: BLOCKED.replace(waker.data()) }
    }

    /// Whether this thread blocks by that waker.
    pub(super) fn is_by(waker: &Waker) -> bool {
        waker.data() == BLOCKED.get()
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        BLOCKED.set(self.before);
    }
}
