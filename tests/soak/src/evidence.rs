//! What a run leaves behind to be judged, in one directory: `run.json`, `faults.tsv`, `clock.tsv`,
//! `journals/`, and what each member has logged in `servers/`.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::clock::{Moment, Sample, WallClock};
use crate::fault::{Fault, FaultKind, Victims};
use crate::history::History;
use crate::journal::{self, Entry};
use crate::judge::{Case, Verdict};
use crate::locks::{self, LockName};
use crate::shape::Shape;
use crate::txnlog::{self, Txn};

/// After how many session timeouts a holder knows at the latest that somebody has deleted its claim:
/// by then it has heard of it, or has lost its session by its own clock.
const HEARS_WITHIN: u32 = 2;

/// What the run was, and how it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub seed: u64,
    pub shape: Shape,
    /// The sessions in which locks were deleted on purpose.
    pub operators: BTreeSet<i64>,
    pub processes: u16,
    pub sessions: u16,
    pub locks_of_each: u16,
    pub session_timeout: Duration,
    /// How long an acquire may take when all faults are over.
    pub wait_limit: Duration,
    pub start: Moment,
    /// When all faults were over.
    pub calm: Moment,
    pub end: Moment,
    /// Processes that ended by themselves.
    pub crashed: Vec<u32>,
    /// Nodes that were left when nobody held or wanted a lock any more.
    pub left: Vec<String>,
    /// Where members said themselves that their trees are not those of their leader.
    pub diverged: Vec<String>,
}

impl Run {
    fn encode(&self) -> String {
        json!({
            "seed": self.seed,
            "first_id": self.shape.first_id,
            "tick_ms": self.shape.tick.as_millis() as u64,
            "sync_limit_ms": self.shape.sync_limit.as_millis() as u64,
            "operators": self.operators,
            "processes": self.processes,
            "sessions": self.sessions,
            "locks_of_each": self.locks_of_each,
            "session_timeout_ms": self.session_timeout.as_millis() as u64,
            "wait_limit_ms": self.wait_limit.as_millis() as u64,
            "start_ns": self.start.0,
            "calm_ns": self.calm.0,
            "end_ns": self.end.0,
            "crashed": self.crashed,
            "left": self.left,
            "diverged": self.diverged,
        })
        .to_string()
    }

    fn decode(text: &str) -> Option<Run> {
        let value: Value = serde_json::from_str(text).ok()?;
        let number = |key: &str| value[key].as_u64();
        let small = |key: &str| u16::try_from(number(key)?).ok();
        let millis = |key: &str| Some(Duration::from_millis(number(key)?));
        let moment = |key: &str| Some(Moment(value[key].as_i64()?));
        let list = |key: &str| value[key].as_array();
        let texts = |key: &str| -> Option<Vec<String>> {
            list(key)?.iter().map(|it| Some(it.as_str()?.to_owned())).collect()
        };
        Some(Run {
            seed: number("seed")?,
            shape: Shape {
                first_id: u8::try_from(number("first_id")?).ok()?,
                tick: millis("tick_ms")?,
                sync_limit: millis("sync_limit_ms")?,
            },
            operators: list("operators")?.iter().map(Value::as_i64).collect::<Option<_>>()?,
            processes: small("processes")?,
            sessions: small("sessions")?,
            locks_of_each: small("locks_of_each")?,
            session_timeout: millis("session_timeout_ms")?,
            wait_limit: millis("wait_limit_ms")?,
            start: moment("start_ns")?,
            calm: moment("calm_ns")?,
            end: moment("end_ns")?,
            crashed: list("crashed")?
                .iter()
                .map(|it| u32::try_from(it.as_u64()?).ok())
                .collect::<Option<_>>()?,
            left: texts("left")?,
            diverged: texts("diverged")?,
        })
    }
}

/// Everything, read and put in order.
pub struct Evidence {
    pub run: Run,
    pub locks: Vec<LockName>,
    pub faults: Vec<Fault>,
    pub wall: WallClock,
    pub journals: Vec<(u32, Vec<Entry>)>,
    pub history: History,
    /// What the history was read from.
    pub txns: Vec<Txn>,
    /// Proposals that never got into the history, and holes in members' logs.
    pub discarded: usize,
    pub holes: usize,
    /// How often the servers' digests have confirmed the history.
    pub confirmed: usize,
}

pub fn journal_file(directory: &Path, process: u32) -> PathBuf {
    journals(directory).join(format!("{process}.tsv"))
}

fn journals(directory: &Path) -> PathBuf {
    directory.join("journals")
}

fn servers(directory: &Path) -> PathBuf {
    directory.join("servers")
}

/// Makes the directory for the evidence of a new run.
///
/// # Errors
/// Those of making directories; `AlreadyExists` when there is a run in it.
pub fn prepare(directory: &Path) -> io::Result<()> {
    if directory.join("run.json").exists() || journals(directory).exists() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a run in it"));
    }
    fs::create_dir_all(journals(directory))
}

