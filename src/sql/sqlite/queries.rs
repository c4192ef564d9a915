//! Queries and statements that several steps are made of.

use std::time::{Duration, UNIX_EPOCH};

use rusqlite::{Connection, ErrorCode, OptionalExtension, Row as Found, Transaction};
use rusqlite::{TransactionBehavior, params};

use crate::leased::database::{Front, Trouble, What};
use crate::lock::{Contender, Kind, MAX_TEXT};
use crate::sql::kind_of;
use crate::text::one_line;

pub(super) fn begin(connection: &mut Connection) -> Result<Transaction<'_>, Trouble> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(not_done)
}

pub(super) fn commit(transaction: Transaction<'_>) -> Result<(), Trouble> {
    transaction.commit().map_err(|error| Trouble::new(What::Unknown, format!("commit: {error}")))
}

/// What an error means of a transaction that was not committed.
pub(super) fn not_done(error: rusqlite::Error) -> Trouble {
    let what = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => What::Busy,
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => What::NotPermitted,
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt | ErrorCode::CannotOpen) => {
            What::Unusable
        }
        _ => What::Failed,
    };
    Trouble::new(what, error.to_string())
}

/// Ends the sessions whose time has passed.
pub(super) fn end_late(transaction: &Transaction<'_>, now: i64) -> Result<(), Trouble> {
    let is_late = "SELECT EXISTS (SELECT 1 FROM zklock_session WHERE expires <= ?1)";
    if query::<bool>(transaction, is_late, params![now])?.unwrap_or(false) {
        let claims = "DELETE FROM zklock_claim WHERE session IN
            (SELECT id FROM zklock_session WHERE expires <= ?1)";
        execute(transaction, claims, params![now])?;
        execute(transaction, "DELETE FROM zklock_session WHERE expires <= ?1", params![now])?;
    }
    Ok(())
}

pub(super) fn execute(
    transaction: &Transaction<'_>,
    sql: &str,
    values: impl rusqlite::Params,
) -> Result<usize, Trouble> {
    let mut statement = transaction.prepare_cached(sql).map_err(not_done)?;
    statement.execute(values).map_err(not_done)
}

/// The first column of the first row, if there is one.
pub(super) fn query<T: rusqlite::types::FromSql>(
    transaction: &Transaction<'_>,
    sql: &str,
    values: impl rusqlite::Params,
) -> Result<Option<T>, Trouble> {
    let mut statement = transaction.prepare_cached(sql).map_err(not_done)?;
    statement.query_row(values, |row| row.get(0)).optional().map_err(not_done)
}

/// Whether nobody has ended a session.
pub(super) fn is_alive(transaction: &Transaction<'_>, session: &str) -> Result<bool, Trouble> {
    let select = "SELECT 1 FROM zklock_session WHERE id = ?1";
    Ok(query::<i64>(transaction, select, [session])?.is_some())
}

pub(super) fn limit_of(transaction: &Transaction<'_>, lock: &str) -> Result<Option<u32>, Trouble> {
    query(transaction, "SELECT permits FROM zklock_limit WHERE lock = ?1", [lock])
}

/// Who holds, and who is next: reads no more than that.
pub(super) fn front_of(transaction: &Transaction<'_>, lock: &str) -> Result<Front, Trouble> {
    let limit = limit_of(transaction, lock)?;
    let select = "SELECT number, kind, permits FROM zklock_claim WHERE lock = ?1 ORDER BY number";
    let mut select = transaction.prepare_cached(select).map_err(not_done)?;
    let read = |row: &Found<'_>| Ok((row.get::<_, i64>(0)?, kind_of(row.get(1)?, row.get(2)?)));
    let rows = select.query_map([lock], read).map_err(not_done)?;
    let (mut numbers, mut failed) = (Vec::new(), None);
    let kinds = rows.map_while(|row| match row {
        Ok((number, kind)) => {
            numbers.push(number);
            Some(kind)
        }
        Err(error) => {
            failed = Some(error);
            None
        }
    });
    let holding: Vec<usize> = Kind::holding(limit.unwrap_or(0), kinds).collect();
    if let Some(error) = failed {
        return Err(not_done(error));
    }
    // They are in their order.
    let first = holding.iter().enumerate().find(|(at, place)| at != *place);
    let next = match numbers.get(first.map_or(holding.len(), |(at, _)| at)) {
        // Where one holds alone, the rest was not read.
        None => {
            let last = numbers.last().copied().unwrap_or(i64::MAX);
            let select = "SELECT min(number) FROM zklock_claim WHERE lock = ?1 AND number > ?2";
            query::<Option<i64>>(transaction, select, params![lock, last])?.flatten()
        }
        next => next.copied(),
    };
    let holding = holding.into_iter().map(|place| numbers[place]).collect();
    Ok(Front { holding, next, limit })
}

pub(super) const CONTENDER: &str =
    "SELECT number, lock, since, host, pid, thread, label FROM zklock_claim";

/// Of a row of those columns. Anyone may have written them.
pub(super) fn contender(row: &Found<'_>) -> rusqlite::Result<Contender> {
    let (token, lock): (i64, String) = (row.get(0)?, row.get(1)?);
    let line = |column| row.get(column).map(|text: String| one_line(&text, MAX_TEXT));
    let since = Duration::from_millis(row.get::<_, i64>(2)?.unsigned_abs());
    Ok(Contender {
        path: crate::leased::path_of(&lock, token),
        session: 0,
        token,
        since: UNIX_EPOCH + since,
        held_since: None,
        host: line(3)?,
        pid: row.get(4)?,
        thread: line(5)?,
        label: line(6)?,
    })
}

pub(super) fn ahead_of(
    transaction: &Transaction<'_>,
    lock: &str,
    number: i64,
    kind: Kind,
) -> Result<Option<Contender>, Trouble> {
    // Whom a claim waits for is `Kind::waits_for`: asked of each kind there is, not of each claim.
    let waits_for = (0..=3).filter(|other| kind.waits_for(kind_of(*other, 1)));
    let waits_for: Vec<String> = waits_for.map(|kind: i64| kind.to_string()).collect();
    let select = format!(
        "{CONTENDER} WHERE lock = ?1 AND number < ?2 AND kind IN ({}) ORDER BY number DESC LIMIT 1",
        waits_for.join(", ")
    );
    let mut select = transaction.prepare_cached(&select).map_err(not_done)?;
    select.query_row(params![lock, number], contender).optional().map_err(not_done)
}

/// Fails where a machine has taken the file over that has another clock.
pub(super) fn check_clock(transaction: &Transaction<'_>, clock: &str) -> Result<(), Trouble> {
    let select = "SELECT value = ?1 FROM zklock_meta WHERE name = 'clock'";
    let is_ours = transaction
        .prepare_cached(select)
        .and_then(|mut select| select.query_row([clock], |row| row.get(0)).optional());
    match is_ours.map_err(not_done)? {
        Some(true) => Ok(()),
        _ => Err(Trouble::new(What::Unusable, "another machine has taken the database file over")),
    }
}
