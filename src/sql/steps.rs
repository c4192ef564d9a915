//! The steps of a store of leases as transactions, for all databases.

use std::iter;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use uuid::Uuid;

use super::dialect::{Begun, Dialect, Row as Found, Statement, Value, step};
use super::queries::{
    CONTENDER, EVERYWHERE, IN_FRONT, PAGES, adopt, ahead_of, contender, delete_session, end_late,
    first_page, front_from, front_of, has_too_long, limit_of, orphans, shorten, wake,
};
use crate::leased::database::{
    Cause, Changes, Claimed, Database, Front, Row, StepError, Swept, Wants,
};
use crate::lock::{Contender, HeldSince, Kind, MAX_TEXT, Revocation};
use crate::text::one_line;

/// A kind, in two columns.
fn columns_of(kind: Kind) -> (i64, u32) {
    match kind {
        // Of these two there is none here: they are refused before.
        Kind::Exclusive | Kind::Upgradeable | Kind::Upgrade => (0, 0),
        Kind::Write => (1, 0),
        Kind::Read => (2, 0),
        Kind::Permits(number) => (3, number),
    }
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX / 4)
}

/// Makes a claim, and finds out whether it holds.
fn make<D: Dialect>(
    database: &mut D,
    row: &Row,
    begun: Begun,
    unless_blocked: bool,
) -> Result<Claimed, StepError> {
    let (id, session, path) = (row.id.to_string(), row.session.to_string(), row.lock.as_str());
    if let Kind::Permits(wanted) = row.kind {
        let unless_there = D::unless_there("zklock_limit", "path");
        let insert =
            format!("INSERT INTO zklock_limit (path, permits) VALUES (?, ?) {unless_there}");
        database.execute(&insert, &[path.into(), row.limit.into()])?;
        if limit_of(database, path)?.unwrap_or(0) < wanted {
            let why = "it has fewer permits than are asked for";
            return Err(StepError::new(Cause::TooFewPermits, why));
        }
    }
    let (number, first) = insert(database, row, begun, &id, &session)?;
    let mut holds = front_from(database, path, first)?.holding.contains(&number);
    if !holds && end_late(database, begun.now)? {
        holds = front_of(database, path)?.holding.contains(&number);
    }
    if holds {
        return Ok(Claimed::Holds { number });
    }
    let ahead = ahead_of(database, path, number, row.kind)?;
    Ok(if unless_blocked { Claimed::Blocked(ahead) } else { Claimed::Waits { number, ahead } })
}

/// Makes a claim's row, unless it is there already. Gives its number, and, where it is new, the lock's first page.
fn insert<D: Dialect>(
    database: &mut D,
    row: &Row,
    begun: Begun,
    id: &str,
    session: &str,
) -> Result<(i64, Option<Vec<Found>>), StepError> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let since = i64::try_from(since).unwrap_or(i64::MAX);
    let (kind, permits) = columns_of(row.kind);
    // Whoever ends the session waits for this step, or this one for that.
    let insert = format!(
        "INSERT INTO zklock_claim (number, id, session, path, kind, permits, since, host, pid, thread, label)
         SELECT ?, ?, id, ?, ?, ?, ?, ?, ?, ?, ? FROM zklock_session WHERE id = ? AND expires > ?{} {}",
        D::LOCKED,
        D::unless_there("zklock_claim", "id")
    );
    let values = vec![
        begun.number.map_or(Value::Null, Value::Int),
        id.into(),
        (&row.lock).into(),
        kind.into(),
        permits.into(),
        since.into(),
        (&row.host).into(),
        row.pid.into(),
        (&row.thread).into(),
        (&row.label).into(),
        session.into(),
        begun.now.into(),
    ];
    let (made, first) =
        database.execute_then_query((&insert, values.clone()), (PAGES, first_page(&row.lock)))?;
    let is_new = made > 0;
    if let Some(number) = begun.number.filter(|_| is_new) {
        return Ok((number, Some(first)));
    }
    let find = |database: &mut D| {
        let select = "SELECT number, session FROM zklock_claim WHERE id = ?";
        let found = database.query(select, &[id.into()])?;
        let Some(found) = found.first() else { return Ok(None) };
        Ok(Some((found.int(0)?, found.text(1)? == session)))
    };
    let over = || StepError::new(Cause::SessionOver, "its session is over");
    match find(database)? {
        Some((number, true)) if is_new => Ok((number, Some(first))),
        Some((number, true)) if is_alive(database, session, begun.now)? => Ok((number, None)),
        Some((_, true)) | None => Err(over()),
        Some((_, false)) => {
            // One that was made on an earlier session goes with that.
            database.execute("DELETE FROM zklock_claim WHERE id = ?", &[id.into()])?;
            database.execute(&insert, &values)?;
            Ok((find(database)?.ok_or_else(over)?.0, None))
        }
    }
}

