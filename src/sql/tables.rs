//! The tables. Their names begin with `zklock_`, so they can be in a database with other tables.

#[cfg(any(feature = "mysql", feature = "postgres"))]
use std::collections::{HashMap, HashSet};

#[cfg(any(feature = "mysql", feature = "postgres"))]
use super::dialect::Dialect;
use crate::leased::database::{Cause, StepError};
use crate::text::one_line;

/// The version of the tables in a file. A database with another version is left alone.
#[cfg(feature = "sqlite")]
pub(super) const FILE_VERSION: &str = "1";
/// Those of a server, with the number of its gates: clients that differ in that exclude each other from nothing.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(super) const SERVER_VERSION: &str = "2";

/// Fails where the tables are none that this code knows. `None`: they are new.
pub(super) fn check_version(version: Option<&str>, known: &str) -> Result<(), StepError> {
    match version {
        None => Ok(()),
        Some(version) if version == known => Ok(()),
        Some(other) => {
            let other = one_line(other, 20);
            let why =
                format!("its tables are of version {other}, and this zklock knows version {known}");
            Err(StepError::new(Cause::Unusable, why))
        }
    }
}

/// The names of column types and other words of SQL, by database.
struct Words {
    number: &'static str,
    text: &'static str,
    name: &'static str,
    /// Indices of sessions and of claims, where they are part of a table.
    session_index: &'static str,
    claim_index: &'static str,
    claim_end: &'static str,
    end: &'static str,
}

/// A claim is one row; `number` is its place and its token. Times are in nanoseconds by the clock that ends sessions. Only
/// `since`, for people, is in milliseconds by the claimant's time of day.
fn tables(words: &Words) -> Vec<String> {
    let Words { number, text, name, session_index, claim_index, claim_end, end } = words;
    let table = |table: &str, columns: String, end: &str| {
        format!("CREATE TABLE IF NOT EXISTS zklock_{table} ({columns}){end}")
    };
    vec![
        table("meta", format!("name {name} PRIMARY KEY NOT NULL, value {text} NOT NULL"), end),
        table(
            "session",
            format!(
                "id {name} PRIMARY KEY NOT NULL, lease BIGINT NOT NULL, expires BIGINT NOT NULL{session_index}"
            ),
            end,
        ),
        table(
            "claim",
            format!(
                "number {number}, id {name} NOT NULL UNIQUE, session {name} NOT NULL, path {text} NOT NULL,
                 kind BIGINT NOT NULL, permits BIGINT NOT NULL, since BIGINT NOT NULL, host {text} NOT NULL,
                 pid BIGINT NOT NULL, thread {text} NOT NULL, label {text} NOT NULL, asked {text},
                 grace BIGINT{claim_index}"
            ),
            claim_end,
        ),
        table("limit", format!("path {text} PRIMARY KEY NOT NULL, permits BIGINT NOT NULL"), end),
    ]
}

#[cfg(any(feature = "postgres", feature = "sqlite"))]
fn indices() -> impl Iterator<Item = String> {
    let of =
        |name: &str, on: &str| format!("CREATE INDEX IF NOT EXISTS zklock_{name} ON zklock_{on}");
    [
        of("session_expires", "session (expires)"),
        of("claim_path", "claim (path, number)"),
        of("claim_session", "claim (session)"),
        of("claim_asked", "claim (session) WHERE asked IS NOT NULL OR grace IS NOT NULL"),
    ]
    .into_iter()
}

#[cfg(feature = "sqlite")]
pub(super) fn sqlite_tables() -> String {
    let mut all = tables(&Words {
        number: "INTEGER PRIMARY KEY AUTOINCREMENT",
        text: "TEXT",
        name: "TEXT",
        session_index: "",
        claim_index: "",
        claim_end: "",
        end: " WITHOUT ROWID",
    });
    all.extend(indices());
    all.join(";\n")
}

/// The number of gates. Steps on locks with the same gate run one after the other. A look for changes reads all gates.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(super) const GATES: i64 = 1_024;

