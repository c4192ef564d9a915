//! Whether everyone who waited came to an end, and how long it took.

use super::{Account, Case, Kind, Verdict, Violation};
use crate::clock::Moment;

impl Case<'_> {
    pub(super) fn judge_waiting(&self, accounts: &[Account], verdict: &mut Verdict) {
        for ask in accounts.iter().flat_map(|account| &account.asks) {
            let who = || {
                let name = self.lock_name(ask.lock);
                format!("{name}: client {}.{} ({})", ask.process, ask.thread, ask.how)
            };
            if let Some(why) = &ask.failed {
                let what = format!("{}: {why}", who());
                let violation = Violation::new(Kind::Failed, what).at(ask.ended.unwrap_or(ask.at));
                verdict.violations.push(violation.about(ask.lock, None, &[]));
            }
            self.judge_wait(ask.process, ask.lock, (ask.at, ask.ended), &who, verdict);
            // Who was killed has waited until then.
            let last = ask.ended.or_else(|| self.killed(ask.process));
            if let Some(ended) = last {
                let counts = &mut verdict.counts;
                counts.longest_wait = counts.longest_wait.max(ended.since(ask.at));
                let calm = ended.since(ask.at.max(self.calm));
                counts.longest_wait_when_calm = counts.longest_wait_when_calm.max(calm);
            }
        }
        for belief in accounts.iter().flat_map(|account| &account.beliefs) {
            let who = || {
                let (process, thread) = (belief.process, belief.thread);
                format!("{}: client {process}.{thread} (holds)", self.lock_name(belief.lock))
            };
            let released = belief.released.as_ref().map(|(at, _)| *at);
            let times = (belief.got, released);
            self.judge_wait(belief.process, belief.lock, times, &who, verdict);
            if let (Some(from), Some(until)) = (belief.release, released) {
                let longest = &mut verdict.counts.longest_release;
                *longest = (*longest).max(until.since(from));
            }
        }
    }

    fn judge_wait(
        &self,
        process: u32,
        lock: usize,
        (from, until): (Moment, Option<Moment>),
        who: &dyn Fn() -> String,
        verdict: &mut Verdict,
    ) {
        let what = match until {
            Some(until) if until.since(from.max(self.calm)) > self.wait_limit => {
                let seconds = until.since(from.max(self.calm)).as_secs_f64();
                format!("{} took {seconds:.1} s when all was well", who())
            }
            None if self.killed(process).is_none() => format!("{} never ended", who()),
            _ => return,
        };
        verdict.counts.hung += 1;
        let violation = Violation::new(Kind::Hung, what).at(from);
        verdict.violations.push(violation.about(lock, None, &[]));
    }
}
