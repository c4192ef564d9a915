//! A database of PostgreSQL: locks between machines, as good as one server, or its replacement, can promise them.
//!
//! The clock is the server's time of day. A step is a transaction, and first changes the row of its gate. So all steps with
//! the same gate are in one order. If a commit has no answer, its step is done or not before the next one begins. A path's
//! gate is its hash. Nothing lives in the connection beyond a transaction, so a pooler may lend a connection for each.
//!
//! NOTIFY wakes waiters, on a separate connection. They also look for changes themselves.

mod answer;
mod hosts;
mod listener;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_lite::StreamExt as _;
use futures_util::future::{join, join_all, join3};
use tokio::runtime::Runtime;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Config, Error, SimpleQueryMessage};

use self::answer::{NoAnswer, within};
use self::hosts::Place;
use self::listener::Heard;
use super::dialect::{Begun, Dialect, Row, Statement, Value, check_writes, malformed};
use super::tables::{
    GATES, SERVER_VERSION, SeenGates, check_version, gate_of, has_ended_session, postgres_tables,
    raise_gates,
};
use crate::leased::attempts::{Attempts, first};
use crate::leased::database::{Cause, StepError};
use crate::tls::Tls;

/// How long an answer may take, at the most, and a connection to a host.
const ANSWER: Duration = Duration::from_secs(1);
/// How long a step waits for others at its gate before steps on other locks have their turn.
const GATE: Duration = Duration::from_millis(100);
/// How often to look for changes while somebody waits or holds, in case no notification comes.
const LOOK: Duration = Duration::from_millis(200);
/// The server's time of day, in microseconds. It goes on within a transaction.
const CLOCK: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
/// The advisory lock that a client holds while it makes the tables.
const MAKING: i64 = 0x7a6b_6c6f_636b;

pub(crate) struct Postgres {
    place: Place,
    connection: Option<Connection>,
    attempts: Attempts,
    /// How long an answer is waited for.
    limit: Duration,
    /// How each step begins.
    begin: String,
    /// A connection that is lost is lost with its step.
    is_in_step: bool,
    gates: SeenGates,
    looked: Option<Instant>,
    /// The notifications of the server.
    heard: Arc<Heard>,
    /// Called at a change, once somebody waits for one.
    changed: Option<Box<dyn Fn() -> bool + Send>>,
}

/// Dropping it closes it at once, even with a request in flight.
struct Connection {
    client: Client,
    runtime: Runtime,
}

