//! When a command has to get SIGTERM, and when SIGKILL.

use std::time::Duration;

/// The times of one command. Points in time are since the machine was booted.
pub struct Ending {
    until: Duration,
    grace: Duration,
    margin: Duration,
    phase: Phase,
    /// When it is killed in any case.
    kill_at: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Lives,
    Terminated { kill_at: Duration },
    Killed,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Terminate,
    Kill,
}

impl Ending {
    /// `until`: when the lock may be lost; `margin`: how long before that all have to be killed.
    pub fn new(until: Duration, grace: Duration, margin: Duration) -> Ending {
        Ending { until, grace, margin, phase: Phase::Lives, kill_at: None }
    }

    /// The lock is held for longer.
    pub fn renew(&mut self, until: Duration) {
        self.until = self.until.max(until);
    }

    /// It is to end, whether the lock is held or not.
    pub fn end(&mut self, now: Duration) -> Option<Step> {
        if self.phase != Phase::Lives {
            return None;
        }
        if now >= self.kill_by() {
            return Some(self.kill());
        }
        self.phase = Phase::Terminated { kill_at: now + self.grace };
        Some(Step::Terminate)
    }

    /// It is to be killed then, if it lives.
    pub fn kill_at(&mut self, at: Duration) {
        self.kill_at = Some(self.kill_at.map_or(at, |before| before.min(at)));
    }

    /// Whether the lock would be lost if it lived on.
    pub fn is_late(&self, now: Duration) -> bool {
        now >= self.kill_by()
    }

    /// It is to be killed.
    pub fn kill(&mut self) -> Step {
        self.phase = Phase::Killed;
        Step::Kill
    }

    /// What is due by now.
    pub fn due(&mut self, now: Duration) -> Option<Step> {
        match self.phase {
            _ if now < self.next()? => None,
            Phase::Lives | Phase::Terminated { .. } if self.kill_at.is_some_and(|at| now >= at) => {
                Some(self.kill())
            }
            Phase::Lives => self.end(now),
            Phase::Terminated { .. } => Some(self.kill()),
            Phase::Killed => None,
        }
    }

    /// When something will be due.
    pub fn next(&self) -> Option<Duration> {
        let next = match self.phase {
            Phase::Lives => self.kill_by().saturating_sub(self.grace),
            Phase::Terminated { kill_at } => kill_at.min(self.kill_by()),
            Phase::Killed => return None,
        };
        Some(self.kill_at.map_or(next, |at| at.min(next)))
    }

    fn kill_by(&self) -> Duration {
        self.until.saturating_sub(self.margin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Held until 100, with a grace of 10 and a margin of 5.
    fn ending() -> Ending {
        Ending::new(at(100), at(10), at(5))
    }

    #[test]
    fn both_signals_come_before_the_lock_may_be_lost() {
        let mut ending = ending();
        assert_eq!((ending.due(at(84)), ending.next()), (None, Some(at(85))));
        assert_eq!((ending.due(at(85)), ending.next()), (Some(Step::Terminate), Some(at(95))));
        assert_eq!((ending.due(at(94)), ending.due(at(95))), (None, Some(Step::Kill)));
        assert_eq!((ending.due(at(200)), ending.next()), (None, None));
    }

    #[test]
    fn a_renewal_puts_it_off_but_does_not_take_back_a_termination() {
        let mut ending = ending();
        ending.renew(at(110));
        ending.renew(at(105));
        assert_eq!((ending.due(at(94)), ending.due(at(95))), (None, Some(Step::Terminate)));
        ending.renew(at(200));
        assert_eq!(ending.due(at(105)), Some(Step::Kill), "the grace is over");
    }

    #[test]
    fn what_wakes_late_kills_at_once() {
        assert_eq!(ending().due(at(95)), Some(Step::Kill));
        assert_eq!(ending().end(at(99)), Some(Step::Kill));
    }

    #[test]
    fn what_was_asked_to_end_is_killed_when_its_time_is_over_however_long_the_lock_is_held() {
        let mut ending = ending();
        ending.kill_at(at(30));
        ending.kill_at(at(40));
        ending.renew(at(200));
        assert_eq!((ending.due(at(29)), ending.next()), (None, Some(at(30))));
        assert_eq!((ending.due(at(30)), ending.is_late(at(30))), (Some(Step::Kill), false));
        assert_eq!((ending.due(at(31)), ending.next()), (None, None));
    }

    #[test]
    fn an_end_for_another_reason_has_its_grace_but_not_beyond_the_lock() {
        let mut early = ending();
        assert_eq!((early.end(at(20)), early.next()), (Some(Step::Terminate), Some(at(30))));
        assert_eq!(early.end(at(21)), None, "it is ending");
        let mut late = ending();
        assert_eq!((late.end(at(90)), late.next()), (Some(Step::Terminate), Some(at(95))));
    }
}