/// The gate of a lock, for all clients.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(super) fn gate_of(path: &str) -> i64 {
    let hash = sha1_smol::Sha1::from(path).digest().bytes();
    i64::from(u16::from_be_bytes([hash[0], hash[1]])) % GATES
}

/// The gate at which it is noted that a session has ended, which may concern any lock.
#[cfg(any(feature = "mysql", feature = "postgres"))]
fn session_gate() -> i64 {
    gate_of("")
}

#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(super) fn has_ended_session(database: &mut impl Dialect) -> Result<(), StepError> {
    let update = "UPDATE zklock_gate SET changes = changes + 1 WHERE gate = ?";
    database.execute(update, &[session_gate().into()]).map(drop)
}

/// How often what lies behind each gate had changed when this client last looked.
#[cfg(any(feature = "mysql", feature = "postgres"))]
#[derive(Default)]
pub(super) struct SeenGates {
    sum: Option<i64>,
    changes: HashMap<i64, i64>,
    /// Those of which that was news.
    changed: HashSet<i64>,
}

#[cfg(any(feature = "mysql", feature = "postgres"))]
impl SeenGates {
    /// Looks at them: first at the `sum` of their changes, by that query. Says whether any has changed.
    pub(super) fn look(
        &mut self,
        database: &mut impl Dialect,
        sum: &str,
    ) -> Result<bool, StepError> {
        let found = database.query(sum, &[])?;
        let sum = found.first().map_or(Ok(0), |found| found.int(0))?;
        self.changed.clear();
        if self.sum == Some(sum) {
            return Ok(false);
        }
        let mut all = 0;
        for found in database.query("SELECT gate, changes FROM zklock_gate", &[])? {
            let (gate, changes) = (found.int(0)?, found.int(1)?);
            all += changes;
            if self.changes.insert(gate, changes) != Some(changes) {
                self.changed.insert(gate);
            }
        }
        self.sum = Some(all);
        Ok(true)
    }

    /// Whether what that look has found may concern a lock.
    pub(super) fn may_concern(&self, lock: &str) -> bool {
        [gate_of(lock), session_gate()].iter().any(|gate| self.changed.contains(gate))
    }
}

/// Has the numbers of all gates go on above one: that of each gate has its own remainder.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(super) fn raise_gates(database: &mut impl Dialect, above: i64) -> Result<(), StepError> {
    let update = "UPDATE zklock_gate SET number = ? + gate WHERE number < ? + gate";
    let least = above - above % GATES;
    database.execute(update, &[least.into(), least.into()]).map(drop)
}

/// The tables of a server, where gates keep concurrent steps apart.
#[cfg(any(feature = "mysql", feature = "postgres"))]
fn server_tables(words: &Words) -> Vec<String> {
    let mut all = tables(words);
    all.push(format!(
        "CREATE TABLE IF NOT EXISTS zklock_gate
         (gate BIGINT PRIMARY KEY NOT NULL, number BIGINT NOT NULL, changes BIGINT NOT NULL){}",
        words.end
    ));
    all
}

#[cfg(feature = "postgres")]
pub(super) fn postgres_tables() -> Vec<String> {
    let mut all = server_tables(&Words {
        number: "BIGINT PRIMARY KEY NOT NULL",
        text: "TEXT",
        name: "TEXT",
        session_index: "",
        claim_index: "",
        claim_end: "",
        end: "",
    });
    all.extend(indices());
    all
}

/// Paths are compared byte by byte, and fit into an index.
#[cfg(feature = "mysql")]
pub(super) fn mysql_tables() -> Vec<String> {
    server_tables(&Words {
        number: "BIGINT PRIMARY KEY NOT NULL",
        text: "VARBINARY(2000)",
        name: "VARBINARY(64)",
        session_index: ", INDEX (expires)",
        claim_index: ", INDEX (path, number), INDEX (session)",
        claim_end: " ENGINE = InnoDB",
        end: " ENGINE = InnoDB",
    })
}
