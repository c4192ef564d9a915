//! A panic in code of others (a waker, a callback, a subscriber) must cost nobody else anything.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt as _;

use crate::logging::log;

/// Runs `body`; gives its result unless it has panicked. The panic is logged.
pub(crate) fn catch_panic<T>(body: impl FnOnce() -> T) -> Option<T> {
    if cfg!(zklock_loom) {
        // A model fails by a panic.
        return Some(body());
    }
    noted(catch_unwind(AssertUnwindSafe(body)))
}

/// As [`catch_panic`], of a future.
// No `async fn`, which would have room for the future twice: there are as many as locks are held.
pub(crate) fn catch_panic_of<T>(work: impl Future<Output = T>) -> impl Future<Output = Option<T>> {
    AssertUnwindSafe(work).catch_unwind().map(noted)
}

fn noted<T>(result: std::thread::Result<T>) -> Option<T> {
    if result.is_err() {
        log!(ERROR, "a panic was caught");
    }
    result.ok()
}
