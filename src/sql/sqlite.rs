//! A database file of SQLite: locks between the processes of one machine.
//!
//! Each step is a transaction that takes SQLite's write lock when it begins, and reads the clock inside. So all steps
//! of all processes have one order. A read-only step sees a snapshot, so it ends no session: it would not see a renewal
//! in flight.
//!
//! The **clock** counts from the start of the machine. It runs while the machine sleeps, and setting the time of day
//! does not move it. All processes of a machine share it. The file records the machine and its start with the sessions.
//! Sessions with another clock are watched for their whole lease, by our clock, before they count as ended. If one of
//! them is renewed meanwhile, another machine uses the file, and the file is refused.
//!
//! Steps do not wait until commits are on the disk, because no process outlives a crash of the machine. But tokens must
//! grow even then. So after each start of the machine, and in each new file, they begin above all tokens that can have
//! been given before, by the time of day.

mod opening;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OptionalExtension, ToSql, params_from_iter};

use super::dialect::{Begun, Dialect, Row, Value, malformed};
use crate::leased::database::{Cause, StepError};
use crate::runtime::BootInstant;

pub(crate) struct Sqlite {
    connection: Connection,
    file: PathBuf,
    /// The file's device and inode: another file at its path is another store.
    identity: (u64, u64),
    clock: String,
    /// The database's version, as last seen.
    version: i64,
}

impl Sqlite {
    /// Where the file was deleted or replaced, its sessions are over, and the next steps are those of the file that is
    /// there.
    fn check_file(&mut self) -> Result<(), StepError> {
        if identity(&self.file).is_ok_and(|now| now == self.identity) {
            return Ok(());
        }
        let clock = self.clock.clone();
        let mut again = Sqlite::connect(&self.file, &clock)?;
        let no_pause = |_: &str| true;
        again.take_over(&no_pause)?;
        again.connection.pragma_update(None, "synchronous", "NORMAL").map_err(not_done)?;
        *self = again;
        let why = "the database file was deleted or replaced";
        Err(StepError::new(Cause::SessionOver, why))
    }

    fn begin(&mut self) -> Result<(), StepError> {
        // Of a step that was broken off.
        self.roll_back();
        self.connection.execute_batch("BEGIN IMMEDIATE").map_err(not_done)
    }

    fn commit(&mut self) -> Result<(), StepError> {
        let committed = self.connection.execute_batch("COMMIT");
        self.roll_back();
        let Err(error) = committed else { return Ok(()) };
        let what = match error.sqlite_error_code() {
            // SQLite writes the log before it publishes the commit, and publishes none that it could not write.
            Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => Cause::Failed,
            _ => Cause::Unknown,
        };
        if error.sqlite_error_code() == Some(ErrorCode::DiskFull) {
            self.start_the_log_again();
        }
        Err(StepError::new(what, format!("commit: {error}")))
    }

    /// Makes room on a full disk: the next commits take the place that the log has there already. So renewals succeed,
    /// and what is held stays held.
    fn start_the_log_again(&self) {
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(()));
    }

    fn roll_back(&mut self) {
        if !self.connection.is_autocommit() {
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }

    /// Fails where a machine has taken the file over that has another clock.
    fn check_clock(&self) -> Result<(), StepError> {
        let select = "SELECT value = ?1 FROM zklock_meta WHERE name = 'clock'";
        let is_ours = self
            .connection
            .prepare_cached(select)
            .and_then(|mut select| select.query_row([&self.clock], |row| row.get(0)).optional());
        match is_ours.map_err(not_done)? {
            Some(true) => Ok(()),
            _ => {
                let why = "another machine has taken the database file over";
                Err(StepError::new(Cause::Unusable, why))
            }
        }
    }
}

/// The meaning of an error for a transaction that was not committed.
fn not_done(error: rusqlite::Error) -> StepError {
    let what = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Cause::Busy,
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Cause::NotPermitted,
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt | ErrorCode::CannotOpen) => {
            Cause::Unusable
        }
        _ => Cause::Failed,
    };
    StepError::new(what, error.to_string())
}

