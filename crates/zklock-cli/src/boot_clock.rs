//! The clock that goes on while the machine sleeps, as the servers' does. It is one for all processes of a machine,
//! so that a point in time can be handed from one to another.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The time since the machine was booted.
pub fn now() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}
