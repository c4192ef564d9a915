//! Acquires and other operations that go on beside the test.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::thread::JoinHandle;
use std::time::Duration;

use zklock::{Guard, Lock, LockError};
use zklock_testing::eventually;

use crate::TIMEOUT;

/// Acquires on a thread of its own.
pub fn acquire_in_background(lock: &Lock) -> JoinHandle<Result<Guard, LockError>> {
    let lock = lock.clone();
    std::thread::spawn(move || lock.acquire().within(TIMEOUT).wait())
}

/// Polls an operation until `holds` does; it must not be ready before.
pub fn poll_until(pending: &mut (impl Future + Unpin), mut holds: impl FnMut() -> bool) {
    let mut context = Context::from_waker(Waker::noop());
    eventually("an operation is where it is wanted", || {
        assert!(Pin::new(&mut *pending).poll(&mut context).is_pending());
        holds()
    });
}

/// Polls an operation until it is ready, or `is_enough`.
pub fn poll_unless(pending: &mut (impl Future + Unpin), mut is_enough: impl FnMut() -> bool) {
    let mut context = Context::from_waker(Waker::noop());
    eventually("an operation goes on", || {
        is_enough() || Pin::new(&mut *pending).poll(&mut context).is_ready()
    });
}

/// Passes long enough for a thread to get through where it should be blocked.
#[track_caller]
pub fn expect_blocked<'a, T: 'a>(threads: impl IntoIterator<Item = &'a JoinHandle<T>>) {
    std::thread::sleep(Duration::from_millis(150));
    assert!(threads.into_iter().all(|thread| !thread.is_finished()), "it is not blocked");
}
