//! A database file of SQLite: locks between the processes of one machine.
//!
//! Each step is a transaction that takes SQLite's write lock when it begins, so all steps of all processes are in one
//! order, and the clock is read inside of it. What only looks is a snapshot, and ends nobody's session by that: a
//! renewal may be under way that it does not see.
//!
//! The **clock** is the machine's own since it was started: it goes on while the machine sleeps, and no setting of the time
//! of day moves it. All processes of a machine have the same; which machine it is, and since which start, is
//! written beside the sessions. Sessions by another clock are watched for their whole lease by our own before
//! they are taken to be over; where one is renewed meanwhile, another machine uses the file, and it is refused.
//!
//! Commits are not waited for to be on the disk: no process outlives a crash of the machine. Tokens have to: they begin,
//! with each start of the machine and each new file, above all that can have been given before by the time of day.

mod opening;
mod queries;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, Row as Found, Transaction, params};
use uuid::Uuid;

use super::columns_of;
use crate::leased::database::{Claimed, Database, Front, Row, Trouble, Wants, What};
use crate::lock::{Contender, HeldSince, Kind, MAX_TEXT, Revocation};
use crate::runtime::BootInstant;
use crate::text::one_line;

use queries::{
    CONTENDER, ahead_of, begin, check_clock, commit, contender, end_late, execute, front_of,
    is_alive, limit_of, not_done, query,
};

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
    /// Does a step. It is given the time, which is no earlier than any other step's before it.
    fn step<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>, i64) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        self.check_file()?;
        let clock = self.clock.clone();
        let transaction = begin(&mut self.connection)?;
        let done = work(&transaction, now())?;
        check_clock(&transaction, &clock)?;
        commit(transaction)?;
        // What was written into a file that is nobody's any more is not done.
        self.check_file()?;
        Ok(done)
    }

    /// Looks at one state of the database.
    fn look<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        self.check_file()?;
        let transaction = self.connection.transaction().map_err(not_done)?;
        work(&transaction)
    }

    /// Where the file was deleted or replaced, its sessions are over, and the next steps are those of the file that is
    /// there.
    fn check_file(&mut self) -> Result<(), Trouble> {
        if identity(&self.file).is_ok_and(|now| now == self.identity) {
            return Ok(());
        }
        let clock = self.clock.clone();
        let mut again = Sqlite::connect(&self.file, &clock)?;
        let no_pause = || true;
        again.take_over(&no_pause)?;
        again.connection.pragma_update(None, "synchronous", "NORMAL").map_err(not_done)?;
        *self = again;
        let why = "the database file was deleted or replaced";
        Err(Trouble::new(What::SessionOver, why))
    }
}

/// By that clock, in nanoseconds.
fn now() -> i64 {
    i64::try_from(BootInstant::now().as_nanos()).unwrap_or(i64::MAX)
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX / 4)
}

fn identity(file: &Path) -> Result<(u64, u64), Trouble> {
    let found = fs::metadata(file)
        .map_err(|error| Trouble::new(What::Failed, format!("{}: {error}", file.display())))?;
    Ok((found.dev(), found.ino()))
}

impl Database for Sqlite {
    fn begin(&mut self, session: Uuid, lease: Duration) -> Result<(), Trouble> {
        let insert = "INSERT INTO zklock_session (id, lease, expires) VALUES (?1, ?2, ?3)";
        self.step(|transaction, now| {
            let lease = nanos(lease);
            execute(transaction, insert, params![session.to_string(), lease, now + lease])?;
            Ok(())
        })
    }

    fn renew(&mut self, session: Uuid, lease: Duration) -> Result<bool, Trouble> {
        // One whose time has passed is over, also where nobody has ended it yet.
        let update = "UPDATE zklock_session SET expires = ?2 WHERE id = ?1 AND expires > ?3";
        let renewed = self.step(|transaction, now| {
            execute(transaction, update, params![session.to_string(), now + nanos(lease), now])
        });
        match renewed {
            Err(trouble) if trouble.is(What::SessionOver) => Ok(false),
            renewed => Ok(renewed? > 0),
        }
    }

    fn end(&mut self, session: Uuid) -> Result<(), Trouble> {
        let session = session.to_string();
        self.step(|transaction, _| {
            execute(transaction, "DELETE FROM zklock_claim WHERE session = ?1", [&session])?;
            execute(transaction, "DELETE FROM zklock_session WHERE id = ?1", [&session])?;
            Ok(())
        })
    }

