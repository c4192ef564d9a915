//! What a soak tells: a report for people, one object for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::evidence::Evidence;
use crate::explain;
use crate::fault::FaultKind;
use crate::judge::Verdict;

/// Of more violations than that, only the number is told.
const TOLD: usize = 20;
/// So many are explained by what the log and the journals say around them.
const EXPLAINED: usize = 6;

pub struct Report<'a> {
    pub evidence: &'a Evidence,
    pub verdict: &'a Verdict,
}

impl Report<'_> {
    fn faults(&self, kind: FaultKind) -> usize {
        self.evidence.faults.iter().filter(|fault| fault.kind == kind).count()
    }

    fn lasted(&self) -> Duration {
        self.evidence.run.calm.since(self.evidence.run.start)
    }

    fn by_sort(&self) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for belief in self.verdict.accounts.iter().flat_map(|account| &account.beliefs) {
            if let Some(lock) = self.evidence.locks.get(belief.lock) {
                *sums.entry(lock.sort.to_string()).or_insert(0) += 1;
            }
        }
        sums
    }

    fn by_kind(&self) -> BTreeMap<&'static str, u64> {
        let mut sums = BTreeMap::new();
        for violation in &self.verdict.violations {
            *sums.entry(violation.kind.name()).or_insert(0) += 1;
        }
        sums
    }

    pub fn text(&self) -> String {
        let (run, counts) = (&self.evidence.run, &self.verdict.counts);
        let mut text = String::new();
        let mut line = |line: String| {
            let _ = writeln!(text, "{}", line.trim_end());
        };
        line(format!(
            "soak: seed {}, {:.0} s of faults, {} client processes, {} sessions, {} locks, \
             session timeout {:.1} s, {}",
            run.seed,
            self.lasted().as_secs_f64(),
            run.processes,
            run.sessions,
            self.evidence.locks.len(),
            run.session_timeout.as_secs_f64(),
            run.shape,
        ));
        line(String::new());
        let by: Vec<String> =
            self.by_sort().iter().map(|(name, sum)| format!("{name} {sum}")).collect();
        let per_second = counts.acquisitions as f64 / self.lasted().as_secs_f64().max(0.001);
        line(format!(
            "acquisitions      {:>8}   {} ({per_second:.0} per s)",
            counts.acquisitions,
            by.join(", ")
        ));
        line(format!("faults            {:>8}", self.evidence.faults.len()));
        for kind in FaultKind::ALL {
            line(format!("  {:<18}{:>6}", kind.name(), self.faults(kind)));
        }
        line(format!(
            "fenced writes     {:>8}   confirmed; {} refused, {} of unknown outcome",
            counts.writes_done, counts.writes_refused, counts.writes_unknown
        ));
        line(format!(
            "losses seen       {:>8}   {} slept through while frozen, {} while stalled; \
             {} writes tried after a successor had begun",
            counts.lost, counts.frozen_through, counts.stalled_through, counts.writes_too_late
        ));
        line(format!(
            "claims deleted    {:>8}   of holders, {} of who then held; they believed for {} at most; \
             {} writes let pass by a namesake",
            counts.robbed,
            counts.robbed_young,
            seconds(counts.longest_unaware),
            counts.writes_by_namesake
        ));
        line(format!(
            "longest wait      {:>8}   {} when the faults were over; longest release {}",
            seconds(counts.longest_wait),
            seconds(counts.longest_wait_when_calm),
            seconds(counts.longest_release)
        ));
        line(format!(
            "servers' log      {:>8}   transactions, {} tenures ({} that no client knew of); \
             {} proposals died with a leader",
            self.evidence.txns.len(),
            counts.tenures,
            counts.unknown_tenures,
            self.evidence.discarded
        ));
        line(format!(
            "digests           {:>8}   of the servers' own confirm this history; \
             {} members said that they diverged",
            self.evidence.confirmed,
            run.diverged.len()
        ));
        for told in &run.diverged {
            line(format!("  {told}"));
        }
        line(format!(
            "looks judged      {:>8}   that said \"not lost\"; clocks agree to {:.2} ms",
            counts.looks,
            self.evidence.wall.tolerance().as_secs_f64() * 1_000.0
        ));
        line(format!("work while held   {:>8}   each step held against the log", counts.works));
        line(format!(
            "holds broken      {:>8}   of {}: lost before the claim went; {} writes tried after a loss",
            counts.broken_off, counts.broken, counts.writes_when_lost
        ));
        line(format!(
            "held together     {:>8}   readers at most, and {} permits; all were taken {} times, \
             their number changed {} times",
            counts.most_readers, counts.most_permits, counts.full, counts.limits_changed
        ));
        line(format!("clients closed    {:>8}   each close held against the log", counts.closed));
        line(format!("hung waiters      {:>8}", counts.hung));
        line(format!("orphans           {:>8}", counts.orphans));
        let kinds: Vec<String> =
            self.by_kind().iter().map(|(name, sum)| format!("{name} {sum}")).collect();
        line(format!(
            "violations        {:>8}   {}",
            self.verdict.violations.len(),
            kinds.join(", ")
        ));
        for (number, violation) in self.complaints().iter().enumerate().take(TOLD) {
            line(format!("  {violation}"));
            for told in self.story(number) {
                line(format!("      {told}"));
            }
        }
        if self.verdict.violations.len() > TOLD {
            line(format!("  and {} more", self.verdict.violations.len() - TOLD));
        }
        text
    }

    /// What led to a violation; of later ones it is likely the same.
    fn story(&self, number: usize) -> Vec<String> {
        let violation = self.verdict.violations.get(number).filter(|_| number < EXPLAINED);
        violation.map_or_else(Vec::new, |it| explain::explain(self.evidence, self.verdict, it))
    }

    fn stories(&self) -> Vec<Vec<String>> {
        (0..self.verdict.violations.len().min(EXPLAINED)).map(|number| self.story(number)).collect()
    }

    fn complaints(&self) -> Vec<String> {
        let start = self.evidence.run.start;
        self.verdict.violations.iter().map(|violation| violation.told(start)).collect()
    }

    pub fn json(&self) -> Value {
        let (run, counts) = (&self.evidence.run, &self.verdict.counts);
        let faults: serde_json::Map<String, Value> = FaultKind::ALL
            .iter()
            .map(|kind| (kind.key().into(), self.faults(*kind).into()))
            .collect();
        json!({
            "seed": run.seed,
            "first_id": run.shape.first_id,
            "tick_seconds": rounded(run.shape.tick),
            "sync_limit_seconds": rounded(run.shape.sync_limit),
            "seconds": rounded(self.lasted()),
            "processes": run.processes,
            "sessions": run.sessions,
            "locks": self.evidence.locks.len(),
            "session_timeout_seconds": rounded(run.session_timeout),
            "acquisitions": counts.acquisitions,
            "acquisitions_by_sort": self.by_sort(),
            "faults": self.evidence.faults.len(),
            "faults_by_kind": faults,
            "writes": {
                "confirmed": counts.writes_done,
                "refused": counts.writes_refused,
                "unknown": counts.writes_unknown,
                "tried_after_a_successor_began": counts.writes_too_late,
                "tried_after_a_loss": counts.writes_when_lost,
            },
            "lost": counts.lost,
            "frozen_through": counts.frozen_through,
            "stalled_through": counts.stalled_through,
            "robbed": counts.robbed,
            "longest_unaware_seconds": rounded(counts.longest_unaware),
            "writes_by_namesake": counts.writes_by_namesake,
            "longest_wait_seconds": rounded(counts.longest_wait),
            "longest_wait_when_calm_seconds": rounded(counts.longest_wait_when_calm),
            "longest_release_seconds": rounded(counts.longest_release),
            "transactions": self.evidence.txns.len(),
            "tenures": counts.tenures,
            "unknown_tenures": counts.unknown_tenures,
            "discarded_proposals": self.evidence.discarded,
            "holes": self.evidence.holes,
            "digests_confirmed": self.evidence.confirmed,
            "diverged": run.diverged,
            "closed": counts.closed,
            "looks": counts.looks,
            "works": counts.works,
            "tolerance_seconds": self.evidence.wall.tolerance().as_secs_f64(),
            "breaks": { "broken": counts.broken, "broken_off": counts.broken_off },
            "together": {
                "most_readers": counts.most_readers,
                "most_permits": counts.most_permits,
                "limits_changed": counts.limits_changed,
            },
            "hung": counts.hung,
            "orphans": counts.orphans,
            "violations": self.verdict.violations.len(),
            "violations_by_kind": self.by_kind(),
            "complaints": self.complaints().into_iter().take(TOLD).collect::<Vec<_>>(),
            "stories": self.stories(),
        })
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Seconds to three digits behind the point.
fn rounded(time: Duration) -> f64 {
    (time.as_secs_f64() * 1_000.0).round() / 1_000.0
}
