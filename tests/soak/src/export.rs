//! The run as a history, as `docs/history.md` defines it: what the clients wrote down, and nothing of the servers' log.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::clock::Moment;
use crate::evidence::Evidence;
use crate::fault::FaultKind;
use crate::journal::{Entry, Event, State, Written};
use crate::locks::{LockName, PERMITS, Sort};

/// One JSON object a line.
pub fn history(evidence: &Evidence) -> String {
    let mut export = Export { locks: &evidence.locks, lines: String::new() };
    for (number, lock) in evidence.locks.iter().enumerate() {
        if lock.sort == Sort::Semaphore {
            let operator = format!("operator {number}");
            let start = evidence.run.start;
            let limit = json!({ "event": "call", "operation": "limit", "limit": PERMITS });
            export.add(start, &operator, number, "semaphore", limit);
            export.returned(start, &operator, number, "semaphore", "limit", "done");
        }
    }
    for (number, fault) in evidence.faults.iter().enumerate() {
        if matches!(fault.kind, FaultKind::LockDeleted | FaultKind::HoldBroken) {
            export.broken(number, fault.target as usize, fault.from, fault.until);
        }
    }
    for (process, journal) in &evidence.journals {
        export.journal(*process, journal);
    }
    export.lines
}

struct Export<'a> {
    locks: &'a [LockName],
    lines: String,
}

/// What a session is at.
#[derive(Default)]
struct Stage {
    lock: usize,
    kind: &'static str,
    token: i64,
    asks: bool,
    releases: bool,
}

impl Export<'_> {
    fn add(&mut self, at: Moment, process: &str, lock: usize, kind: &str, mut line: Value) {
        line["at"] = at.0.into();
        line["process"] = process.into();
        line["kind"] = kind.into();
        line["path"] = self.locks[lock].path().into();
        self.lines += &format!("{line}\n");
    }

    fn called(&mut self, at: Moment, process: &str, lock: usize, kind: &str, operation: &str) {
        let line = json!({ "event": "call", "operation": operation });
        self.add(at, process, lock, kind, line);
    }

    fn returned(
        &mut self,
        at: Moment,
        process: &str,
        lock: usize,
        kind: &str,
        operation: &str,
        outcome: &str,
    ) {
        let line = json!({ "event": "return", "operation": operation, "outcome": outcome });
        self.add(at, process, lock, kind, line);
    }

    /// The directory of a semaphore that is deleted is recreated with the first limit, at some time.
    fn broken(&mut self, number: usize, lock: usize, from: Moment, until: Moment) {
        let (process, kind) = (format!("operator {number}"), kind(self.locks[lock].sort, ""));
        self.called(from, &process, lock, kind, "break");
        self.returned(until, &process, lock, kind, "break", "done");
        if kind == "semaphore" {
            let limit = json!({ "event": "call", "operation": "limit", "limit": PERMITS });
            self.add(from, &format!("recreated {number}"), lock, kind, limit);
        }
    }

    fn journal(&mut self, process: u32, journal: &[Entry]) {
        let mut stages: HashMap<u16, Stage> = HashMap::new();
        for Entry { at, thread, event } in journal {
            let (at, name) = (*at, format!("client {process}.{thread}"));
            let stage = stages.entry(*thread).or_default();
            let Stage { lock, kind: sort, token, .. } = *stage;
            match event {
                Event::Ask { lock, how: _, part } => {
                    let sort = kind(self.locks[*lock].sort, part);
                    *stage = Stage { lock: *lock, kind: sort, asks: true, ..Stage::default() };
                    let mut line = json!({ "event": "call", "operation": "acquire" });
                    if let Ok(permits) = part.parse::<u32>() {
                        line["permits"] = permits.into();
                    }
                    self.add(at, &name, *lock, sort, line);
                }
                Event::None { .. } | Event::Failed { .. } => {
                    let refused = matches!(event, Event::None { why } if why == "taken");
                    let outcome = if refused { "refused" } else { "unknown" };
                    if std::mem::take(&mut stage.asks) {
                        self.returned(at, &name, lock, sort, "acquire", outcome);
                    } else if std::mem::take(&mut stage.releases) {
                        self.returned(at, &name, lock, sort, "release", outcome);
                    }
                }
                Event::Got { token, state, .. } => {
                    (stage.token, stage.asks) = (*token, false);
                    let line = json!({
                        "event": "return", "operation": "acquire", "outcome": "done", "token": token
                    });
                    self.add(at, &name, lock, sort, line);
                    self.look(at, &name, lock, sort, *token, *state);
                }
                Event::Look { state } => self.look(at, &name, lock, sort, token, *state),
                Event::Wrote { sent, written, .. } => {
                    self.called(*sent, &name, lock, sort, "write");
                    self.returned(at, &name, lock, sort, "write", outcome(*written));
                }
                Event::Release => {
                    stage.releases = true;
                    self.called(at, &name, lock, sort, "release");
                }
                Event::Released { why } => {
                    stage.releases = false;
                    let outcome = if why.is_empty() { "done" } else { "unknown" };
                    self.returned(at, &name, lock, sort, "release", outcome);
                }
                Event::Limits { lock, limit } => {
                    (stage.lock, stage.kind) = (*lock, "semaphore");
                    let line = json!({ "event": "call", "operation": "limit", "limit": limit });
                    self.add(at, &name, *lock, "semaphore", line);
                }
                Event::Limited { written } => {
                    self.returned(at, &name, lock, "semaphore", "limit", outcome(*written));
                }
                Event::Told | Event::Closed { .. } | Event::Stalled { .. } => {}
            }
        }
    }

    fn look(
        &mut self,
        at: Moment,
        process: &str,
        lock: usize,
        kind: &str,
        token: i64,
        state: State,
    ) {
        if state == State::Held {
            self.add(at, process, lock, kind, json!({ "event": "held", "token": token }));
        }
    }
}

fn kind(sort: Sort, part: &str) -> &'static str {
    match (sort, part) {
        (Sort::ReadWrite, "read") => "read",
        (Sort::ReadWrite, _) => "write",
        (Sort::Semaphore, _) => "semaphore",
        (Sort::Election, _) => "election",
        (Sort::Queue | Sort::Watch | Sort::Poll, _) => "mutex",
    }
}

fn outcome(written: Written) -> &'static str {
    match written {
        Written::Done => "done",
        Written::Refused => "refused",
        Written::Unknown => "unknown",
    }
}
