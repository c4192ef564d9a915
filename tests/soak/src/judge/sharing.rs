//! Locks that several hold at a time: who may have held together, by the log alone.

use super::{Case, Kind, Verdict, Violation};
use crate::history::{LockHistory, Part, Tenure};

impl Case<'_> {
    pub(super) fn judge_sharing(&self, verdict: &mut Verdict) {
        for (number, lock) in self.history.locks.iter().enumerate() {
            let name = self.lock_name(number);
            let mut violate = |kind, tenure: &Tenure, what: String| {
                let violation = Violation::new(kind, format!("{name}: {what}"));
                let violation = violation.at(tenure.begin.at);
                let sessions = [tenure.session];
                verdict.violations.push(violation.about(number, Some(&tenure.node), &sessions));
            };
            let mut running: Vec<&Tenure> = Vec::new();
            for tenure in &lock.tenures {
                running.retain(|it| it.end.is_none_or(|end| end.zxid > tenure.begin.zxid));
                let with = running.iter().find(|it| !tenure.part.goes_with(it.part));
                if let Some(with) = with {
                    let what = format!("{:#x} began beside {:#x}", tenure.token, with.token);
                    violate(Kind::Together, tenure, what);
                }
                running.push(tenure);
                match tenure.part {
                    Part::Alone => {}
                    Part::Reads => {
                        let most = &mut verdict.counts.most_readers;
                        *most = (*most).max(running.len() as u64);
                    }
                    Part::Permits(own) => {
                        let taken: u64 = running.iter().map(|it| permits(it)).sum();
                        let limit = u64::from(lock.limit(tenure.begin.zxid));
                        if taken > limit {
                            let what = format!(
                                "{:#x} took {own} permits, which makes {taken} of {limit}",
                                tenure.token
                            );
                            violate(Kind::Together, tenure, what);
                        }
                        let counts = &mut verdict.counts;
                        counts.most_permits = counts.most_permits.max(taken);
                        counts.full += u64::from(taken == limit);
                    }
                }
            }
            overtaken(lock, |reader, writer| {
                let what = format!("reader {:#x} before writer {:#x}", reader.token, writer.token);
                violate(Kind::Overtaken, reader, what);
            });
            let limits = lock.limits.windows(2).filter(|two| two[0].1 != two[1].1);
            verdict.counts.limits_changed += limits.count() as u64;
        }
    }
}

fn permits(tenure: &Tenure) -> u64 {
    match tenure.part {
        Part::Permits(number) => u64::from(number),
        _ => 0,
    }
}

/// Readers that came after a writer which waited, and held before it. (A writer that has given up has no tenure.)
fn overtaken<'a>(lock: &'a LockHistory, mut found: impl FnMut(&'a Tenure, &'a Tenure)) {
    // Of the writers from here on the one that came first.
    let mut writer: Option<&Tenure> = None;
    for tenure in lock.tenures.iter().rev() {
        match (tenure.part, writer) {
            (Part::Alone, Some(first)) if first.token < tenure.token => {}
            (Part::Alone, _) => writer = Some(tenure),
            (Part::Reads, Some(first)) if first.token < tenure.token => found(tenure, first),
            _ => {}
        }
    }
}
