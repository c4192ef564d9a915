//! How a database file is opened: its tables, the clock that its sessions end by, and where its tokens go on.

use std::fs;
use std::path::{self, Path};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::{
    Connection, OpenFlags, OptionalExtension, Row as Found, Transaction, TransactionBehavior,
};

use super::{Sqlite, check_links, has_other_names, identity, not_done, not_found};
use crate::leased::attempts::first;
use crate::leased::database::{Cause, StepError};
use crate::process::PerProcess;
use crate::sql::tables::{FILE_VERSION, check_version, sqlite_tables};

/// For how long a step waits for others inside of SQLite, before it is tried again.
const BUSY: Duration = Duration::from_millis(50);
/// Between two looks at who uses the file by another clock.
const PAUSE: Duration = Duration::from_millis(20);
/// How many nanoseconds of the time of day there are to a token of a new file: nobody makes claims as fast.
const NANOS_A_TOKEN: u128 = 1_024;
/// So many claims can be made at most that a crash of the machine costs: those of its last seconds.
const LOST_TOKENS: i64 = 1 << 20;

/// Marks a process that has used SQLite.
static USED: PerProcess<()> = PerProcess::new(|| ());

impl Sqlite {
    /// Opens a database file, and creates it if there is none. It may wait for as long as a lease. It ends early if the
    /// caller has cancelled.
    pub(crate) fn open(
        file: &Path,
        is_given_up: &dyn Fn(&str) -> bool,
    ) -> Result<Sqlite, StepError> {
        if USED.inherited().next().is_some() {
            let why = "a process that used SQLite has forked this one, which SQLite does not bear: connect \
                       before no fork but in its child, or call exec first";
            return Err(StepError::new(Cause::Unusable, why));
        }
        let () = *USED;
        // The program may change its directory.
        let file = &path::absolute(file).map_err(|error| not_found(file, &error))?;
        let clock = clock()?;
        let mut sqlite = first(is_given_up, || Sqlite::connect(file, &clock))?;
        sqlite.take_over(is_given_up).map_err(|failure| match failure.cause {
            Cause::Busy => StepError { cause: Cause::Failed, ..failure },
            _ => failure,
        })?;
        // From here on no commit waits for the disk.
        sqlite.connection.pragma_update(None, "synchronous", "NORMAL").map_err(not_done)?;
        Ok(sqlite)
    }