    fn claim(&mut self, row: &Row, unless_blocked: bool) -> Result<Claimed, Trouble> {
        let (id, session, lock) = (row.id.to_string(), row.session.to_string(), row.lock.as_str());
        let (kind, permits) = columns_of(row.kind);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let since = i64::try_from(since).unwrap_or(i64::MAX);
        let mut blocked = None;
        let made = self.step(|transaction, now| {
            end_late(transaction, now)?;
            if !is_alive(transaction, &session)? {
                return Err(Trouble::new(What::SessionOver, "its session is over"));
            }
            if let Kind::Permits(wanted) = row.kind {
                let insert = "INSERT OR IGNORE INTO zklock_limit (lock, permits) VALUES (?1, ?2)";
                execute(transaction, insert, params![lock, row.limit])?;
                if limit_of(transaction, lock)?.unwrap_or(0) < wanted {
                    let why = "it has fewer permits than are asked for";
                    return Err(Trouble::new(What::TooFewPermits, why));
                }
            }
            // One that was made on an earlier session goes with that.
            let earlier = "DELETE FROM zklock_claim WHERE id = ?1 AND session <> ?2";
            execute(transaction, earlier, [&id, &session])?;
            let insert = "INSERT INTO zklock_claim
                (id, session, lock, kind, permits, since, host, pid, thread, label)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (id) DO NOTHING";
            let Row { host, pid, thread, label, .. } = row;
            let values = params![id, session, lock, kind, permits, since, host, pid, thread, label];
            execute(transaction, insert, values)?;
            let select = "SELECT number FROM zklock_claim WHERE id = ?1";
            let number: i64 = query(transaction, select, [&id])?
                .ok_or_else(|| Trouble::new(What::Failed, "a claim that was made is not there"))?;
            if front_of(transaction, lock)?.holding.contains(&number) {
                return Ok(Claimed::Holds { number });
            }
            let ahead = ahead_of(transaction, lock, number, row.kind)?;
            if unless_blocked {
                // Nothing of this is done.
                blocked = Some(ahead);
                return Err(Trouble::new(What::Failed, "it would have to wait"));
            }
            Ok(Claimed::Waits { number, ahead })
        });
        match blocked {
            Some(ahead) => Ok(Claimed::Blocked(ahead)),
            None => made,
        }
    }

    fn release(&mut self, claim: Uuid) -> Result<bool, Trouble> {
        let delete = "DELETE FROM zklock_claim WHERE id = ?1";
        let deleted = self.step(|transaction, _| execute(transaction, delete, [claim.to_string()]));
        Ok(deleted? > 0)
    }

    fn front(&mut self, lock: &str) -> Result<Front, Trouble> {
        self.look(|transaction| front_of(transaction, lock))
    }

    fn ahead(&mut self, lock: &str, number: i64, kind: Kind) -> Result<Option<Contender>, Trouble> {
        self.look(|transaction| ahead_of(transaction, lock, number, kind))
    }

    fn contenders(&mut self, lock: &str, number: usize) -> Result<Vec<Contender>, Trouble> {
        // Those who died hold no more, also where nobody else came since.
        self.sweep()?;
        self.look(|transaction| {
            let holding = front_of(transaction, lock)?.holding;
            let select = format!("{CONTENDER} WHERE lock = ?1 ORDER BY number LIMIT ?2");
            let mut select = transaction.prepare_cached(&select).map_err(not_done)?;
            let most = i64::try_from(number).unwrap_or(i64::MAX);
            let rows = select.query_map(params![lock, most], contender).map_err(not_done)?;
            let latest = SystemTime::now();
            let holds = |mut contender: Contender| {
                if holding.contains(&contender.token) {
                    let earliest = contender.since.min(latest);
                    contender.held_since = Some(HeldSince { earliest, latest });
                }
                contender
            };
            rows.map(|row| row.map(holds)).collect::<Result<_, _>>().map_err(not_done)
        })
    }

    fn revoke(&mut self, lock: &str, number: i64, what: &Revocation) -> Result<bool, Trouble> {
        let (column, value): (_, &dyn rusqlite::ToSql) = match what {
            Revocation::Ask { reason } => ("asked", reason),
            Revocation::Break { grace, .. } => {
                ("grace", &i64::try_from(grace.as_millis()).unwrap_or(i64::MAX))
            }
        };
        let update = format!("UPDATE zklock_claim SET {column} = ?2 WHERE number = ?1");
        self.step(|transaction, now| {
            end_late(transaction, now)?;
            let holds = front_of(transaction, lock)?.holding.contains(&number);
            Ok(holds && execute(transaction, &update, params![number, value])? > 0)
        })
    }