/// By that clock, in nanoseconds.
fn now() -> i64 {
    i64::try_from(BootInstant::now().as_nanos()).unwrap_or(i64::MAX)
}

fn identity(file: &Path) -> Result<(u64, u64), StepError> {
    let found = fs::metadata(file).map_err(|error| not_found(file, &error))?;
    Ok((found.dev(), found.ino()))
}

/// Fails where the file has a second name: SQLite's log lies beside the name that it is opened by, so two processes that
/// open it by two names see nothing of each other.
fn check_links(file: &Path) -> Result<(), StepError> {
    match fs::metadata(file).map_err(|error| not_found(file, &error))?.nlink() {
        0 | 1 => Ok(()),
        names => Err(has_other_names(file, &format!("has {names} names (hard links)"))),
    }
}

fn not_found(file: &Path, error: &io::Error) -> StepError {
    StepError::new(Cause::Failed, format!("{}: {error}", file.display()))
}

fn has_other_names(file: &Path, why: &str) -> StepError {
    let why = format!(
        "{} {why}, and SQLite would keep a log for each of its names: share its directory instead, and give it one name",
        file.display()
    );
    StepError::new(Cause::Unusable, why)
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Int(number) => ValueRef::Integer(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

fn value(found: ValueRef<'_>) -> Result<Value, StepError> {
    match found {
        ValueRef::Null => Ok(Value::Null),
        ValueRef::Integer(number) => Ok(Value::Int(number)),
        ValueRef::Text(text) => Ok(Value::Text(String::from_utf8_lossy(text).into_owned())),
        _ => Err(malformed()),
    }
}

impl Dialect for Sqlite {
    fn begin_step(&mut self, _: Option<&str>) -> Result<Begun, StepError> {
        self.check_file()?;
        check_links(&self.file)?;
        self.begin()?;
        Ok(Begun { now: now(), number: None })
    }

    fn commit_step(&mut self) -> Result<(), StepError> {
        if let Err(failure) = self.check_clock() {
            self.roll_back();
            return Err(failure);
        }
        self.commit()?;
        // What was written into a file that is nobody's any more is not done.
        self.check_file()
    }

    fn undo_step(&mut self) {
        self.roll_back();
    }

    fn first_end(&mut self) -> Result<(Option<i64>, i64), StepError> {
        let found = self.query("SELECT min(expires) FROM zklock_session", &[])?;
        Ok((found.first().map_or(Ok(None), |found| found.some_int(0))?, now()))
    }

    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, StepError> {
        if self.connection.is_autocommit() {
            self.check_file()?;
        }
        let mut statement = self.connection.prepare_cached(sql).map_err(not_done)?;
        let columns = statement.column_count();
        let mut found = statement.query(params_from_iter(values)).map_err(not_done)?;
        let mut rows = Vec::new();
        while let Some(row) = found.next().map_err(not_done)? {
            let read = |column| row.get_ref(column).map_err(not_done).and_then(value);
            rows.push(Row((0..columns).map(read).collect::<Result<_, _>>()?));
        }
        Ok(rows)
    }

    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, StepError> {
        let mut statement = self.connection.prepare_cached(sql).map_err(not_done)?;
        let changed = statement.execute(params_from_iter(values)).map_err(not_done)?;
        Ok(u64::try_from(changed).unwrap_or(u64::MAX))
    }

    fn raise_numbers(&mut self, above: i64) -> Result<(), StepError> {
        let update = "UPDATE sqlite_sequence SET seq = ? WHERE name = 'zklock_claim' AND seq < ?";
        self.execute(update, &[above.into(), above.into()]).map(drop)
    }

    fn look_for_changes(&mut self) -> Result<bool, StepError> {
        let version = self.connection.prepare_cached("PRAGMA data_version");
        let version = version.and_then(|mut version| version.query_row([], |row| row.get(0)));
        let version: i64 = version.map_err(not_done)?;
        Ok(std::mem::replace(&mut self.version, version) != version)
    }

    fn pauses(&self) -> (Duration, Duration) {
        (Duration::from_millis(20), Duration::from_millis(50))
    }
}
