//! Queries and statements that several steps are made of.

use std::time::{Duration, UNIX_EPOCH};

use super::dialect::{Dialect, Row, Value};
use crate::leased::database::{Front, StepError};
use crate::lock::{Contender, Kind, MAX_TEXT};
use crate::text::one_line;

/// How many claims are read at a time.
const PAGE: i64 = 16;

/// From two columns; what is not known holds alone.
fn kind_of(kind: i64, permits: u32) -> Kind {
    match kind {
        1 => Kind::Write,
        2 => Kind::Read,
        3 => Kind::Permits(permits),
        _ => Kind::Exclusive,
    }
}

/// Within a step: wakes the waiters for a lock once it is done, where the database can do that.
pub(super) fn wake<D: Dialect>(database: &mut D, path: &str) -> Result<(), StepError> {
    D::WAKE.map_or(Ok(()), |wake| database.execute(wake, &[path.into()]).map(drop))
}

/// Ends a session, and its claims: in this order, so that no claim is made on it meanwhile.
pub(super) fn delete_session<D: Dialect>(database: &mut D, session: &str) -> Result<(), StepError> {
    database.execute("DELETE FROM zklock_session WHERE id = ?", &[session.into()])?;
    let select = "SELECT DISTINCT path FROM zklock_claim WHERE session = ?";
    let paths = database.query(select, &[session.into()])?;
    if !paths.is_empty() {
        database.execute("DELETE FROM zklock_claim WHERE session = ?", &[session.into()])?;
        database.has_ended_session()?;
    }
    paths.iter().try_for_each(|path| wake(database, path.text(0)?))
}

/// Ends the expired sessions, except those that another client renews or ends at this moment. Returns whether there
/// were any.
pub(super) fn end_late<D: Dialect>(database: &mut D, now: i64) -> Result<bool, StepError> {
    let select = format!("SELECT id FROM zklock_session WHERE expires <= ?{}", D::UNLESS_LOCKED);
    let late = database.query(&select, &[now.into()])?;
    for session in &late {
        delete_session(database, session.text(0)?)?;
    }
    Ok(!late.is_empty())
}

/// All claims, and the first ones on a lock.
pub(super) const EVERYWHERE: &str = "zklock_claim";
pub(super) const IN_FRONT: &str =
    "(SELECT session FROM zklock_claim WHERE path = ? ORDER BY number LIMIT 16)";
/// The lease of a session that comes back where there is no other, in nanoseconds: long rather than short.
const LEASE: i64 = 60_000_000_000;

/// The sessions of claims without a session row, because someone has deleted that row. A claim is made while its
/// session's row is locked, and deleted together with it. So no step of ours leaves such a claim.
pub(super) fn orphans<D: Dialect>(
    database: &mut D,
    claims: &str,
    values: &[Value],
) -> Result<Vec<Row>, StepError> {
    let select = format!(
        "SELECT DISTINCT session FROM {claims} c
         WHERE NOT EXISTS (SELECT id FROM zklock_session s WHERE s.id = c.session)"
    );
    database.query(&select, values)
}

/// Has those sessions last for the longest lease that is known from now on: a holder that lives trusts its guard no longer
/// than that, and renews it, and one that is dead keeps nobody out after it.
pub(super) fn adopt<D: Dialect>(
    database: &mut D,
    orphans: &[Row],
    now: i64,
) -> Result<(), StepError> {
    if orphans.is_empty() {
        return Ok(());
    }
    let longest = database.query("SELECT max(lease) FROM zklock_session", &[])?;
    let lease = longest.first().map_or(Ok(None), |longest| longest.some_int(0))?.unwrap_or(LEASE);
    let insert = format!(
        "INSERT INTO zklock_session (id, lease, expires) VALUES (?, ?, ?) {}",
        D::unless_there("zklock_session", "id")
    );
    for orphan in orphans {
        let expires = now.saturating_add(lease);
        database.execute(&insert, &[orphan.text(0)?.into(), lease.into(), expires.into()])?;
    }
    Ok(())
}

/// Whether any session lasts for more than two leases. Renewals give one; one that is under way may have read the clock
/// later.
pub(super) fn has_too_long<D: Dialect>(database: &mut D, now: i64) -> Result<bool, StepError> {
    let select = "SELECT id FROM zklock_session WHERE expires > ? + 2 * lease LIMIT 1";
    Ok(!database.query(select, &[now.into()])?.is_empty())
}

