//! The story of a violation: what the log has on the znode, what became of the sessions that had a part in it, what
//! their clients wrote down, and which faults there were.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use crate::clock::Moment;
use crate::evidence::Evidence;
use crate::judge::{Verdict, Violation};
use crate::locks::LockName;
use crate::txnlog::{Change, Txn};

/// So many of each sort are shown, the latest of them; of the log, so many of those who had a part, and of others.
const SHOWN: usize = 12;
/// What happened this long before a violation, and after it, may have to do with it.
const BEFORE: Duration = Duration::from_secs(10);
const AFTER: Duration = Duration::from_millis(200);

/// The lines of the story, with a heading for each part.
pub fn explain(evidence: &Evidence, verdict: &Verdict, violation: &Violation) -> Vec<String> {
    let Some(at) = violation.at else { return Vec::new() };
    let story = Story { evidence, whose: whose(evidence, verdict), violation, at };
    let parts = [
        ("the servers' log", story.transactions()),
        ("what the clients wrote down", story.journals()),
        ("faults", story.faults()),
    ];
    parts
        .into_iter()
        .filter(|(_, lines)| !lines.is_empty())
        .flat_map(|(heading, lines)| {
            let indented = lines.into_iter().map(|line| format!("  {line}"));
            std::iter::once(format!("{heading}:")).chain(indented)
        })
        .collect()
}

/// The client and the thread that had a session.
type Whose = HashMap<i64, (u32, u16)>;

fn whose(evidence: &Evidence, verdict: &Verdict) -> Whose {
    let writes = evidence.history.locks.iter().flat_map(|lock| &lock.writes);
    let by_writes = writes.map(|it| (it.session, (it.stamp.process, it.stamp.thread)));
    let beliefs = verdict.accounts.iter().flat_map(|account| &account.beliefs);
    by_writes.chain(beliefs.map(|it| (it.session, (it.process, it.thread)))).collect()
}

struct Story<'a> {
    evidence: &'a Evidence,
    whose: Whose,
    violation: &'a Violation,
    at: Moment,
}

