//! The clocks: one for timers, and one that sessions are judged by.
//!
//! The other goes on while the machine sleeps, as the server's does. `Instant` stands still then on
//! Linux, and a laptop that wakes after an hour would still believe in its session.

use std::time::{Duration, Instant};

/// The time, by the clock that timers and deadlines use.
pub(crate) fn now() -> Instant {
    #[cfg(test)]
    if let Some(machine) = super::simulated::current() {
        return super::simulated::time_of(machine.clock());
    }
    Instant::now()
}

/// A point in time, in nanoseconds: only differences mean anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BootInstant(u64);

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

impl BootInstant {
    pub(crate) fn now() -> BootInstant {
        #[cfg(test)]
        if let Some(machine) = super::simulated::current() {
            // Some time after it was booted.
            return BootInstant(1 << 50) + machine.clock();
        }
        let now = rustix::time::clock_gettime(CLOCK);
        let (seconds, nanos) =
            (now.tv_sec.unsigned_abs(), u64::from(now.tv_nsec.unsigned_abs() as u32));
        BootInstant(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
    }

    pub(crate) const fn from_nanos(nanos: u64) -> BootInstant {
        BootInstant(nanos)
    }

    pub(crate) const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The point in time that lies so long before.
    pub(crate) fn earlier(self, by: Duration) -> BootInstant {
        BootInstant(self.0.saturating_sub(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl std::ops::Sub for BootInstant {
    type Output = Duration;

    /// Zero if `earlier` is later.
    fn sub(self, earlier: BootInstant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl std::ops::Add<Duration> for BootInstant {
    type Output = BootInstant;

    fn add(self, duration: Duration) -> BootInstant {
        BootInstant(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}