fn is_alive<D: Dialect>(database: &mut D, session: &str, now: i64) -> Result<bool, StepError> {
    let select = "SELECT expires FROM zklock_session WHERE id = ? AND expires > ?";
    Ok(!database.query(select, &[session.into(), now.into()])?.is_empty())
}

impl<D: Dialect> Database for D {
    fn begin(&mut self, session: Uuid, lease: Duration) -> Result<(), StepError> {
        let insert = "INSERT INTO zklock_session (id, lease, expires) VALUES (?, ?, ?)";
        let (session, lease) = (session.to_string(), nanos(lease));
        step(self, None, |database, begun| {
            let values = [(&session).into(), lease.into(), (begun.now + lease).into()];
            database.execute(insert, &values).map(drop)
        })
    }

    fn renew(&mut self, session: Uuid, lease: Duration) -> Result<bool, StepError> {
        // One whose time has passed is over, also where nobody has ended it yet.
        let update = "UPDATE zklock_session SET expires = ? WHERE id = ? AND expires > ?";
        let session = session.to_string();
        let renewed = step(self, None, |database, Begun { now, .. }| {
            let values = [(now + nanos(lease)).into(), (&session).into(), now.into()];
            database.execute(update, &values)
        });
        match renewed {
            Err(failure) if failure.is(Cause::SessionOver) => Ok(false),
            renewed => Ok(renewed? > 0),
        }
    }

    fn end(&mut self, session: Uuid) -> Result<(), StepError> {
        let session = session.to_string();
        step(self, Some(&session), |database, _| delete_session(database, &session))
    }

    fn claim(&mut self, row: &Row, unless_blocked: bool) -> Result<Claimed, StepError> {
        let (mut blocked, mut has_orphans) = (None, false);
        let made = step(self, Some(&row.lock), |database, begun| {
            let made = make(database, row, begun, unless_blocked)?;
            if !matches!(made, Claimed::Holds { .. }) {
                let lock = (&row.lock).into();
                has_orphans = !orphans(database, IN_FRONT, &[lock])?.is_empty();
            }
            if matches!(made, Claimed::Blocked(_)) {
                // Nothing of this is done.
                blocked = Some(made);
                return Err(StepError::new(Cause::Failed, "it would have to wait"));
            }
            Ok(made)
        });
        let made = blocked.map_or(made, Ok)?;
        if has_orphans {
            // Where it fails, whoever waits does it later.
            let _ = self.repair();
        }
        if matches!(made, Claimed::Waits { .. }) {
            self.waits(&row.session.to_string());
        }
        Ok(made)
    }

    fn release(&mut self, claim: Uuid, path: &str) -> Result<bool, StepError> {
        let id = claim.to_string();
        let delete = ("DELETE FROM zklock_claim WHERE id = ?", vec![(&id).into()]);
        let wake = Self::WAKE.map(|wake| (wake, vec![path.into()]));
        let statements: Vec<Statement<'_>> = iter::once(delete).chain(wake).collect();
        let changed = self.apply(path, &statements)?;
        Ok(changed.first().is_some_and(|deleted| *deleted > 0))
    }

    fn front(&mut self, lock: &str) -> Result<Front, StepError> {
        front_of(self, lock)
    }

    fn ahead(
        &mut self,
        lock: &str,
        number: i64,
        kind: Kind,
    ) -> Result<Option<Contender>, StepError> {
        ahead_of(self, lock, number, kind)
    }

    fn contenders(&mut self, lock: &str, number: usize) -> Result<Vec<Contender>, StepError> {
        // Those who died hold no more, also where nobody else came since.
        self.sweep()?;
        let holding = front_of(self, lock)?.holding;
        let select = format!("{CONTENDER} WHERE path = ? ORDER BY number LIMIT ?");
        let most = i64::try_from(number).unwrap_or(i64::MAX);
        let latest = SystemTime::now();
        let read = |found: &Found| {
            let mut contender = contender(found)?;
            if holding.contains(&contender.token) {
                let earliest = contender.since.min(latest);
                contender.held_since = Some(HeldSince { earliest, latest });
            }
            Ok(contender)
        };
        self.query(&select, &[lock.into(), most.into()])?.iter().map(read).collect()
    }

    fn revoke(&mut self, lock: &str, number: i64, what: &Revocation) -> Result<bool, StepError> {
        let (column, value) = match what {
            Revocation::Ask { reason } => ("asked", one_line(reason, MAX_TEXT).as_str().into()),
            Revocation::Break { grace, .. } => {
                ("grace", i64::try_from(grace.as_millis()).unwrap_or(i64::MAX).into())
            }
        };
        let update = format!("UPDATE zklock_claim SET {column} = ? WHERE number = ?");
        step(self, Some(lock), |database, begun| {
            end_late(database, begun.now)?;
            let front = front_of(database, lock)?;
            // If there are fewer permits than before, it is not known who holds above that.
            let holds = front.holding.contains(&number)
                || front.limit.is_some() && database.is_there(lock, number)?;
            if holds {
                database.execute(&update, &[value, number.into()])?;
                wake(database, lock)?;
            }
            Ok(holds)
        })
    }