impl Story<'_> {
    fn seconds(&self, at: Moment) -> String {
        format!("{:.3} s", (at.0 - self.evidence.run.start.0) as f64 / 1e9)
    }

    fn is_near(&self, from: Moment, until: Moment) -> bool {
        from <= self.at + AFTER && until + BEFORE >= self.at
    }

    fn lock(&self) -> Option<&LockName> {
        self.evidence.locks.get(self.violation.about.lock?)
    }

    fn who(&self, session: i64) -> String {
        if self.evidence.run.operators.contains(&session) {
            return format!("{session:#x} (the operator)");
        }
        match self.whose.get(&session) {
            Some((process, thread)) => format!("{session:#x} (client {process}.{thread})"),
            None => format!("{session:#x}"),
        }
    }

    /// What was done to the claim's znode, or where none is named to the lock; and what else the sessions did to the
    /// lock, and what became of them.
    fn transactions(&self) -> Vec<String> {
        let about = &self.violation.about;
        let (path, register) = match self.lock() {
            Some(lock) => (lock.path(), lock.register()),
            None => return Vec::new(),
        };
        let is_of_lock = |it: &str| {
            it == path
                || it == register
                || it.strip_prefix(&path).is_some_and(|rest| rest.starts_with('/'))
        };
        let mut lines = Vec::new();
        // Whose znodes there are, to tell what the end of a session took away.
        let mut owned: HashMap<String, (i64, i64)> = HashMap::new();
        for txn in &self.evidence.txns {
            let at = self.evidence.wall.moment(txn.time);
            if at > self.at + AFTER {
                break;
            }
            let has_part = about.sessions.contains(&txn.session);
            for change in &txn.changes {
                let on = match change {
                    Change::Create { path, .. }
                    | Change::Delete { path }
                    | Change::Set { path, .. } => path,
                    Change::Close { .. } => {
                        let gone: BTreeSet<&String> = owned
                            .iter()
                            .filter(|(path, (session, _))| {
                                let is_its_own = *session == txn.session;
                                is_its_own && about.node.as_ref().is_none_or(|node| node == *path)
                            })
                            .map(|(path, _)| path)
                            .collect();
                        if has_part || !gone.is_empty() {
                            let with = gone.iter().map(|path| format!(", and with it {path}"));
                            lines.push((
                                has_part,
                                self.told(txn, "closed", &with.collect::<String>()),
                            ));
                        }
                        owned.retain(|_, (session, _)| *session != txn.session);
                        continue;
                    }
                    Change::Open { timeout } if has_part => {
                        lines.push((
                            has_part,
                            self.told(txn, "opened", &format!(", of {timeout} ms")),
                        ));
                        continue;
                    }
                    Change::Open { .. } | Change::Check { .. } => continue,
                };
                if !is_of_lock(on) {
                    continue;
                }
                let done = match change {
                    Change::Create { .. } => "created",
                    Change::Delete { .. } => "deleted",
                    _ => "set",
                };
                let of = match owned.get(on) {
                    Some((owner, czxid)) if *owner != txn.session => {
                        format!(" {on}, {czxid:#x} of {}", self.who(*owner))
                    }
                    Some((_, czxid)) => format!(" {on}, its own {czxid:#x}"),
                    None => format!(" {on}"),
                };
                match change {
                    Change::Create { ephemeral: true, .. } => {
                        owned.insert(on.clone(), (txn.session, txn.zxid));
                    }
                    Change::Delete { .. } => drop(owned.remove(on)),
                    _ => {}
                }
                let is_it = about.node.as_ref().is_none_or(|node| node == on) && on != &register;
                if is_it || has_part {
                    lines.push((has_part, self.told(txn, done, &of)));
                }
            }
        }
        // What others did since must not hide what those sessions did.
        let mut left = [SHOWN; 2];
        lines.reverse();
        lines.retain(|(has_part, _)| {
            let left = &mut left[usize::from(*has_part)];
            let is_shown = *left > 0;
            *left = left.saturating_sub(1);
            is_shown
        });
        lines.into_iter().rev().map(|(_, line)| line).collect()
    }

    fn told(&self, txn: &Txn, done: &str, what: &str) -> String {
        let at = self.seconds(self.evidence.wall.moment(txn.time));
        format!("{at} {:#x}: {} {done}{what}", txn.zxid, self.who(txn.session))
    }

    /// What those who had the sessions wrote down, and when their processes stood still.
    fn journals(&self) -> Vec<String> {
        let sessions = self.violation.about.sessions.iter();
        let clients: BTreeSet<(u32, u16)> =
            sessions.filter_map(|session| self.whose.get(session)).copied().collect();
        let mut lines = Vec::new();
        for (process, thread) in clients {
            let journal = self.evidence.journals.iter().find(|(number, _)| *number == process);
            let entries = journal.iter().flat_map(|(_, entries)| entries);
            let its = entries.filter(|entry| {
                (entry.thread == thread || entry.event.is_of_the_process())
                    && self.is_near(entry.at, entry.at)
            });
            let told: Vec<String> = its
                .map(|entry| {
                    let text = entry.to_string();
                    let words: Vec<&str> = text.split('\t').skip(2).collect();
                    let at = self.seconds(entry.at);
                    format!("{at} client {process}.{thread}: {}", words.join(" "))
                })
                .collect();
            lines.extend(told[told.len().saturating_sub(SHOWN)..].iter().cloned());
        }
        lines
    }

    fn faults(&self) -> Vec<String> {
        let near = self.evidence.faults.iter().filter(|it| self.is_near(it.from, it.until));
        near.map(|fault| {
            let (from, until) = (self.seconds(fault.from), self.seconds(fault.until));
            format!("{from} to {until}: {}", self.evidence.told(fault))
        })
        .collect()
    }
}