impl Postgres {
    /// Connects to a server and makes missing tables. It is tried until the caller gives up.
    pub(crate) fn open(
        address: &str,
        tls: Option<&Tls>,
        lease: Duration,
        is_given_up: &dyn Fn(&str) -> bool,
    ) -> Result<Postgres, StepError> {
        // What the driver says may have the address in it, and that a password.
        let mut config: Config = verified(address).parse().map_err(|_| {
            let why = "postgres://USER:PASSWORD@HOST:PORT/DATABASE, and options that the driver knows; the files for TLS \
                are set beside the address: by StoreOptions::tls, --tls-ca or tls_ca";
            StepError::new(Cause::Unusable, why)
        })?;
        match (tls, config.get_ssl_mode()) {
            (None, SslMode::Require) => {
                let why = "sslmode=require needs to know whom to trust: by StoreOptions::tls, --tls-ca or tls_ca";
                return Err(StepError::new(Cause::Unusable, why));
            }
            (Some(_), SslMode::Disable) => {
                return Err(StepError::new(
                    Cause::Unusable,
                    "TLS is asked for, and sslmode=disable",
                ));
            }
            (Some(_), _) => drop(config.ssl_mode(SslMode::Require)),
            (None, _) => {}
        }
        // One that takes no writes has no locks to give.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_application_name().is_none() {
            config.application_name("zklock");
        }
        let limit = ANSWER.min(lease / 4);
        let (connection, is_in_step, gates, changed) = (None, false, SeenGates::default(), None);
        let (attempts, begin) = (Attempts::default(), begin(limit));
        let (looked, heard) = (None, Arc::default());
        let mut postgres = Postgres {
            place: Place { config, tls: tls.cloned() },
            connection,
            attempts,
            limit,
            begin,
            is_in_step,
            gates,
            looked,
            heard,
            changed,
        };
        first(is_given_up, || postgres.prepare().and_then(|()| check_writes(&mut postgres)))?;
        Ok(postgres)
    }

    /// Makes the tables where they are missing.
    fn prepare(&mut self) -> Result<(), StepError> {
        self.connect()?;
        let version = "SELECT value FROM zklock_meta WHERE name = 'version'";
        let is_there = self.query("SELECT to_regclass('zklock_meta') IS NOT NULL", &[])?;
        if is_there.first().map(|found| found.int(0)).transpose()? == Some(1) {
            if let Some(found) = self.query(version, &[])?.first() {
                return check_version(Some(found.text(0)?), SERVER_VERSION);
            }
        }
        let made = self.make_tables();
        if made.is_err() {
            self.undo_step();
        }
        made
    }

    fn make_tables(&mut self) -> Result<(), StepError> {
        let mut statements =
            vec!["BEGIN".to_owned(), format!("SELECT pg_advisory_xact_lock({MAKING})")];
        statements.extend(postgres_tables());
        statements.push(format!(
            "INSERT INTO zklock_gate SELECT gate, gate, 0 FROM generate_series(0, {}) gate ON CONFLICT DO NOTHING",
            GATES - 1
        ));
        statements.push(format!(
            "INSERT INTO zklock_meta VALUES ('version', '{SERVER_VERSION}') ON CONFLICT DO NOTHING"
        ));
        statements.push("COMMIT".to_owned());
        let statements = statements.join("; ");
        self.run(async |client| client.batch_execute(&statements).await).map_err(|no| no.failure)
    }

    fn connect(&mut self) -> Result<(), StepError> {
        if self.connection.as_ref().is_some_and(|connection| !connection.client.is_closed()) {
            return Ok(());
        }
        let (place, limit) = (&self.place, self.limit);
        self.connection = Some(self.attempts.connect(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|no| StepError::new(Cause::Failed, no.to_string()))?;
            match runtime.block_on(connect(place, limit)) {
                Ok(client) => Ok(Connection { client, runtime }),
                Err(no) => {
                    // A name that is still being resolved would be waited for.
                    runtime.shutdown_background();
                    Err(no.failure)
                }
            }
        })?);
        Ok(())
    }

    /// Asks the server. Closes a connection on which an answer may still come.
    fn run<T>(
        &mut self,
        work: impl AsyncFnOnce(&Client) -> Result<T, Error>,
    ) -> Result<T, NoAnswer> {
        let Some(Connection { client, runtime }) = &self.connection else {
            let failure = StepError::new(Cause::Busy, "the connection to the server is lost");
            return Err(NoAnswer { failure, is_refusal: true });
        };
        let done = runtime.block_on(within(self.limit, work(client)));
        if done.as_ref().is_err_and(|no| !no.is_refusal) {
            self.connection = None;
        }
        done
    }

    /// The first statements of a step. Ends a step that was broken off.
    fn beginning(&mut self, gate: Option<&str>) -> Result<String, StepError> {
        if std::mem::take(&mut self.is_in_step) {
            self.undo_step();
        }
        self.connect()?;
        let first = match gate {
            None => format!("SELECT {CLOCK}"),
            // Tokens go on by the time of day where the server has lost its memory.
            Some(path) => format!(
                "UPDATE zklock_gate SET changes = changes + 1,
                 number = greatest(number + {GATES}, {CLOCK} * {GATES} + gate) WHERE gate = {}
                 RETURNING {CLOCK}, number",
                gate_of(path)
            ),
        };
        Ok(format!("{}; {first}", self.begin))
    }
}

/// The last row that the statements gave with which a step begins.
fn begun_by(answers: &[SimpleQueryMessage]) -> Result<Begun, StepError> {
    let row = answers.iter().rev().find_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let number = |column| {
        let text = row.and_then(|row| row.try_get(column).ok().flatten());
        text.map(|text| text.parse::<i64>().map_err(|_| malformed())).transpose()
    };
    let gone = "zklock_gate has no rows: delete its tables, and connect anew";
    let Some(micros) = number(0)? else { return Err(StepError::new(Cause::Failed, gone)) };
    Ok(Begun { now: micros.saturating_mul(1_000), number: number(1)? })
}

