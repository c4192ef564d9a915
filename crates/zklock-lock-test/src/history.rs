//! The history of a run, as `docs/history.md` defines it: one JSON line for each call, return and look.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use zklock::{Guard, GuardState, LockError};

use crate::trouble::Trouble;

/// The file that all threads, and perhaps other processes, append to.
pub struct History {
    file: File,
}

impl History {
    pub fn open(path: &Path) -> Result<History, Trouble> {
        let opened = OpenOptions::new().create(true).append(true).open(path);
        let file = opened
            .map_err(|error| Trouble::Cannot(format!("--history {}: {error}", path.display())))?;
        Ok(History { file })
    }

    /// The operations of one thread on one lock.
    pub fn of(&self, thread: usize, path: &str) -> Process<'_> {
        Process {
            file: &self.file,
            name: format!("{}/{thread}", std::process::id()),
            path: path.to_owned(),
        }
    }
}

pub struct Process<'a> {
    file: &'a File,
    name: String,
    path: String,
}

impl Process<'_> {
    pub fn calls(&self, operation: &str) {
        self.note(now(), json!({ "event": "call", "operation": operation }));
    }

    pub fn acquired(&self, token: i64) {
        self.returned("acquire", json!({ "outcome": "done", "token": token }));
    }

    pub fn got_nothing(&self) {
        self.returned("acquire", json!({ "outcome": "refused" }));
    }

    /// Writes down that it holds, if it does.
    pub fn look(&self, guard: &Guard) {
        let at = now();
        if guard.state() == GuardState::Held {
            self.note(at, json!({ "event": "held", "token": guard.fencing_token() }));
        }
    }

    pub fn released(&self, result: &Result<(), LockError>) {
        let outcome = if result.is_ok() { "done" } else { "unknown" };
        self.returned("release", json!({ "outcome": outcome }));
    }

    fn returned(&self, operation: &str, mut line: Value) {
        line["event"] = "return".into();
        line["operation"] = operation.into();
        self.note(now(), line);
    }

    /// One write for each line, so that it is whole even if the process is killed.
    fn note(&self, at: i64, mut line: Value) {
        line["at"] = at.into();
        line["process"] = self.name.as_str().into();
        line["kind"] = "mutex".into();
        line["path"] = self.path.as_str().into();
        let written = (&mut &*self.file).write_all(format!("{line}\n").as_bytes());
        written.expect("a history without a gap");
    }
}

/// The machine's monotonic clock, which all of its processes share.
fn now() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