    fn is_there(&mut self, _: &str, number: i64) -> Result<bool, Trouble> {
        let select = "SELECT 1 FROM zklock_claim WHERE number = ?1";
        self.look(|transaction| Ok(query::<i64>(transaction, select, [number])?.is_some()))
    }

    fn wanted(&mut self, session: Uuid) -> Result<Option<Wants>, Trouble> {
        let session = session.to_string();
        self.look(|transaction| {
            if !is_alive(transaction, &session)? {
                return Ok(None);
            }
            let count = "SELECT count(*) FROM zklock_claim WHERE session = ?1";
            let claims: i64 = query(transaction, count, [&session])?.unwrap_or(0);
            let select = "SELECT number, asked, grace FROM zklock_claim
                WHERE session = ?1 AND (asked IS NOT NULL OR grace IS NOT NULL)";
            let mut select = transaction.prepare_cached(select).map_err(not_done)?;
            let read = |row: &Found<'_>| {
                let (number, asked): (i64, Option<String>) = (row.get(0)?, row.get(1)?);
                let grace = row.get::<_, Option<i64>>(2)?.map(|grace| {
                    let grace = Duration::from_millis(grace.unsigned_abs());
                    (number, Revocation::Break { reason: String::new(), grace })
                });
                let asked = asked.map(|reason| {
                    (number, Revocation::Ask { reason: one_line(&reason, MAX_TEXT) })
                });
                Ok([asked, grace])
            };
            let rows = select.query_map([&session], read).map_err(not_done)?;
            let rows: Vec<_> = rows.collect::<Result<_, _>>().map_err(not_done)?;
            let revocations = rows.into_iter().flatten().flatten().collect();
            Ok(Some(Wants { claims: usize::try_from(claims).unwrap_or(0), revocations }))
        })
    }

    fn numbers(&mut self, session: Uuid) -> Result<Option<Vec<(i64, Uuid)>>, Trouble> {
        let session = session.to_string();
        let select = "SELECT number, id FROM zklock_claim WHERE session = ?1";
        self.look(|transaction| {
            if !is_alive(transaction, &session)? {
                return Ok(None);
            }
            let mut select = transaction.prepare_cached(select).map_err(not_done)?;
            let read = |row: &Found<'_>| Ok((row.get(0)?, row.get::<_, String>(1)?));
            let numbers = select.query_map([&session], read).map_err(not_done)?;
            let id = |(number, id): (i64, String)| Ok((number, id.parse().unwrap_or_default()));
            numbers
                .map(|row| row.and_then(id))
                .collect::<Result<_, _>>()
                .map(Some)
                .map_err(not_done)
        })
    }

    fn limit(&mut self, lock: &str) -> Result<Option<u32>, Trouble> {
        self.look(|transaction| limit_of(transaction, lock))
    }

    fn set_limit(&mut self, lock: &str, limit: u32) -> Result<(), Trouble> {
        let upsert = "INSERT INTO zklock_limit VALUES (?1, ?2)
            ON CONFLICT DO UPDATE SET permits = excluded.permits";
        self.step(|transaction, _| {
            execute(transaction, upsert, params![lock, limit])?;
            Ok(())
        })
    }

    fn has_changed(&mut self) -> Result<bool, Trouble> {
        let version = self.connection.prepare_cached("PRAGMA data_version");
        let version = version.and_then(|mut version| version.query_row([], |row| row.get(0)));
        let version: i64 = version.map_err(not_done)?;
        Ok(std::mem::replace(&mut self.version, version) != version)
    }

    fn sweep(&mut self) -> Result<Option<Duration>, Trouble> {
        let first = "SELECT min(expires) FROM zklock_session";
        let first = |transaction: &Transaction<'_>| {
            Ok(query::<Option<i64>>(transaction, first, [])?.flatten())
        };
        let left = |expires: i64| Duration::from_nanos(u64::try_from(expires - now()).unwrap_or(0));
        match self.look(first)?.map(left) {
            Some(Duration::ZERO) => {
                // By a step: a renewal that is under way is there before it, or finds it over.
                let next = self.step(|transaction, now| {
                    end_late(transaction, now)?;
                    first(transaction)
                });
                Ok(next?.map(left))
            }
            next => Ok(next),
        }
    }
}