/// Has those last for two.
pub(super) fn shorten<D: Dialect>(database: &mut D, now: i64) -> Result<(), StepError> {
    let update = "UPDATE zklock_session SET expires = ? + 2 * lease WHERE expires > ? + 2 * lease";
    database.execute(update, &[now.into(), now.into()]).map(drop)
}

/// Some claims on a lock, in their order.
pub(super) const PAGES: &str = "SELECT number, kind, permits FROM zklock_claim
    WHERE path = ? AND number > ? ORDER BY number LIMIT ?";

/// The values of [`PAGES`] for so many claims after that number.
fn page(path: &str, after: Option<i64>, length: i64) -> Vec<Value> {
    vec![path.into(), after.unwrap_or(i64::MIN).into(), length.into()]
}

/// The values of [`PAGES`] for the first claims.
pub(super) fn first_page(path: &str) -> Vec<Value> {
    page(path, None, PAGE)
}

pub(super) fn limit_of<D: Dialect>(database: &mut D, path: &str) -> Result<Option<u32>, StepError> {
    let select = "SELECT permits FROM zklock_limit WHERE path = ?";
    database.query(select, &[path.into()])?.first().map(|found| found.small(0)).transpose()
}

/// Reads the holders and the next waiter, and little more. It need not be a snapshot: claims before one that was read
/// may end meanwhile, but none is added there.
pub(super) fn front_of<D: Dialect>(database: &mut D, path: &str) -> Result<Front, StepError> {
    front_from(database, path, None)
}

/// The same, where the first page may be known.
pub(super) fn front_from<D: Dialect>(
    database: &mut D,
    path: &str,
    mut first: Option<Vec<Row>>,
) -> Result<Front, StepError> {
    let (mut numbers, mut kinds, mut limit) = (Vec::new(), Vec::new(), None);
    // Few wait as a rule, but thousands may hold.
    let mut length = PAGE;
    loop {
        let values = page(path, numbers.last().copied(), length);
        let page = first.take().map_or_else(|| database.query(PAGES, &values), Ok)?;
        for row in &page {
            numbers.push(row.int(0)?);
            kinds.push(kind_of(row.int(1)?, row.small(2)?));
        }
        if limit.is_none() && kinds.iter().any(|kind| matches!(kind, Kind::Permits(_))) {
            limit = limit_of(database, path)?;
        }
        let holding: Vec<usize> =
            Kind::holding(limit.unwrap_or(0), kinds.iter().copied()).collect();
        // They are in their order.
        let first = holding.iter().enumerate().find(|(at, place)| at != *place);
        let next = numbers.get(first.map_or(holding.len(), |(at, _)| at)).copied();
        if next.is_some() || i64::try_from(page.len()).is_ok_and(|found| found < length) {
            let holding = holding.into_iter().map(|place| numbers[place]).collect();
            return Ok(Front { holding, next, limit });
        }
        length *= 2;
    }
}

pub(super) const CONTENDER: &str =
    "SELECT number, path, since, host, pid, thread, label FROM zklock_claim";

/// Of a row of those columns.
pub(super) fn contender(found: &Row) -> Result<Contender, StepError> {
    let (token, path) = (found.int(0)?, found.text(1)?);
    let line = |column| found.text(column).map(|text| one_line(text, MAX_TEXT));
    let since = Duration::from_millis(found.int(2)?.unsigned_abs());
    Ok(Contender {
        path: crate::leased::path_of(path, token),
        session: 0,
        token,
        since: UNIX_EPOCH + since,
        held_since: None,
        host: line(3)?,
        pid: found.small(4)?,
        thread: line(5)?,
        label: line(6)?,
    })
}

pub(super) fn ahead_of<D: Dialect>(
    database: &mut D,
    path: &str,
    number: i64,
    kind: Kind,
) -> Result<Option<Contender>, StepError> {
    // Whom a claim waits for is `Kind::waits_for`: asked of each kind there is, not of each claim.
    let waits_for = (0..=3).filter(|other| kind.waits_for(kind_of(*other, 1)));
    let waits_for: Vec<String> = waits_for.map(|kind: i64| kind.to_string()).collect();
    let select = format!(
        "{CONTENDER} WHERE path = ? AND number < ? AND kind IN ({}) ORDER BY number DESC LIMIT 1",
        waits_for.join(", ")
    );
    database.query(&select, &[path.into(), number.into()])?.first().map(contender).transpose()
}
