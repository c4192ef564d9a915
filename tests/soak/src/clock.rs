//! The clock that all processes of a soak share, and how the servers' times relate to it.
//!
//! Clients and faults are timed by the machine's time since boot, which nobody can set. A transaction
//! carries the wall clock of the leader that prepared it, in whole milliseconds. Both are read side
//! by side all through a run, so that the one can be told from the other even if somebody sets the
//! wall clock meanwhile.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

#[cfg(any(target_os = "linux", target_os = "android"))]
const SHARED: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const SHARED: ClockId = ClockId::Monotonic;

/// A point in time on the shared clock, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub i64);

impl Moment {
    pub fn now() -> Moment {
        Moment(read(SHARED))
    }

    /// Zero if `earlier` is later.
    pub fn since(self, earlier: Moment) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, time: Duration) -> Moment {
        Moment(self.0.saturating_add(nanos(time)))
    }
}

impl Sub<Duration> for Moment {
    type Output = Moment;

    fn sub(self, time: Duration) -> Moment {
        Moment(self.0.saturating_sub(nanos(time)))
    }
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

fn read(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec)
}

/// Both clocks, read side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    pub at: Moment,
    /// Wall clock minus shared clock, in nanoseconds.
    ahead: i64,
    /// How far `ahead` may be off, because time passed between the two readings.
    slack: i64,
}

impl Sample {
    /// The best of a few readings: a thread may be put aside between two of them.
    pub fn take() -> Sample {
        let readings = (0..5).map(|_| {
            let before = read(SHARED);
            let wall = read(ClockId::Realtime);
            let slack = read(SHARED) - before;
            Sample { at: Moment(before), ahead: wall - before, slack }
        });
        // Five of them always have a smallest one.
        readings.min_by_key(|sample| sample.slack).unwrap_or(Sample {
            at: Moment::now(),
            ahead: 0,
            slack: i64::MAX,
        })
    }

    pub fn parse(line: &str) -> Option<Sample> {
        let mut words = line.split('\t').map(str::parse::<i64>);
        let mut next = || words.next()?.ok();
        Some(Sample { at: Moment(next()?), ahead: next()?, slack: next()? })
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\t{}\t{}", self.at.0, self.ahead, self.slack)
    }
}

/// Tells the shared clock's time from the servers'.
#[derive(Debug, Default)]
pub struct WallClock {
    samples: Vec<Sample>,
}

impl WallClock {
    pub fn new(mut samples: Vec<Sample>) -> WallClock {
        samples.sort_by_key(|sample| sample.at);
        WallClock { samples }
    }

    /// When it was that many milliseconds past 1970 by the wall clock: the start of that
    /// millisecond, by the sample that was taken nearest to it.
    pub fn moment(&self, wall_ms: i64) -> Moment {
        let wall = wall_ms.saturating_mul(1_000_000);
        let after = self.samples.partition_point(|sample| sample.at.0 + sample.ahead <= wall);
        let nearest = after.checked_sub(1).and_then(|at| self.samples.get(at));
        let nearest = nearest.or(self.samples.first());
        Moment(wall - nearest.map_or(0, |sample| sample.ahead))
    }

    /// How far off a moment can be: a transaction's time is cut to milliseconds, and the wall clock
    /// may have moved against the shared one between two samples.
    pub fn tolerance(&self) -> Duration {
        let drift = self.samples.windows(2).map(|two| (two[1].ahead - two[0].ahead).abs()).max();
        let slack = self.samples.iter().map(|sample| sample.slack).max();
        let nanos = drift.unwrap_or(0).saturating_add(slack.unwrap_or(0));
        Duration::from_millis(1) + Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_clock_that_is_set_back_does_not_move_what_was_before() {
        let second = 1_000_000_000;
        let sample = |at, ahead| Sample { at: Moment(at), ahead, slack: 10 };
        let clock = WallClock::new(vec![sample(0, 100 * second), sample(10 * second, 90 * second)]);
        assert_eq!(clock.moment(95_000).0, -5 * second);
        // Between the samples the wall clock showed 100 s to 110 s; then it went back to 100 s.
        assert_eq!(clock.moment(101_000).0, 11 * second);
        assert!(clock.tolerance() > Duration::from_secs(10));
    }

    #[test]
    fn both_clocks_are_read_side_by_side() {
        let sample = Sample::take();
        assert!(Moment::now() >= sample.at);
        assert_eq!(Sample::parse(&sample.to_string()), Some(sample));
        assert!(WallClock::new(vec![sample]).tolerance() < Duration::from_secs(1));
    }
}
