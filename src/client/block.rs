//! Drives a future on the caller's thread.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use super::wake;

/// The future's output.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Some(output) = block_on_until(None, future.as_mut()) {
            return output;
        }
    }
}

/// The future's output, or `None` once the deadline has passed (the future is dropped then).
/// The future is polled at least once, whatever the deadline.
pub(crate) fn block_on_until<F: Future>(deadline: Option<Instant>, future: F) -> Option<F::Output> {
    let (parker, unparker) = parking::pair();
    let waker = Waker::from(unparker);
    let _blocked = wake::Blocked::begin(&waker);
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        match deadline {
            None => parker.park(),
            Some(deadline) => {
                if Instant::now() >= deadline {
                    return None;
                }
                parker.park_deadline(deadline);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_future_that_is_ready_wins_over_a_deadline_that_has_passed() {
        assert_eq!(block_on_until(Some(Instant::now()), async { 7 }), Some(7));
    }

    #[test]
    fn a_deadline_ends_the_wait() {
        let deadline = Instant::now() + Duration::from_millis(20);
        assert_eq!(block_on_until(Some(deadline), std::future::pending::<()>()), None);
        assert!(Instant::now() >= deadline);
    }
}
