//! What the log alone must show: tokens that grow, and writes within their tenures.

use std::collections::HashSet;

use super::{Case, Kind, Verdict, Violation};
use crate::history::{LockHistory, Write};

impl Case<'_> {
    pub(super) fn judge_order(&self, verdict: &mut Verdict) {
        for (number, lock) in self.history.locks.iter().enumerate() {
            let name = self.lock_name(number);
            verdict.counts.tenures += lock.tenures.len() as u64;
            tokens_of_tenures(name, number, lock, &mut verdict.violations);
            let robbed: HashSet<i64> =
                lock.tenures.iter().filter(|it| it.robbed().is_some()).map(|it| it.token).collect();
            // A check asks for a name, and after a deletion by hand a name may be another's. That is
            // documented, and counted.
            let (excused, writes): (Vec<&Write>, Vec<&Write>) = lock
                .writes
                .iter()
                .partition(|write| write.by_namesake && robbed.contains(&write.stamp.token));
            verdict.counts.writes_by_namesake += excused.len() as u64;
            let is_shared = self.locks.get(number).is_some_and(|lock| lock.sort.is_shared());
            // Those who hold together write in any order.
            if !is_shared {
                tokens_in_register(name, number, &writes, &mut verdict.violations);
            }
            writes_in_tenures(name, number, lock, &writes, &mut verdict.violations);
        }
    }
}

fn tokens_of_tenures(
    name: &str,
    number: usize,
    lock: &LockHistory,
    violations: &mut Vec<Violation>,
) {
    for two in lock.tenures.windows(2) {
        let [before, after] = [&two[0], &two[1]];
        if after.token <= before.token {
            let what = format!("{name}: tenure {:#x} after {:#x}", after.token, before.token);
            let violation = Violation::new(Kind::TokenOrder, what).at(after.begin.at);
            violations.push(violation.about(number, None, &[before.session, after.session]));
        }
    }
}

fn tokens_in_register(
    name: &str,
    number: usize,
    writes: &[&Write],
    violations: &mut Vec<Violation>,
) {
    for two in writes.windows(2) {
        let [before, after] = [two[0].stamp, two[1].stamp];
        // One holder writes more than once, and counts its writes.
        if (after.token, after.number) <= (before.token, before.number) {
            let what = format!(
                "{name}: the register went from {:#x} (write {}) to {:#x} (write {})",
                before.token, before.number, after.token, after.number
            );
            let violation = Violation::new(Kind::TokenOrder, what).at(two[1].point.at);
            violations.push(violation.about(number, None, &[two[0].session, two[1].session]));
        }
    }
}

fn writes_in_tenures(
    name: &str,
    number: usize,
    lock: &LockHistory,
    writes: &[&Write],
    violations: &mut Vec<Violation>,
) {
    for write in writes {
        let (token, zxid) = (write.stamp.token, write.point.zxid);
        let who = || format!("client {}.{}", write.stamp.process, write.stamp.thread);
        let mut unfenced = |what: String| {
            let what = format!("{name}: {} wrote {token:#x} at {zxid:#x}, {what}", who());
            let violation = Violation::new(Kind::Unfenced, what).at(write.point.at);
            violations.push(violation.about(number, None, &[write.session]));
        };
        match lock.tenures.iter().find(|tenure| tenure.token == token) {
            None => unfenced("which never held".to_owned()),
            Some(tenure) if zxid <= tenure.begin.zxid => {
                unfenced(format!("but its tenure began at {:#x}", tenure.begin.zxid));
            }
            Some(tenure) if tenure.end.is_some_and(|end| zxid >= end.zxid) => {
                let end = tenure.end.map_or(0, |end| end.zxid);
                unfenced(format!("but its tenure had ended at {end:#x}"));
            }
            Some(tenure) if tenure.session != write.session => {
                unfenced(format!("from session {:#x}, not {:#x}", write.session, tenure.session));
            }
            Some(_) => {}
        }
    }
}
