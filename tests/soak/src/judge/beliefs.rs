//! What clients believed, held against the tenures in the log.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::violation::late;
use super::{Account, Belief, Case, Kind, Verdict, Violation};
use crate::clock::Moment;
use crate::history::Tenure;
use crate::journal::{State, Written};

/// For how long a claim is believed to be there, and a hold to last, although nobody watches whether the znode is deleted.
const UNWATCHED: Duration = Duration::from_millis(100);

/// Which tenure a belief is about, and who came after it.
struct Match<'a> {
    belief: &'a Belief,
    tenure: &'a Tenure,
    successor: Option<&'a Tenure>,
}

impl Match<'_> {
    /// The violation, with whom it is about.
    fn told(&self, violation: Violation) -> Violation {
        let sessions = [Some(self.belief.session), self.successor.map(|next| next.session)];
        let sessions: Vec<i64> = sessions.into_iter().flatten().collect();
        violation.about(self.belief.lock, Some(&self.tenure.node), &sessions)
    }
}

impl Case<'_> {
    pub(super) fn judge_beliefs(&self, accounts: &[Account], verdict: &mut Verdict) {
        let index = |lock: &crate::history::LockHistory| -> HashMap<i64, usize> {
            let tenures = lock.tenures.iter().enumerate();
            tenures.map(|(place, tenure)| (tenure.token, place)).collect()
        };
        let places: Vec<HashMap<i64, usize>> = self.history.locks.iter().map(index).collect();
        let stamps: Vec<HashSet<(i64, u32)>> = self
            .history
            .locks
            .iter()
            .map(|lock| lock.writes.iter().map(|it| (it.stamp.token, it.stamp.number)).collect())
            .collect();
        let mut known: HashSet<(usize, i64)> = HashSet::new();
        for account in accounts {
            for belief in &account.beliefs {
                verdict.counts.acquisitions += 1;
                verdict.counts.lost += u64::from(belief.is_lost());
                let who = self.who(belief);
                let mut violate = |kind, what: &str| {
                    let violation = Violation::new(kind, format!("{who} {what}")).at(belief.got);
                    let violation = violation.about(belief.lock, None, &[belief.session]);
                    verdict.violations.push(violation);
                };
                if !known.insert((belief.lock, belief.token)) {
                    violate(Kind::SharedToken, "is not the only one to have it");
                }
                let place = places.get(belief.lock).and_then(|it| it.get(&belief.token));
                let Some(&place) = place else {
                    let Some(unaware) = self.robbed_young(belief) else {
                        violate(Kind::NeverHeld, "says it holds, but the log does not");
                        continue;
                    };
                    let counts = &mut verdict.counts;
                    counts.robbed_young += 1;
                    counts.longest_unaware = counts.longest_unaware.max(unaware);
                    continue;
                };
                let tenures = &self.history.locks[belief.lock].tenures;
                let tenure = &tenures[place];
                let successor = self.history.locks[belief.lock].successor(place);
                let it = Match { belief, tenure, successor };
                self.judge_times(&it, verdict);
                self.judge_telling(&it, account, verdict);
                self.judge_write_reports(&it, &stamps[belief.lock], verdict);
            }
        }
        verdict.counts.unknown_tenures =
            verdict.counts.tenures - known.len().min(verdict.counts.tenures as usize) as u64;
    }

    /// How long it believed to hold whose claim an operator deleted while that was believed to be there although nobody
    /// watched it. `None`: it must not have believed that.
    fn robbed_young(&self, belief: &Belief) -> Option<Duration> {
        let (made, gone) = self.history.locks[belief.lock].robbed.get(&belief.token)?;
        let was_young = gone.at <= made.at + UNWATCHED + self.tolerance;
        let last = belief.believed().last().unwrap_or(belief.got);
        let knew_in_time = last <= gone.at + 2 * UNWATCHED + self.hears_within;
        (was_young && knew_in_time).then(|| last.since(gone.at))
    }

    pub(super) fn who(&self, belief: &Belief) -> String {
        let Belief { process, thread, lock, token, .. } = belief;
        format!("{}: client {process}.{thread} with token {token:#x}", self.lock_name(*lock))
    }

    /// A belief lies within its tenure: every look that said "not lost" was before the end.
    fn judge_times(&self, it: &Match, verdict: &mut Verdict) {
        let Match { belief, tenure, successor } = *it;
        let who = self.who(belief);
        let mut violate = |kind, at, what: String| {
            verdict.violations.push(it.told(Violation::new(kind, format!("{who} {what}")).at(at)));
        };
        if belief.got + self.tolerance < tenure.begin.at {
            let early = late(tenure.begin.at.since(belief.got));
            violate(Kind::TooEarly, belief.got, format!("had it {early} before it began"));
        }
        let held = belief.looks.first().is_some_and(|(_, state)| *state == State::Held);
        if held && belief.session != tenure.session {
            let what = format!("is session {:#x}, not {:#x}", belief.session, tenure.session);
            violate(Kind::Evidence, belief.got, what);
        }
        let mut late_looks = Vec::new();
        for look in belief.believed() {
            verdict.counts.looks += 1;
            let Some(end) = tenure.end.filter(|end| look > end.at + self.tolerance) else {
                continue;
            };
            if self.may_not_know(it, look) {
                let longest = &mut verdict.counts.longest_unaware;
                *longest = (*longest).max(look.since(end.at));
            } else {
                late_looks.push(look);
            }
        }
        // A holder that looks on and on is reported once.
        let (Some(end), Some(&first), Some(&last)) =
            (tenure.end, late_looks.first(), late_looks.last())
        else {
            return;
        };
        let times = match late_looks.len() {
            1 => String::new(),
            count => format!("{count} times, at last "),
        };
        let mut what = format!("{who} looked {times}{} after its end", late(last.since(end.at)));
        if let Some(next) = successor.filter(|next| last > next.begin.at + self.tolerance) {
            what += &format!(", {} after {:#x} began", late(last.since(next.begin.at)), next.token);
        }
        verdict.violations.push(it.told(Violation::new(Kind::TooLate, what).at(first)));
    }

    /// Whether an operator deleted the holder's claim, and not long ago: it hears of it afterwards.
    fn may_not_know(&self, it: &Match, at: Moment) -> bool {
        let robbed = self.robbed(it.tenure, it.belief);
        robbed.is_some_and(|end| at <= end + self.hears_within)
    }

    /// A holder knows of the end before a successor begins; unless it stood still, and then what it
    /// still wrote was refused, which the order of the log has shown. Who was broken off knows before its claim goes.
    fn judge_telling(&self, it: &Match, account: &Account, verdict: &mut Verdict) {
        let Match { belief, tenure, successor } = *it;
        let counts = &mut verdict.counts;
        let Some(knew) = belief.knew() else { return };
        // Who has begun to release by then is not broken off.
        let is_released = |at| belief.release.is_some_and(|release| release <= at);
        let is_broken = tenure.broken.is_some_and(|order| !is_released(order.at))
            && tenure.end.is_some()
            && self.robbed(tenure, belief).is_none();
        counts.broken += u64::from(is_broken);
        if let Some(next) = successor {
            let late_writes = belief.writes.iter().filter(|write| write.sent > next.begin.at);
            counts.writes_too_late += late_writes.count() as u64;
        }
        let (what, next) = match (tenure.end, successor) {
            (Some(end), _) if is_broken => ("its claim was gone".to_owned(), end),
            (_, Some(next)) => (format!("{:#x} began", next.token), next.begin),
            _ => return,
        };
        if knew <= next.at + self.tolerance {
            counts.broken_off += u64::from(is_broken);
            return;
        }
        if self.may_not_know(it, knew) {
            return;
        }
        // Who had no look at it before has not believed in it; a later look is judged by its time.
        let Some(since) = belief.last_believed(next.at) else { return };
        if self.was_frozen(belief.process, since, knew) {
            counts.frozen_through += 1;
        } else if account.stood_still(since, knew) {
            counts.stalled_through += 1;
        } else {
            let by = late(knew.since(next.at));
            let what = format!("{} knew {by} after {what}", self.who(belief));
            verdict.violations.push(it.told(Violation::new(Kind::ToldLate, what).at(knew)));
        }
    }

    /// What was confirmed was done, and what was refused was not.
    fn judge_write_reports(&self, it: &Match, done: &HashSet<(i64, u32)>, verdict: &mut Verdict) {
        let belief = it.belief;
        for write in &belief.writes {
            let is_done = done.contains(&(belief.token, write.number));
            let what = match write.written {
                Written::Done => {
                    verdict.counts.writes_done += 1;
                    (!is_done).then_some("was confirmed, but is not in the log")
                }
                Written::Refused => {
                    verdict.counts.writes_refused += 1;
                    is_done.then_some("was refused, but is in the log")
                }
                Written::Unknown => {
                    verdict.counts.writes_unknown += 1;
                    None
                }
            };
            if belief.knew_lost().is_some_and(|lost| write.sent > lost) {
                verdict.counts.writes_when_lost += 1;
                if write.written == Written::Done {
                    let what = format!("{}: write {}", self.who(belief), write.number);
                    let violation = Violation::new(Kind::WroteWhenLost, what).at(write.sent);
                    verdict.violations.push(it.told(violation));
                }
            }
            if let Some(what) = what {
                let what = format!("{}: write {} {what}", self.who(belief), write.number);
                let violation = Violation::new(Kind::WriteReport, what).at(write.sent);
                verdict.violations.push(it.told(violation));
            }
        }
    }
}