    fn is_there(&mut self, _: &str, number: i64) -> Result<bool, StepError> {
        let select = "SELECT number FROM zklock_claim WHERE number = ?";
        Ok(!self.query(select, &[number.into()])?.is_empty())
    }

    fn wanted(&mut self, session: Uuid) -> Result<Option<Wants>, StepError> {
        let session = session.to_string();
        let select = "SELECT (SELECT count(*) FROM zklock_claim WHERE session = s.id), c.number, c.asked, c.grace
            FROM zklock_session s LEFT JOIN zklock_claim c
            ON c.session = s.id AND (c.asked IS NOT NULL OR c.grace IS NOT NULL) WHERE s.id = ?";
        let found = self.query(select, &[(&session).into()])?;
        let Some(first) = found.first() else { return Ok(None) };
        let claims = usize::try_from(first.int(0)?).unwrap_or(0);
        let mut revocations = Vec::new();
        for found in &found {
            let Some(number) = found.some_int(1)? else { continue };
            if let Some(reason) = found.some_text(2)? {
                let reason = one_line(reason, MAX_TEXT);
                revocations.push((number, Revocation::Ask { reason }));
            }
            if let Some(grace) = found.some_int(3)? {
                let grace = Duration::from_millis(grace.unsigned_abs());
                revocations.push((number, Revocation::Break { reason: String::new(), grace }));
            }
        }
        Ok(Some(Wants { claims, revocations }))
    }

    fn numbers(&mut self, session: Uuid) -> Result<Option<Vec<(i64, Uuid)>>, StepError> {
        let select = "SELECT c.number, c.id FROM zklock_session s
            LEFT JOIN zklock_claim c ON c.session = s.id WHERE s.id = ?";
        let found = self.query(select, &[session.to_string().as_str().into()])?;
        if found.is_empty() {
            return Ok(None);
        }
        let mut numbers = Vec::new();
        for row in found {
            if let (Some(number), Some(id)) = (row.some_int(0)?, row.some_text(1)?) {
                // What is no id is a row that no store has written.
                numbers.push((number, id.parse().unwrap_or_default()));
            }
        }
        Ok(Some(numbers))
    }

    fn limit(&mut self, lock: &str) -> Result<Option<u32>, StepError> {
        limit_of(self, lock)
    }

    fn set_limit(&mut self, lock: &str, limit: u32) -> Result<(), StepError> {
        step(self, Some(lock), |database, _| {
            database.execute("DELETE FROM zklock_limit WHERE path = ?", &[lock.into()])?;
            let insert = "INSERT INTO zklock_limit (path, permits) VALUES (?, ?)";
            database.execute(insert, &[lock.into(), limit.into()])?;
            wake(database, lock)
        })
    }

    fn raise_tokens(&mut self, above: i64) -> Result<(), StepError> {
        let raised = step(self, None, |database, _| database.raise_numbers(above));
        raised.map_err(|failure| match failure.cause {
            Cause::Unknown => StepError { cause: Cause::Busy, ..failure },
            _ => failure,
        })
    }

    fn changes(&mut self) -> Result<Changes, StepError> {
        Ok(if self.look_for_changes()? { Changes::Any } else { Changes::None })
    }

    fn may_concern(&self, lock: &str) -> bool {
        Dialect::may_concern(self, lock)
    }

    fn sweep(&mut self) -> Result<Swept, StepError> {
        let left = |expires: i64, now: i64| {
            Duration::from_nanos(u64::try_from(expires - now).unwrap_or(0))
        };
        let (first, now) = self.first_end()?;
        match first.map(|expires| left(expires, now)) {
            Some(Duration::ZERO) => {
                // By a step: a renewal that is under way is there before it, or finds it over.
                step(self, Some("sweep"), |database, begun| {
                    let has_ended = end_late(database, begun.now)?;
                    let (first, now) = database.first_end()?;
                    Ok(Swept { next: first.map(|expires| left(expires, now)), has_ended })
                })
            }
            next => Ok(Swept { next, has_ended: false }),
        }
    }

    fn repair(&mut self) -> Result<(), StepError> {
        let (_, now) = self.first_end()?;
        if orphans(self, EVERYWHERE, &[])?.is_empty() && !has_too_long(self, now)? {
            return Ok(());
        }
        step(self, Some("sweep"), |database, Begun { now, .. }| {
            shorten(database, now)?;
            let orphans = orphans(database, EVERYWHERE, &[])?;
            adopt(database, &orphans, now)
        })
    }

    fn longest_look(&self) -> Duration {
        self.pauses().0
    }

    fn held_look(&self) -> Duration {
        self.pauses().1
    }

    fn announce(&mut self, changed: Box<dyn Fn() -> bool + Send>) {
        self.listen(changed);
    }
}
