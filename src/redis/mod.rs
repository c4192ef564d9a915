//! A server of Redis: locks between machines, as good as one server, or its replica, can promise them.
//!
//! Each step is one script (`steps.lua`), which the server runs alone. The clock is the server's time of day. A restarted
//! server, or a promoted replica, may have lost the write that made a holder. So for one lease it lets nobody acquire a
//! lock. By then the old holder has lost its lock by its own clock. A client that comes from another server says so, and
//! this one waits as well. No script can detect a server that still serves some clients while its replica serves others.
//!
//! The scripts notify only the clients that are concerned (`subscriber.rs`). Clients also look for changes themselves, so
//! nothing depends on a notification.

mod place;
mod subscriber;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::{Connection, ErrorKind, RedisError, Script, ServerErrorKind};
use uuid::Uuid;

use self::place::Place;
use self::subscriber::Inbox;
use crate::leased::attempts::{Attempts, first};
use crate::leased::database::{
    Cause, Changes, Claimed, Database, Front, Row, StepError, Swept, Wants,
};
use crate::lock::{Contender, HeldSince, Kind, MAX_TEXT, Revocation};
use crate::runtime::BootInstant;
use crate::text::one_line;
use crate::tls::Tls;

/// The prefix of all keys.
const PREFIX: &str = "zklock:";
/// The rights that a user needs, as `ACL SETUSER` takes them.
const RIGHTS: &str =
    "+@connection +@scripting +@pubsub +@read +@write +info +time ~zklock:* &zklock:*";
/// How long a connection may take, and an answer, at the most.
const ANSWER: Duration = Duration::from_secs(1);

pub(crate) struct Redis {
    place: Place,
    connection: Option<Connection>,
    script: Script,
    lease: Duration,
    attempts: Attempts,
    server: Server,
    /// Names the channel on which this client is told of changes. The names of its sessions begin with it.
    id: Uuid,
    session: String,
    inbox: Arc<Inbox>,
}

/// The server that answered last.
#[derive(Default)]
struct Server {
    /// Which run of it that was; empty before the first.
    run: String,
    /// The longest lease of its clients, in milliseconds; empty before the first.
    longest: String,
    answered: Option<BootInstant>,
}

impl Server {
    /// For how long it may have gone on without this client, in milliseconds.
    fn age(&self) -> String {
        millis(self.answered.map_or(Duration::ZERO, |answered| BootInstant::now() - answered))
    }
}

impl Redis {
    /// Connects to a server. It is tried until the caller gives up.
    pub(crate) fn open(
        address: &str,
        tls: Option<&Tls>,
        lease: Duration,
        is_given_up: &dyn Fn(&str) -> bool,
    ) -> Result<Redis, StepError> {
        // What the driver says may have the address in it, and that a password.
        let place = Place::new(address, tls).ok_or_else(|| {
            StepError::new(Cause::Unusable, "redis://USER:PASSWORD@HOST:PORT/DATABASE")
        })?;
        let script = Script::new(include_str!("steps.lua"));
        let (connection, attempts, server) = (None, Attempts::default(), Server::default());
        let (id, session, inbox) = (Uuid::new_v4(), String::new(), Arc::default());
        let mut redis =
            Redis { place, connection, script, lease, attempts, server, id, session, inbox };
        first(is_given_up, || {
            redis.connection = Some(redis.connect()?);
            Ok(())
        })?;
        Ok(redis)
    }

    /// The connection. A new one begins with which server this is, and which one this client comes from.
    fn connect(&mut self) -> Result<Connection, StepError> {
        if let Some(connection) = self.connection.take() {
            return Ok(connection);
        }
        let (limit, place, server) = (ANSWER.min(self.lease / 6), &self.place, &self.server);
        let mut hello = self.script.arg("hello");
        hello.arg(PREFIX).arg(millis(self.lease)).arg("");
        hello.arg(&server.run).arg(server.age()).arg(&server.longest);
        let (connection, said) = self.attempts.connect(|| {
            let greet = || {
                let mut connection = place.connect(limit)?;
                connection.set_read_timeout(Some(limit))?;
                connection.set_write_timeout(Some(limit))?;
                let said: Vec<String> = hello.invoke(&mut connection)?;
                Ok((connection, said))
            };
            greet().map_err(|error: RedisError| refused(&error))
        })?;
        match said.as_slice() {
            [kind, run, longest] if kind == "run" => {
                let (run, longest) = (run.clone(), longest.clone());
                self.server = Server { run, longest, answered: Some(BootInstant::now()) };
            }
            [kind] if kind == "cluster" => {
                let why = "it is a node of a cluster, which spreads a lock's keys over several servers: locks need one server";
                return Err(StepError::new(Cause::Unusable, why));
            }
            [kind, denied @ ..] if kind == "denied" => {
                let denied = denied.join(", ");
                return Err(not_permitted(&format!("its scripts may not call {denied}")));
            }
            _ => return Err(malformed()),
        }
        Ok(connection)
    }