    /// Has its file stay as it is.
    #[cfg(test)]
    pub(crate) fn allow_no_growth(&self) {
        let pages = self.connection.query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0));
        let most = format!("PRAGMA max_page_count = {}", pages.unwrap_or(0));
        let _ = self.connection.query_row(&most, [], |_| Ok(()));
    }

    pub(super) fn connect(file: &Path, clock: &str) -> Result<Sqlite, StepError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(file, flags).map_err(not_done)?;
        connection.busy_timeout(BUSY).map_err(not_done)?;
        check_links(file)?;
        check_mounts(file)?;
        let set_mode = "PRAGMA journal_mode = WAL";
        let mode: String =
            connection.query_row(set_mode, [], |row| row.get(0)).map_err(not_done)?;
        if mode != "wal" {
            let why = format!(
                "its journal mode is {mode}, and has to be wal: not all file systems bear that"
            );
            return Err(StepError::new(Cause::Unusable, why));
        }
        connection.pragma_update(None, "synchronous", "FULL").map_err(not_done)?;
        let identity = identity(file)?;
        let (file, clock) = (file.to_owned(), clock.to_owned());
        Ok(Sqlite { connection, file, identity, clock, version: -1 })
    }

    /// Makes the tables where they are missing, and has sessions by another clock than ours end first.
    pub(super) fn take_over(
        &mut self,
        is_given_up: &dyn Fn(&str) -> bool,
    ) -> Result<(), StepError> {
        let mut seen: Option<(Instant, Vec<Theirs>)> = None;
        loop {
            let why = match self.try_to_take_over(&mut seen) {
                Ok(true) => return Ok(()),
                Ok(false) => "sessions from before a start of the machine may hold yet".to_owned(),
                Err(failure) if failure.is(Cause::Busy) => failure.why,
                Err(failure) => return Err(failure),
            };
            if is_given_up(&why) {
                return Err(StepError::new(Cause::Busy, why));
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn try_to_take_over(
        &mut self,
        seen: &mut Option<(Instant, Vec<Theirs>)>,
    ) -> Result<bool, StepError> {
        let clock = self.clock.clone();
        let behaviour = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behaviour).map_err(not_done)?;
        transaction.execute_batch(&sqlite_tables()).map_err(not_done)?;
        let meta = |name: &str| {
            let select = "SELECT value FROM zklock_meta WHERE name = ?1";
            let value = transaction.query_row(select, [name], |row| row.get::<_, String>(0));
            value.optional().map_err(not_done)
        };
        check_version(meta("version")?.as_deref(), FILE_VERSION)?;
        let theirs = meta("clock")?.filter(|theirs| *theirs != clock);
        if theirs.is_some() {
            let there = sessions(&transaction)?;
            let (since, before) = seen.get_or_insert_with(|| (Instant::now(), there.clone()));
            let is_used = |now: &Theirs| !before.contains(now);
            if there.iter().any(is_used) {
                let why = "another machine uses it, or one in another time namespace: a file of SQLite is for the \
                           processes of one machine";
                return Err(StepError::new(Cause::Unusable, why));
            }
            let longest = there.iter().map(|session| session.lease).max().unwrap_or_default();
            if since.elapsed() < longest + longest / 20 {
                return Ok(false);
            }
            for table in ["zklock_claim", "zklock_session"] {
                transaction.execute(&format!("DELETE FROM {table}"), []).map_err(not_done)?;
            }
        }
        let upsert = "INSERT INTO zklock_meta VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value";
        if theirs.is_some() || meta("clock")?.is_none() {
            raise_tokens(&transaction)?;
            transaction.execute(upsert, ["clock", &clock]).map_err(not_done)?;
        }
        transaction.execute(upsert, ["version", FILE_VERSION]).map_err(not_done)?;
        transaction.commit().map_err(not_done)?;
        Ok(true)
    }
}

/// Fails where the file is mounted by itself: by the name that it has elsewhere, SQLite's log is another one.
fn check_mounts(file: &Path) -> Result<(), StepError> {
    const MOUNTS: &str = "/proc/thread-self/mountinfo";
    let name = fs::canonicalize(file).map_err(|error| not_found(file, &error))?;
    let mut name = name.to_string_lossy().into_owned();
    // As the list writes them: the backslash first.
    for (plain, written) in [("\\", "\\134"), (" ", "\\040"), ("\t", "\\011"), ("\n", "\\012")] {
        name = name.replace(plain, written);
    }
    let mounts = fs::read(MOUNTS).map_err(|error| {
        StepError::new(
            Cause::Unusable,
            format!("the machine does not say what is mounted ({MOUNTS}: {error})"),
        )
    })?;
    let mounts = String::from_utf8_lossy(&mounts);
    if mounts.lines().any(|mount| mount.split(' ').nth(4) == Some(&name)) {
        return Err(has_other_names(file, "is mounted by itself"));
    }
    Ok(())
}

/// A session by another clock.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Theirs {
    id: String,
    lease: Duration,
    expires: i64,
}

fn sessions(transaction: &Transaction<'_>) -> Result<Vec<Theirs>, StepError> {
    let mut select =
        transaction.prepare("SELECT id, lease, expires FROM zklock_session").map_err(not_done)?;
    let read = |row: &Found<'_>| {
        let lease = Duration::from_nanos(row.get::<_, i64>(1)?.unsigned_abs());
        Ok(Theirs { id: row.get(0)?, lease, expires: row.get(2)? })
    };
    let found = select.query_map([], read).map_err(not_done)?;
    found.collect::<Result<_, _>>().map_err(not_done)
}

/// Raises the next token above all that can have been given. In a new file the time of day decides. A restart of the
/// machine may have lost the last commits, so the tokens that these may have given are skipped too.
fn raise_tokens(transaction: &Transaction<'_>) -> Result<(), StepError> {
    let last = "SELECT seq FROM sqlite_sequence WHERE name = 'zklock_claim'";
    let last = transaction.query_row(last, [], |row| row.get::<_, i64>(0));
    let last = last.optional().map_err(not_done)?.unwrap_or(0);
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let by_time = i64::try_from(nanos / NANOS_A_TOKEN).unwrap_or(0);
    let next = by_time.max(last.saturating_add(LOST_TOKENS));
    for set in [
        "DELETE FROM sqlite_sequence WHERE name = 'zklock_claim' AND ?1 > 0",
        "INSERT INTO sqlite_sequence (name, seq) VALUES ('zklock_claim', ?1)",
    ] {
        transaction.execute(set, [next]).map_err(not_done)?;
    }
    Ok(())
}

/// Which machine's clock it is, since which start.
fn clock() -> Result<String, StepError> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").map_err(|error| {
        let why = format!("the machine does not say since when it runs (boot_id: {error})");
        StepError::new(Cause::Unusable, why)
    })?;
    // Containers may have clocks of their own.
    let namespace = fs::read_link("/proc/self/ns/time").unwrap_or_default();
    Ok(format!("{} {}", boot.trim(), namespace.display()))
}
