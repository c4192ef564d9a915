//! Compares what the clients believed with what the servers' log says, and finds every contradiction.
//!
//! Most of it is a question of order alone, where no clock has a say: a fenced write is a transaction
//! in the log, and its zxid has to lie within the tenure whose token it carries. Where a belief that
//! wrote nothing is judged, times are compared: the one at which a client looked, against the one at
//! which the leader prepared the end of its tenure, which is no later than anybody could see it. Both
//! clocks are the same machine's, so they may be wrong by the millisecond to which the log cuts its
//! times, and by what the wall clock moved meanwhile (`WallClock::tolerance`).
//!
//! A holder whose claim an operator has deleted can't know before others hold, so what it believes is
//! not held against it from then on, for a while. All else is: above all that neither it nor anybody
//! else deletes a claim that is not its own.

mod account;
mod beliefs;
mod deletions;
mod order;
mod sharing;
#[cfg(test)]
mod tests;
mod violation;
mod waiting;

use std::time::Duration;

pub use account::{Account, Belief};
pub use violation::{Kind, Violation};

use crate::clock::Moment;
use crate::fault::{Fault, FaultKind};
use crate::history::History;
use crate::journal::Entry;
use crate::locks::LockName;

/// All that is known of a run.
pub struct Case<'a> {
    pub locks: &'a [LockName],
    pub history: &'a History,
    pub journals: &'a [(u32, Vec<Entry>)],
    pub faults: &'a [Fault],
    /// Processes that ended by themselves.
    pub crashed: &'a [u32],
    /// Nodes that were there although nobody held or wanted a lock any more.
    pub left: &'a [String],
    /// How far two times may be off against each other.
    pub tolerance: Duration,
    /// When all faults were over.
    pub calm: Moment,
    /// How long an acquire or a release may take after that.
    pub wait_limit: Duration,
    /// How soon a holder has to know that an operator has deleted its claim.
    pub hears_within: Duration,
}

/// What the judge found, and how much there was to judge.
#[derive(Debug, Default)]
pub struct Verdict {
    pub violations: Vec<Violation>,
    pub accounts: Vec<Account>,
    pub counts: Counts,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub acquisitions: u64,
    pub tenures: u64,
    /// Tenures that no client ever knew of: it was killed, frozen or gave up at that moment.
    pub unknown_tenures: u64,
    /// Fenced writes by what the clients know of them.
    pub writes_done: u64,
    pub writes_refused: u64,
    pub writes_unknown: u64,
    /// Times that a holder saw itself lose the lock.
    pub lost: u64,
    /// Acquisitions by work that ends with the lock.
    pub works: u64,
    /// Looks that said "not lost", each held against the log: steps of work among them.
    pub looks: u64,
    /// Times that a holder slept through the begin of its successor because it was frozen.
    pub frozen_through: u64,
    /// Times that a holder did because it got no processor.
    pub stalled_through: u64,
    /// Writes that a holder tried after its successor had begun; none of them may have been done.
    pub writes_too_late: u64,
    /// Tenures that an operator ended by deleting the claim, and how long a holder went on believing
    /// at most.
    pub robbed: u64,
    /// Those who came to hold because an operator had deleted their claim while it was young.
    pub robbed_young: u64,
    pub longest_unaware: Duration,
    /// Writes that passed the check of a robbed holder because another's node had the same name.
    pub writes_by_namesake: u64,
    /// Holds that an operator has broken, and those of them whose holder had lost them before their claim went.
    pub broken: u64,
    pub broken_off: u64,
    /// Writes that a holder tried when it had lost the lock, all of them refused.
    pub writes_when_lost: u64,
    /// Readers that held one lock together at most; permits of one semaphore that were taken, how often they were all,
    /// and how often there came to be more or fewer.
    pub most_readers: u64,
    pub most_permits: u64,
    pub full: u64,
    pub limits_changed: u64,
    /// Closes that reported success.
    pub closed: u64,
    pub hung: u64,
    pub orphans: u64,
    pub longest_wait: Duration,
    pub longest_wait_when_calm: Duration,
    pub longest_release: Duration,
}

impl Case<'_> {
    pub fn judge(&self) -> Verdict {
        let mut verdict = Verdict::default();
        let accounts = self.journals.iter().map(|(number, journal)| Account::of(*number, journal));
        let accounts: Vec<Account> = accounts.collect();
        let asks = accounts.iter().flat_map(|account| &account.asks);
        let works =
            asks.filter(|ask| ask.how == "work" && ask.ended.is_some() && ask.failed.is_none());
        verdict.counts.works = works.count() as u64;
        self.judge_order(&mut verdict);
        self.judge_sharing(&mut verdict);
        self.judge_deletions(&accounts, &mut verdict);
        self.judge_beliefs(&accounts, &mut verdict);
        self.judge_waiting(&accounts, &mut verdict);
        self.judge_closes(&accounts, &mut verdict);
        self.judge_leftovers(&mut verdict);
        let strange = self.history.strange.iter().chain(accounts.iter().flat_map(|it| &it.strange));
        let strange = strange.map(|what| Violation::new(Kind::Evidence, what.clone()));
        verdict.violations.extend(strange);
        let crashed = self.crashed.iter();
        let crashed = crashed.map(|it| Violation::new(Kind::Crashed, format!("client {it}")));
        verdict.violations.extend(crashed);
        verdict.accounts = accounts;
        verdict
    }

    /// A close that reports success has ended the session.
    fn judge_closes(&self, accounts: &[Account], verdict: &mut Verdict) {
        for (session, at) in accounts.iter().flat_map(|account| &account.closed) {
            verdict.counts.closed += 1;
            let ended = self.history.ended.get(session).map(|ended| ended.at);
            if ended.is_none_or(|ended| ended > *at + self.tolerance) {
                let what = format!("session {session:#x}");
                let mut violation = Violation::new(Kind::Unclosed, what).at(*at);
                violation.about.sessions = vec![*session];
                verdict.violations.push(violation);
            }
        }
    }

    fn judge_leftovers(&self, verdict: &mut Verdict) {
        let mut left: Vec<&String> = self.left.iter().chain(&self.history.left).collect();
        left.sort();
        left.dedup();
        verdict.counts.orphans = left.len() as u64;
        verdict.violations.extend(left.into_iter().map(|path| Violation::new(Kind::Orphan, path)));
    }

    /// When the process was killed, if it was: its journal may end anywhere then.
    fn killed(&self, process: u32) -> Option<Moment> {
        let mut faults = self.faults.iter();
        let is_it =
            |fault: &&Fault| fault.kind == FaultKind::ClientKilled && fault.target == process;
        faults.find(is_it).map(|fault| fault.from)
    }

    /// Whether the process was frozen at some time between these two.
    fn was_frozen(&self, process: u32, from: Moment, until: Moment) -> bool {
        self.faults.iter().any(|fault| {
            let is_it = fault.kind == FaultKind::ClientFrozen && fault.target == process;
            is_it && fault.from <= until && fault.until >= from
        })
    }

    fn lock_name(&self, lock: usize) -> &str {
        self.locks.get(lock).map_or("?", |lock| lock.name.as_str())
    }
}