    /// Does a step, by one script.
    fn step(&mut self, step: &str, arguments: &[&str]) -> Result<Vec<String>, StepError> {
        let mut connection = self.connect()?;
        let mut call = self.script.arg(step);
        call.arg(PREFIX).arg(millis(self.lease)).arg(&self.server.run);
        for argument in arguments {
            call.arg(*argument);
        }
        match call.invoke(&mut connection) {
            Ok(answer) => {
                self.server.answered = Some(BootInstant::now());
                self.connection = Some(connection);
                Ok(answer)
            }
            Err(error) => {
                let failure = refused(&error);
                // A connection with an answer that may yet come is of no use, nor is one to a server that takes no writes.
                let is_replica =
                    matches!(error.kind(), ErrorKind::Server(ServerErrorKind::ReadOnly));
                if !failure.is(Cause::Unknown) && !is_replica {
                    self.connection = Some(connection);
                }
                Err(failure)
            }
        }
    }

    /// The name of a session in the database.
    fn named(&self, session: Uuid) -> String {
        format!("{}:{session}", self.id)
    }

    /// As [`step`](Redis::step), of one that can be repeated whether or not it was done.
    fn look(&mut self, step: &str, arguments: &[&str]) -> Result<Vec<String>, StepError> {
        self.step(step, arguments).map_err(|failure| match failure.cause {
            Cause::Unknown => StepError { cause: Cause::Busy, ..failure },
            _ => failure,
        })
    }
}

/// Names the rights that the user lacks, and all that it needs.
fn not_permitted(why: &str) -> StepError {
    StepError::new(Cause::NotPermitted, format!("{why}; locks need the rights {RIGHTS}"))
}

/// The meaning of an error for a script that was sent.
fn refused(error: &RedisError) -> StepError {
    let what = match error.kind() {
        ErrorKind::Server(ServerErrorKind::NoPerm) => {
            return not_permitted(&one_line(&error.to_string(), MAX_TEXT));
        }
        ErrorKind::AuthenticationFailed => Cause::NotPermitted,
        ErrorKind::Server(
            ServerErrorKind::BusyLoading
            | ServerErrorKind::MasterDown
            | ServerErrorKind::ReadOnly
            | ServerErrorKind::TryAgain,
        ) => Cause::Busy,
        ErrorKind::Server(_) | ErrorKind::Extension => match error.code() {
            Some("NOAUTH" | "WRONGPASS") => Cause::NotPermitted,
            // Another script runs for long; too few replicas are there.
            Some("BUSY" | "NOREPLICAS") => Cause::Busy,
            _ => Cause::Failed,
        },
        _ => Cause::Unknown,
    };
    StepError::new(what, one_line(&error.to_string(), MAX_TEXT))
}

fn malformed() -> StepError {
    StepError::new(Cause::Failed, "the server's answer is none of a zklock script")
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, StepError> {
    text.parse().map_err(|_| malformed())
}

fn millis(duration: Duration) -> String {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).to_string()
}

/// From seven columns; `None` of none. Anyone may have written them.
fn contender(columns: &[String]) -> Result<Option<Contender>, StepError> {
    let [token, lock, since, host, pid, thread, label] = columns else { return Ok(None) };
    let token = number(token)?;
    let [host, thread, label] = [host, thread, label].map(|text| one_line(text, MAX_TEXT));
    let since = UNIX_EPOCH + Duration::from_millis(number(since)?);
    let (path, pid) = (crate::leased::path_of(lock, token), number(pid)?);
    Ok(Some(Contender {
        path,
        session: 0,
        token,
        since,
        held_since: None,
        host,
        pid,
        thread,
        label,
    }))
}