/// Why a step is not done, or not known to be, once its commit was sent.
fn of_commit(no: NoAnswer) -> StepError {
    match no.is_refusal {
        true => no.failure,
        false => StepError { cause: Cause::Unknown, why: format!("commit: {}", no.failure.why) },
    }
}

/// Connects, and has the runtime work for the connection whenever somebody waits for an answer.
async fn connect(place: &Place, limit: Duration) -> Result<Client, NoAnswer> {
    let (client, mut messages) = place.connect(limit).await?;
    tokio::spawn(async move { while let Some(Ok(_)) = messages.next().await {} });
    Ok(client)
}

/// The driver accepts neither word. zklock always verifies certificates and their names.
fn verified(address: &str) -> String {
    let known = |address: String, word| address.replace(word, "sslmode=require");
    ["sslmode=verify-full", "sslmode=verify-ca"].into_iter().fold(address.to_owned(), known)
}

/// The settings of each step. A client that stands still blocks others no longer than it would wait itself. Commits
/// wait for the disk: otherwise a server that crashes would forget renewals.
fn begin(limit: Duration) -> String {
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
         SELECT set_config('lock_timeout', '{}', true), \
         set_config('idle_in_transaction_session_timeout', '{}', true), \
         CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END",
        GATE.min(limit * 3 / 4).as_millis(),
        2 * limit.as_millis()
    )
}

/// With `$1` for the first `?`, and so on.
fn numbered(sql: &str) -> String {
    let mut numbered = String::with_capacity(sql.len() + 16);
    for (number, part) in sql.split('?').enumerate() {
        if number > 0 {
            numbered.push_str(&format!("${number}"));
        }
        numbered.push_str(part);
    }
    numbered
}