/// Writes down everything but the journals, which are there already.
///
/// # Errors
/// Those of writing files.
pub fn write(directory: &Path, run: &Run, faults: &[Fault], clock: &[Sample]) -> io::Result<()> {
    let lines =
        |lines: Vec<String>| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    fs::write(directory.join("run.json"), run.encode())?;
    let faults = lines(faults.iter().map(Fault::to_string).collect());
    fs::write(directory.join("faults.tsv"), faults)?;
    let clock = lines(clock.iter().map(Sample::to_string).collect());
    fs::write(directory.join("clock.tsv"), clock)
}

/// Copies the members' logs, so that the directory can be judged again later.
///
/// # Errors
/// Those of copying files.
pub fn keep_logs(directory: &Path, logs: &[PathBuf]) -> io::Result<()> {
    for (number, log) in logs.iter().enumerate() {
        let to = servers(directory).join((number + 1).to_string());
        fs::create_dir_all(&to)?;
        for file in txnlog::files(log)? {
            fs::copy(&file, to.join(file.file_name().unwrap_or_default()))?;
        }
    }
    Ok(())
}

/// Where [`keep_logs`] has put them.
///
/// # Errors
/// Those of reading the directory.
pub fn kept_logs(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut logs: Vec<PathBuf> = Vec::new();
    for entry in servers(directory).read_dir()? {
        logs.push(entry?.path());
    }
    logs.sort();
    Ok(logs)
}

impl Evidence {
    /// Reads what a run has left; `logs` are the members' log directories.
    ///
    /// # Errors
    /// Those of reading files, and what can't be understood.
    pub fn read(directory: &Path, logs: &[PathBuf]) -> io::Result<Evidence> {
        let text = |name: &str| fs::read_to_string(directory.join(name));
        let run = Run::decode(&text("run.json")?).ok_or_else(|| invalid("run.json"))?;
        let faults: Option<Vec<Fault>> = text("faults.tsv")?.lines().map(Fault::parse).collect();
        let faults = faults.ok_or_else(|| invalid("faults.tsv"))?;
        let clock: Option<Vec<Sample>> = text("clock.tsv")?.lines().map(Sample::parse).collect();
        let wall = WallClock::new(clock.ok_or_else(|| invalid("clock.tsv"))?);
        let mut journals = Vec::new();
        for entry in self::journals(directory).read_dir()? {
            let path = entry?.path();
            let number = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
            let number: u32 = number.ok_or_else(|| invalid("a journal's name"))?;
            journals.push((number, journal::read(&path)?));
        }
        journals.sort_by_key(|(number, _)| *number);
        let locks = locks::all(run.locks_of_each);
        let agreed = txnlog::read_ensemble(logs)?;
        let mut history = History::of(&agreed.txns, &locks, &run.operators, &wall);
        history.strange.extend(agreed.disputes);
        Ok(Evidence {
            run,
            locks,
            faults,
            wall,
            journals,
            history,
            txns: agreed.txns,
            discarded: agreed.discarded,
            holes: agreed.holes,
            confirmed: agreed.confirmed,
        })
    }

    pub fn judge(&self) -> Verdict {
        Case {
            locks: &self.locks,
            history: &self.history,
            journals: &self.journals,
            faults: &self.faults,
            crashed: &self.run.crashed,
            left: &self.run.left,
            tolerance: self.wall.tolerance(),
            calm: self.run.calm,
            wait_limit: self.run.wait_limit,
            hears_within: HEARS_WITHIN * self.run.session_timeout,
        }
        .judge()
    }

    /// What was done to whom.
    pub fn told(&self, fault: &Fault) -> String {
        let target = fault.target as usize;
        let victim = match fault.kind.victims() {
            Victims::Servers => format!("server {}", target + usize::from(self.run.shape.first_id)),
            Victims::Clients => format!("client {target}"),
            Victims::Locks => self.locks.get(target).map_or_else(String::new, |it| it.name.clone()),
        };
        let done = match fault.kind {
            FaultKind::QuorumDown => return fault.kind.name().to_owned(),
            FaultKind::LeaderKilled | FaultKind::FollowerKilled => "killed",
            FaultKind::LeaderFrozen | FaultKind::FollowerFrozen | FaultKind::ClientFrozen => {
                "frozen"
            }
            FaultKind::LeaderStalled => "stalled",
            FaultKind::LeaderStutters => "stutters",
            FaultKind::FollowerSevered => "severed",
            FaultKind::ClientKilled => "killed -9",
            FaultKind::LinkCut => "cut off",
            FaultKind::LockDeleted => "deleted",
            FaultKind::HoldBroken => "broken",
        };
        format!("{victim} {done}")
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what} can't be understood"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_read_as_it_was_written() {
        let run = Run {
            seed: u64::MAX,
            shape: Shape {
                first_id: 253,
                tick: Duration::from_secs(2),
                sync_limit: Duration::from_secs(4),
            },
            operators: BTreeSet::from([-5, 7]),
            processes: 8,
            sessions: 64,
            locks_of_each: 3,
            session_timeout: Duration::from_secs(4),
            wait_limit: Duration::from_secs(60),
            start: Moment(1),
            calm: Moment(2),
            end: Moment(3),
            crashed: vec![4, 5],
            left: vec!["/soak/queue-1/x".to_owned()],
            diverged: vec!["server 1".to_owned()],
        };
        assert_eq!(Run::decode(&run.encode()), Some(run));
    }
}
