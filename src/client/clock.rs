//! The clock that sessions are judged by.
//!
//! It goes on while the machine sleeps, as the server's does. `Instant` stands still then on
//! Linux, and a laptop that wakes after an hour would still believe in its session.

use std::time::Duration;

/// A point in time: only differences mean anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(Duration);

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

impl Moment {
    pub(crate) fn now() -> Moment {
        let now = rustix::time::clock_gettime(CLOCK);
        Moment(Duration::try_from(now).unwrap_or_default())
    }
}

impl std::ops::Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, duration: Duration) -> Moment {
        Moment(self.0.saturating_add(duration))
    }
}
