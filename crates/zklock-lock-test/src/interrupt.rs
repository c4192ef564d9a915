//! What ends a test early: Ctrl-C, or a failure that leaves nothing to test.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use event_listener::{Event, Listener};
use futures_lite::future::{block_on, or};

use crate::trouble::{self, Trouble};

const GO_ON: u8 = 0;
const FAILED: u8 = 1;
const INTERRUPTED: u8 = 2;

/// Raised once, seen by all threads. Whatever waits, waits for this too.
pub struct Stop {
    state: AtomicU8,
    event: Event,
}

impl Stop {
    pub fn new() -> Stop {
        Stop { state: AtomicU8::new(GO_ON), event: Event::new() }
    }

    /// Raised by Ctrl-C (or a termination signal). The second one ends the program at once.
    pub fn on_interrupt() -> Result<Arc<Stop>, Trouble> {
        let stop = Arc::new(Stop::new());
        let raised = Arc::clone(&stop);
        let handler = move || {
            if raised.is_interrupted() {
                std::process::exit(trouble::INTERRUPTED.into());
            }
            raised.raise(INTERRUPTED);
        };
        ctrlc::set_handler(handler)
            .map_err(|error| Trouble::Cannot(format!("listen for Ctrl-C: {error}")))?;
        Ok(stop)
    }

    /// Ends the test for all threads because one of them can't go on.
    pub fn fail(&self) {
        self.raise(FAILED);
    }

    fn raise(&self, state: u8) {
        self.state.fetch_max(state, Ordering::SeqCst);
        self.event.notify(usize::MAX);
    }

    pub fn is_raised(&self) -> bool {
        self.state.load(Ordering::SeqCst) != GO_ON
    }

    pub fn is_interrupted(&self) -> bool {
        self.state.load(Ordering::SeqCst) == INTERRUPTED
    }

    /// Waits for the future on this thread; drops it and gives `None` when the stop comes first.
    pub fn or<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let raised = async {
            loop {
                let listener = self.event.listen();
                if self.is_raised() {
                    return None;
                }
                listener.await;
            }
        };
        block_on(or(async { Some(future.await) }, raised))
    }

    /// Sleeps, but not beyond the stop.
    pub fn sleep(&self, time: Duration) {
        let deadline = Instant::now().checked_add(time);
        loop {
            let listener = self.event.listen();
            if self.is_raised() {
                return;
            }
            match deadline {
                Some(deadline) if listener.wait_deadline(deadline).is_none() => return,
                Some(_) => {}
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_ends_what_would_wait_for_ever() {
        let stop = Stop::new();
        assert_eq!(stop.or(async { 7 }), Some(7));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| stop.or(std::future::pending::<()>()));
            let sleeping = scope.spawn(|| stop.sleep(Duration::from_secs(3_600)));
            stop.fail();
            assert_eq!(waiting.join().ok(), Some(None));
            assert!(sleeping.join().is_ok());
        });
        assert!(stop.is_raised() && !stop.is_interrupted());
    }
}