fn columns_of(kind: Kind) -> (&'static str, u32) {
    match kind {
        // Of these two there is none here: they are refused before.
        Kind::Exclusive | Kind::Upgradeable | Kind::Upgrade => ("0", 0),
        Kind::Write => ("1", 0),
        Kind::Read => ("2", 0),
        Kind::Permits(number) => ("3", number),
    }
}

fn is_done(answer: &[String]) -> bool {
    answer.first().is_some_and(|done| done != "0")
}

impl Database for Redis {
    fn begin(&mut self, session: Uuid, _: Duration) -> Result<(), StepError> {
        let session = self.named(session);
        self.step("begin", &[&session])?;
        self.inbox.begin(&session);
        self.session = session;
        Ok(())
    }

    fn renew(&mut self, session: Uuid, _: Duration) -> Result<bool, StepError> {
        let renewed = self.step("renew", &[&self.named(session)])?;
        if let [_, longest] = renewed.as_slice() {
            self.server.longest.clone_from(longest);
        }
        Ok(is_done(&renewed))
    }

    fn end(&mut self, session: Uuid) -> Result<(), StepError> {
        self.step("end", &[&self.named(session)]).map(drop)
    }

    fn claim(&mut self, row: &Row, unless_blocked: bool) -> Result<Claimed, StepError> {
        let (kind, permits) = columns_of(row.kind);
        let Row { lock, host, thread, label, .. } = row;
        let [id, session, permits, limit, pid] = [
            row.id.to_string(),
            self.named(row.session),
            permits.to_string(),
            row.limit.to_string(),
            row.pid.to_string(),
        ];
        let try_it = if unless_blocked { "1" } else { "0" };
        let answer = self.step(
            "claim",
            &[&id, &session, lock, kind, &permits, &limit, try_it, host, &pid, thread, label],
        )?;
        let Some((what, rest)) = answer.split_first() else { return Err(malformed()) };
        match (what.as_str(), rest) {
            ("over", _) => Err(StepError::new(Cause::SessionOver, "its session is over")),
            ("few", _) => {
                let why = "it has fewer permits than are asked for";
                Err(StepError::new(Cause::TooFewPermits, why))
            }
            ("holds", [at, ..]) => Ok(Claimed::Holds { number: number(at)? }),
            ("waits", [at, ahead @ ..]) => {
                Ok(Claimed::Waits { number: number(at)?, ahead: contender(ahead)? })
            }
            ("blocked", [_, ahead @ ..]) => Ok(Claimed::Blocked(contender(ahead)?)),
            _ => Err(malformed()),
        }
    }

    fn release(&mut self, claim: Uuid, _: &str) -> Result<bool, StepError> {
        Ok(is_done(&self.step("release", &[&claim.to_string()])?))
    }

    fn front(&mut self, lock: &str) -> Result<Front, StepError> {
        let answer = self.look("front", &[lock])?;
        let [next, limit, holding @ ..] = answer.as_slice() else { return Err(malformed()) };
        let some = |text: &String| (!text.is_empty()).then(|| text.clone());
        let holding = holding.iter().map(|at| number(at)).collect::<Result<_, _>>()?;
        let next = some(next).map(|next| number(&next)).transpose()?;
        let limit = some(limit).map(|limit| number(&limit)).transpose()?;
        Ok(Front { holding, next, limit })
    }

    fn ahead(&mut self, lock: &str, at: i64, kind: Kind) -> Result<Option<Contender>, StepError> {
        contender(&self.look("ahead", &[lock, &at.to_string(), columns_of(kind).0])?)
    }

    fn contenders(&mut self, lock: &str, most: usize) -> Result<Vec<Contender>, StepError> {
        let most = most.min(1 << 31).to_string();
        let answer = self.look("contenders", &[lock, &most])?;
        let latest = SystemTime::now();
        let read = |row: &[String]| {
            let mut found = contender(&row[1..])?.ok_or_else(malformed)?;
            if row[0] == "1" {
                let earliest = found.since.min(latest);
                found.held_since = Some(HeldSince { earliest, latest });
            }
            Ok(found)
        };
        answer.chunks_exact(8).map(read).collect()
    }

