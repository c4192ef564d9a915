//! Drives a future on the caller's thread.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::ptr;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use parking::Parker;

use crate::process::Process;

thread_local! {
    /// The parker of this thread while it does not wait, and its process. In a child process it may not be used: a
    /// thread that does not exist there may have been inside it.
    static IDLE: Cell<Option<(Process, Parker, Waker)>> = const { Cell::new(None) };
    /// The waker that futures are polled with on this thread while a thread blocks for them.
    static BLOCKED: Cell<*const ()> = const { Cell::new(ptr::null()) };
}

/// While it lasts, a thread blocks by this waker for what is polled here: it unparks that thread, or lets a
/// continuation go on, and runs no code of other programs.
pub(super) struct Blocked {
    before: *const (),
}

impl Blocked {
    pub(super) fn begin(waker: &Waker) -> Blocked {
        Blocked { before: BLOCKED.replace(waker.data()) }
    }

    pub(super) fn is_by(waker: &Waker) -> bool {
        // Wakers of others may have no data.
        let blocked = BLOCKED.get();
        !blocked.is_null() && waker.data() == blocked
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        BLOCKED.set(self.before);
    }
}

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
    let idle = IDLE.try_with(Cell::take).ok().flatten().filter(|(process, ..)| process.is_this());
    let (process, parker, waker) = idle.unwrap_or_else(|| {
        let (parker, unparker) = parking::pair();
        (Process::this(), parker, Waker::from(unparker))
    });
    let output = {
        let _blocked = Blocked::begin(&waker);
        park_until(deadline, future, &parker, &waker)
    };
    // Who woke it last may wake it once more: whoever waits next looks once in vain.
    let _ = IDLE.try_with(|idle| idle.set(Some((process, parker, waker))));
    output
}

fn park_until<F: Future>(
    deadline: Option<Instant>,
    future: F,
    parker: &Parker,
    waker: &Waker,
) -> Option<F::Output> {
    let mut context = Context::from_waker(waker);
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