impl ToSql for Value {
    fn to_sql(
        &self,
        of: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Value::Null => Ok(IsNull::Yes),
            Value::Int(number) => number.to_sql(of, out),
            Value::Text(text) => text.to_sql(of, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

fn with_types(values: &[Value]) -> Vec<(&(dyn ToSql + Sync), Type)> {
    let with_type = |value: &'_ Value| match value {
        Value::Text(_) => Type::TEXT,
        Value::Int(_) | Value::Null => Type::INT8,
    };
    values.iter().map(|value| (value as &(dyn ToSql + Sync), with_type(value))).collect()
}

fn row(found: &tokio_postgres::Row) -> Result<Row, StepError> {
    let read = |(at, column): (usize, &tokio_postgres::Column)| {
        let value = match *column.type_() {
            Type::INT8 => found.try_get::<_, Option<i64>>(at).map(|int| int.map(Value::Int)),
            Type::BOOL => {
                let value = |is: bool| Value::Int(is.into());
                found.try_get::<_, Option<bool>>(at).map(|is| is.map(value))
            }
            _ => found.try_get::<_, Option<String>>(at).map(|text| text.map(Value::Text)),
        };
        value.map(|value| value.unwrap_or(Value::Null)).map_err(|_| malformed())
    };
    found.columns().iter().enumerate().map(read).collect::<Result<_, _>>().map(Row)
}

impl Dialect for Postgres {
    const LOCKED: &'static str = " FOR UPDATE";
    const UNLESS_LOCKED: &'static str = " FOR UPDATE SKIP LOCKED";
    // Where the first one holds alone, nobody else need look.
    const WAKE: Option<&'static str> = Some(
        "SELECT pg_notify('zklock', whom) FROM
            (SELECT CASE WHEN kind < 2 THEN session ELSE '' END AS whom
             FROM zklock_claim WHERE path = ? ORDER BY number LIMIT 1) s",
    );

    fn begin_step(&mut self, gate: Option<&str>) -> Result<Begun, StepError> {
        let begin = self.beginning(gate)?;
        self.is_in_step = true;
        let begun = self.run(async |client| client.simple_query(&begin).await);
        let begun = begun.map_err(|no| no.failure).and_then(|answers| begun_by(&answers));
        if begun.is_err() {
            self.undo_step();
        }
        begun
    }

    /// In one round trip. If the server refuses a statement, it refuses the later ones too, and the commit undoes the step.
    fn apply(&mut self, gate: &str, statements: &[Statement<'_>]) -> Result<Vec<u64>, StepError> {
        let begin = self.beginning(Some(gate))?;
        let statements: Vec<_> =
            statements.iter().map(|(sql, values)| (numbered(sql), with_types(values))).collect();
        let done = self.run(async |client| {
            let changed = statements.iter().map(|(sql, values)| client.execute_typed(sql, values));
            let (begun, changed, committed) = join3(
                client.simple_query(&begin),
                join_all(changed),
                client.batch_execute("COMMIT"),
            )
            .await;
            let done = (begun?, changed.into_iter().collect::<Result<_, _>>()?);
            committed.map(|()| done)
        });
        let (answers, changed) = done.map_err(of_commit)?;
        // Without its gate it is done all the same.
        begun_by(&answers).map_err(|no| StepError { cause: Cause::Unknown, ..no })?;
        Ok(changed)
    }

    fn commit_step(&mut self) -> Result<(), StepError> {
        self.is_in_step = false;
        let committed = self.run(async |client| client.batch_execute("COMMIT").await);
        committed.map_err(of_commit)
    }

    fn undo_step(&mut self) {
        self.is_in_step = false;
        // Where it fails, the connection is given up, and the step with it.
        let undone = self.run(async |client| client.batch_execute("ROLLBACK").await);
        if undone.is_err() {
            self.connection = None;
        }
    }

    fn first_end(&mut self) -> Result<(Option<i64>, i64), StepError> {
        let found =
            self.query(&format!("SELECT min(expires), {CLOCK} FROM zklock_session"), &[])?;
        let found = found.first().ok_or_else(malformed)?;
        Ok((found.some_int(0)?, found.int(1)?.saturating_mul(1_000)))
    }

    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, StepError> {
        if !self.is_in_step {
            self.connect()?;
        }
        let (sql, values) = (numbered(sql), with_types(values));
        let found = self.run(async |client| client.query_typed(&sql, &values).await);
        found.map_err(|no| no.failure)?.iter().map(row).collect()
    }

    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, StepError> {
        let (sql, values) = (numbered(sql), with_types(values));
        let done = self.run(async |client| client.execute_typed(&sql, &values).await);
        done.map_err(|no| no.failure)
    }

    /// In one round trip.
    fn execute_then_query(
        &mut self,
        (statement, values): Statement<'_>,
        (query, of_query): Statement<'_>,
    ) -> Result<(u64, Vec<Row>), StepError> {
        let (statement, values) = (numbered(statement), with_types(&values));
        let (query, of_query) = (numbered(query), with_types(&of_query));
        let done = self.run(async |client| {
            let done = client.execute_typed(&statement, &values);
            let (done, found) = join(done, client.query_typed(&query, &of_query)).await;
            Ok((done?, found?))
        });
        let (done, found) = done.map_err(|no| no.failure)?;
        Ok((done, found.iter().map(row).collect::<Result<_, _>>()?))
    }

    fn raise_numbers(&mut self, above: i64) -> Result<(), StepError> {
        raise_gates(self, above)
    }

    fn look_for_changes(&mut self) -> Result<bool, StepError> {
        let has_word = self.heard.take_word();
        let is_time = self.looked.is_none_or(|at| at.elapsed() >= LOOK);
        if !has_word && !is_time && self.heard.is_heard() {
            return Ok(false);
        }
        let mut gates = std::mem::take(&mut self.gates);
        let looked = gates.look(self, "SELECT sum(changes)::bigint FROM zklock_gate");
        self.gates = gates;
        let has_changed = looked?;
        self.looked = Some(Instant::now());
        Ok(has_changed || has_word)
    }

    fn may_concern(&self, lock: &str) -> bool {
        self.gates.may_concern(lock)
    }

    fn has_ended_session(&mut self) -> Result<(), StepError> {
        has_ended_session(self)
    }

    fn pauses(&self) -> (Duration, Duration) {
        (LOOK, LOOK)
    }

    fn listen(&mut self, changed: Box<dyn Fn() -> bool + Send>) {
        self.changed = Some(changed);
    }

    fn waits(&mut self, session: &str) {
        self.heard.listens_for(session);
        if let Some(changed) = self.changed.take() {
            listener::start(self.place.clone(), Arc::clone(&self.heard), changed);
        }
    }
}
