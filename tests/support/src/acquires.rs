//! Acquires that go on beside the test.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::thread::JoinHandle;

use zklock::{Guard, Lock, LockError, Pending};
use zklock_testing::eventually;

use crate::TIMEOUT;

/// Acquires on a thread of its own.
pub fn acquire_in_background(lock: &Lock) -> JoinHandle<Result<Guard, LockError>> {
    let lock = lock.clone();
    std::thread::spawn(move || lock.acquire().within(TIMEOUT).wait())
}

/// Polls an acquire until `holds` does; it must not acquire before.
pub fn poll_until<T>(acquiring: &mut Pending<T, LockError>, mut holds: impl FnMut() -> bool) {
    let mut context = Context::from_waker(Waker::noop());
    eventually("an acquire is where it is wanted", || {
        assert!(Pin::new(&mut *acquiring).poll(&mut context).is_pending());
        holds()
    });
}