    fn revoke(&mut self, lock: &str, at: i64, what: &Revocation) -> Result<bool, StepError> {
        let at = at.to_string();
        let answer = match what {
            Revocation::Ask { reason } => self.step("revoke", &[lock, &at, "asked", reason]),
            Revocation::Break { grace, .. } => {
                self.step("revoke", &[lock, &at, "grace", &millis(*grace)])
            }
        };
        Ok(is_done(&answer?))
    }

    fn is_there(&mut self, lock: &str, at: i64) -> Result<bool, StepError> {
        Ok(is_done(&self.look("is_there", &[lock, &at.to_string()])?))
    }

    fn wanted(&mut self, session: Uuid) -> Result<Option<Wants>, StepError> {
        let answer = self.look("wanted", &[&self.named(session)])?;
        let [_, claims, wanted @ ..] = answer.as_slice() else { return Ok(None) };
        let read = |row: &[String]| {
            let what = match row[1].as_str() {
                "asked" => Revocation::Ask { reason: one_line(&row[2], MAX_TEXT) },
                _ => {
                    let grace = Duration::from_millis(number(&row[2])?);
                    Revocation::Break { reason: String::new(), grace }
                }
            };
            Ok((number(&row[0])?, what))
        };
        let revocations = wanted.chunks_exact(3).map(read).collect::<Result<_, _>>()?;
        Ok(Some(Wants { claims: number(claims)?, revocations }))
    }

    fn numbers(&mut self, session: Uuid) -> Result<Option<Vec<(i64, Uuid)>>, StepError> {
        let answer = self.look("numbers", &[&self.named(session)])?;
        match answer.split_first() {
            Some((alive, numbers)) if alive == "alive" => {
                let read = |row: &[String]| Ok((number(&row[0])?, number(&row[1])?));
                numbers.chunks_exact(2).map(read).collect::<Result<_, _>>().map(Some)
            }
            _ => Ok(None),
        }
    }

    fn limit(&mut self, lock: &str) -> Result<Option<u32>, StepError> {
        let answer = self.look("limit", &[lock])?;
        let limit = answer.first().filter(|limit| !limit.is_empty());
        limit.map(|limit| number(limit)).transpose()
    }

    fn set_limit(&mut self, lock: &str, limit: u32) -> Result<(), StepError> {
        self.step("set_limit", &[lock, &limit.to_string()]).map(drop)
    }

    fn raise_tokens(&mut self, above: i64) -> Result<(), StepError> {
        self.look("raise_tokens", &[&above.to_string()]).map(drop)
    }

    fn changes(&mut self) -> Result<Changes, StepError> {
        if let Some(changes) = self.inbox.take() {
            return Ok(changes);
        }
        let session = self.session.clone();
        let counted = self.look("news", &[&session])?;
        let is_new = self.inbox.counted(number(counted.first().ok_or_else(malformed)?)?);
        Ok(if is_new { Changes::Any } else { Changes::None })
    }

    fn sweep(&mut self) -> Result<Swept, StepError> {
        let answer = self.look("sweep", &[])?;
        let left = answer.first().filter(|left| !left.is_empty());
        let next = left.map(|left| Ok(Duration::from_millis(number(left)?))).transpose()?;
        // Those who hold by that are told.
        Ok(Swept { next, has_ended: false })
    }

    fn quiet(&mut self) -> Result<Option<Duration>, StepError> {
        let left: u64 = number(self.look("quiet", &[])?.first().ok_or_else(malformed)?)?;
        Ok((left > 0).then(|| Duration::from_millis(left)))
    }

    fn shortest_look(&self) -> Duration {
        if self.inbox.is_open() { subscriber::PAUSE } else { Duration::from_millis(1) }
    }

    fn longest_look(&self) -> Duration {
        if self.inbox.is_open() { subscriber::PAUSE } else { Duration::from_millis(200) }
    }

    fn held_look(&self) -> Duration {
        self.longest_look()
    }

    fn tells_what_concerns_others(&self) -> bool {
        false
    }

    fn announce(&mut self, changed: Box<dyn Fn() -> bool + Send>) {
        let channel = format!("{PREFIX}client:{}", self.id);
        subscriber::start(self.place.clone(), channel, Arc::clone(&self.inbox), changed);
    }
}
