//! Waiting for what a test expects.

use std::thread;
use std::time::{Duration, Instant};

/// No test waits so long for what does come, also on a machine that is busy with many others.
const NEVER: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(5);

/// Checks again and again until it holds.
///
/// # Panics
/// After five minutes, with `what` was expected: tests state what happens, not how fast a machine is.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + NEVER;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within {NEVER:?}");
        thread::sleep(PAUSE);
    }
}
