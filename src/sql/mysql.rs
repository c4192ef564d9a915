//! A database of MariaDB, or MySQL: locks between machines, as far as one server, or one that stands in for it, can
//! promise them.
//!
//! As in PostgreSQL, the clock is the server's time of day, and the row of its gate is the first thing that a step changes.
//! Each statement sees what was committed before it (READ COMMITTED). Waiters look by themselves: there is nobody to
//! wake them.

use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, Error, Opts, OptsBuilder, SslOpts};
use uuid::Uuid;

use super::dialect::{Begun, Dialect, Row, Value, check_writes, malformed};
use super::tables::{
    GATES, SERVER_VERSION, SeenGates, check_version, gate_of, has_ended_session, mysql_tables,
    raise_gates,
};
use crate::leased::attempts::{Attempts, first};
use crate::leased::database::{Cause, StepError};
use crate::lock::MAX_TEXT;
use crate::text::one_line;
use crate::tls::Tls;

/// How long an answer may take, at the most, and a connection.
const ANSWER: Duration = Duration::from_secs(1);
/// The server's time of day, in microseconds, whatever time zone it is in.
const CLOCK: &str = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

/// How many seconds a step waits for others at its gate before steps on other locks have their turn: in MariaDB. MySQL knows
/// no limit for that below a whole second.
const GATE: &str = "SET STATEMENT max_statement_time = 0.1 FOR ";
/// The code of its refusal.
const TOO_LATE: u16 = 1969;

pub(crate) struct MySql {
    options: Opts,
    #[cfg(feature = "mysql-tls")]
    tls: Option<Tls>,
    connection: Option<Conn>,
    /// The prefix of a statement that waits at a gate.
    at_gate: &'static str,
    attempts: Attempts,
    /// A connection that is lost is lost with its step.
    is_in_step: bool,
    gates: SeenGates,
}

impl MySql {
    /// Connects to a server, and creates missing tables. This may take some seconds. It ends early if the caller has
    /// cancelled.
    pub(crate) fn open(
        address: &str,
        tls: Option<&Tls>,
        lease: Duration,
        is_given_up: &dyn Fn(&str) -> bool,
    ) -> Result<MySql, StepError> {
        #[cfg(feature = "mysql-tls")]
        crate::leased::tls::choose_provider();
        // What the driver says may have the address in it, and that a password.
        let options = Opts::from_url(address).map_err(|_| {
            StepError::new(Cause::Unusable, "mysql://USER:PASSWORD@HOST:PORT/DATABASE")
        })?;
        if options.get_ssl_opts().is_some() {
            let why = "TLS is set beside the address: by StoreOptions::tls, --tls-ca or tls_ca";
            return Err(StepError::new(Cause::Unusable, why));
        }
        if tls.is_some() && options.get_socket().is_some() {
            let why = "TLS is asked for, and the address names a socket, which has none";
            return Err(StepError::new(Cause::Unusable, why));
        }
        let limit = ANSWER.min(lease / 4).max(Duration::from_millis(1));
        let options = OptsBuilder::from_opts(options)
            .prefer_socket(false)
            .ssl_opts(tls.map(by_tls))
            .tcp_connect_timeout(Some(limit))
            .read_timeout(Some(limit))
            .write_timeout(Some(limit));
        let (options, connection, attempts) = (options.into(), None, Attempts::default());
        let (is_in_step, at_gate, gates) = (false, "", SeenGates::default());
        let mut mysql = MySql {
            options,
            #[cfg(feature = "mysql-tls")]
            tls: tls.cloned(),
            connection,
            at_gate,
            attempts,
            is_in_step,
            gates,
        };
        first(is_given_up, || mysql.prepare().and_then(|()| check_writes(&mut mysql)))?;
        Ok(mysql)
    }

    /// Makes the tables where they are missing. Each is there or not; the version comes last.
    fn prepare(&mut self) -> Result<(), StepError> {
        let is_there = "SELECT count(*) FROM information_schema.tables
            WHERE table_schema = database() AND table_name = 'zklock_meta'";
        let is_there = self.query(is_there, &[])?;
        if is_there.first().map(|found| found.int(0)).transpose()? == Some(1) {
            let version = "SELECT value FROM zklock_meta WHERE name = 'version'";
            if let Some(found) = self.query(version, &[])?.first() {
                return check_version(Some(found.text(0)?), SERVER_VERSION);
            }
        }
        for table in mysql_tables() {
            self.execute(&table, &[])?;
        }
        let rows: Vec<String> = (0..GATES).map(|gate| format!("({gate}, {gate}, 0)")).collect();
        self.execute(&format!("INSERT IGNORE INTO zklock_gate VALUES {}", rows.join(", ")), &[])?;
        let version = "INSERT IGNORE INTO zklock_meta VALUES ('version', ?)";
        self.execute(version, &[SERVER_VERSION.into()]).map(drop)
    }

    fn connect(&mut self) -> Result<(), StepError> {
        if self.connection.is_some() {
            return Ok(());
        }
        let options = &self.options;
        #[cfg(feature = "mysql-tls")]
        let tls = &self.tls;
        let (connection, is_mariadb) = self.attempts.connect(|| {
            // The driver overlooks revocation lists, and its errors name no file.
            #[cfg(feature = "mysql-tls")]
            if let Some(tls) = tls {
                let checked = crate::leased::tls::config(tls);
                checked.map_err(|why| StepError::new(Cause::Busy, why))?;
            }
            let mut connection = Conn::new(options.clone()).map_err(|no| refused(&no).failure)?;
            let is_mariadb = set_up(&mut connection).map_err(|no| refused(&no).failure)?;
            Ok((connection, is_mariadb))
        })?;
        self.connection = Some(connection);
        self.at_gate = if is_mariadb { GATE } else { "" };
        Ok(())
    }

    /// Asks the server. If the answer may still come, the connection is closed.
    fn run<T>(&mut self, work: impl FnOnce(&mut Conn) -> Result<T, Error>) -> Result<T, NoAnswer> {
        if !self.is_in_step {
            let refused = |failure| NoAnswer { failure, is_refusal: true };
            self.connect().map_err(refused)?;
        }
        let Some(connection) = &mut self.connection else {
            let failure = StepError::new(Cause::Busy, "the connection to the server is lost");
            return Err(NoAnswer { failure, is_refusal: true });
        };
        let done = work(connection).map_err(|error| refused(&error));
        if done.as_ref().is_err_and(|no| !no.is_refusal) {
            self.connection = None;
        }
        done
    }

    /// Begins a transaction by what a gate says.
    fn begin(&mut self, gate: Option<&str>) -> Result<Begun, StepError> {
        self.say("START TRANSACTION").map_err(|no| no.failure)?;
        let Some(path) = gate else {
            let found = self.query(&format!("SELECT {CLOCK}"), &[])?;
            let now = found.first().ok_or_else(malformed)?.int(0)?.saturating_mul(1_000);
            return Ok(Begun { now, number: None });
        };
        // Tokens go on by the time of day where the server has lost its memory.
        let update = format!(
            "{}UPDATE zklock_gate SET changes = changes + 1,
             number = greatest(number + {GATES}, {CLOCK} * {GATES} + gate) WHERE gate = ?",
            self.at_gate
        );
        let gate = gate_of(path);
        let changed = self.run(|connection| match connection.exec_drop(&update, (gate,)) {
            Err(Error::MySqlError(refusal)) if refusal.code == TOO_LATE => Ok(false),
            changed => changed.map(|()| true),
        });
        if !changed.map_err(|no| no.failure)? {
            return Err(StepError::new(Cause::Busy, "others are at the lock's gate"));
        }
        let select = format!("SELECT {CLOCK}, number FROM zklock_gate WHERE gate = ?");
        let found = self.query(&select, &[gate.into()])?;
        let missing = || {
            let why = "zklock_gate has no rows: delete its tables, and connect anew";
            StepError::new(Cause::Failed, why)
        };
        let found = found.first().ok_or_else(missing)?;
        let now = found.int(0)?.saturating_mul(1_000);
        Ok(Begun { now, number: found.some_int(1)? })
    }

    fn say(&mut self, statement: &str) -> Result<(), NoAnswer> {
        self.run(|connection| connection.query_drop(statement))
    }
}

/// The driver reads the files for each connection.
fn by_tls(tls: &Tls) -> SslOpts {
    let options = SslOpts::default().with_root_cert_path(Some(tls.ca.clone()));
    #[cfg(feature = "mysql-tls")]
    let options = options.with_client_identity(
        tls.own.as_ref().map(|own| mysql::ClientIdentity::new(own.cert.clone(), own.key.clone())),
    );
    options
}

/// A client that stands still, or is gone, within a step keeps others out for a second: MariaDB ends it then. MySQL can't, but
/// for one that is silent for long.
/// Gives whether it is MariaDB.
fn set_up(connection: &mut Conn) -> Result<bool, Error> {
    // The driver keeps bytes that it has read before the TLS handshake. An attacker who sent answers there cannot know
    // this number.
    let unknown = Uuid::new_v4().to_string();
    let found: Option<mysql::Row> =
        connection.query_first(format!("SELECT version(), '{unknown}'"))?;
    let found = found.and_then(|row| mysql::from_row_opt::<(String, String)>(row).ok());
    let Some((version, _)) = found.filter(|(_, said)| *said == unknown) else {
        let why = "the server answers something else than was asked";
        return Err(std::io::Error::other(why).into());
    };
    let is_mariadb = version.contains("MariaDB");
    let silence = if is_mariadb { "idle_transaction_timeout = 1" } else { "wait_timeout = 10" };
    connection.query_drop(format!(
        "SET SESSION innodb_lock_wait_timeout = 1, SESSION sql_mode = 'STRICT_ALL_TABLES', SESSION {silence}"
    ))?;
    connection.query_drop("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")?;
    connection.query_drop("SET SESSION TRANSACTION READ WRITE")?;
    Ok(is_mariadb)
}

/// Why there is no answer.
struct NoAnswer {
    failure: StepError,
    /// It is one: nothing was done.
    is_refusal: bool,
}

/// The meaning of an error for a step that was not committed.
fn refused(error: &Error) -> NoAnswer {
    let Error::MySqlError(refusal) = error else {
        let failure = StepError::new(Cause::Busy, one_line(&error.to_string(), MAX_TEXT));
        return NoAnswer { failure, is_refusal: false };
    };
    let (what, is_refusal) = match refusal.code {
        // Waited for too long, or in each other's way: InnoDB has undone the statement, or all of it.
        1205 | 1213 => (Cause::Busy, true),
        // Too many connections, not ready in its cluster, shutting down, killed, too long for it, read-only, as one that
        // stands in for another.
        1040 | 1047 | 1053 | 1203 | 1290 | 1317 | 1836 | 1927 | 1969 | 3024 | 4031 => {
            (Cause::Busy, false)
        }
        1044 | 1045 | 1142 | 1227 | 1698 => (Cause::NotPermitted, true),
        // No such database; what is too long for a column.
        1049 | 1406 => (Cause::Unusable, true),
        _ => (Cause::Failed, true),
    };
    NoAnswer { failure: StepError::new(what, one_line(&refusal.message, MAX_TEXT)), is_refusal }
}

fn parameters(values: &[Value]) -> mysql::Params {
    let parameter = |value: &Value| match value {
        Value::Null => mysql::Value::NULL,
        Value::Int(number) => mysql::Value::Int(*number),
        Value::Text(text) => mysql::Value::Bytes(text.clone().into_bytes()),
    };
    match values {
        [] => mysql::Params::Empty,
        values => mysql::Params::Positional(values.iter().map(parameter).collect()),
    }
}

fn row(found: mysql::Row) -> Result<Row, StepError> {
    let value = |value: mysql::Value| match value {
        mysql::Value::NULL => Ok(Value::Null),
        mysql::Value::Int(number) => Ok(Value::Int(number)),
        mysql::Value::UInt(number) => {
            i64::try_from(number).map(Value::Int).map_err(|_| malformed())
        }
        mysql::Value::Bytes(text) => Ok(Value::Text(String::from_utf8_lossy(&text).into_owned())),
        _ => Err(malformed()),
    };
    found.unwrap().into_iter().map(value).collect::<Result<_, _>>().map(Row)
}

impl Dialect for MySql {
    const LOCKED: &'static str = " FOR UPDATE";
    const UNLESS_LOCKED: &'static str = " FOR UPDATE SKIP LOCKED";

    fn begin_step(&mut self, gate: Option<&str>) -> Result<Begun, StepError> {
        if self.is_in_step {
            // One that was broken off.
            self.undo_step();
        }
        self.connect()?;
        self.is_in_step = true;
        let begun = self.begin(gate);
        if begun.is_err() {
            self.undo_step();
        }
        begun
    }

    fn commit_step(&mut self) -> Result<(), StepError> {
        let committed = self.say("COMMIT");
        self.is_in_step = false;
        committed.map_err(|no| match no.is_refusal {
            true => no.failure,
            false => {
                StepError { cause: Cause::Unknown, why: format!("commit: {}", no.failure.why) }
            }
        })
    }

    fn undo_step(&mut self) {
        // Where it fails, the connection is given up, and the step with it.
        if self.say("ROLLBACK").is_err() {
            self.connection = None;
        }
        self.is_in_step = false;
    }

    fn first_end(&mut self) -> Result<(Option<i64>, i64), StepError> {
        let found =
            self.query(&format!("SELECT min(expires), {CLOCK} FROM zklock_session"), &[])?;
        let found = found.first().ok_or_else(malformed)?;
        Ok((found.some_int(0)?, found.int(1)?.saturating_mul(1_000)))
    }

    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, StepError> {
        let found = self.run(|connection| connection.exec(sql, parameters(values)));
        let found: Vec<mysql::Row> = found.map_err(|no| no.failure)?;
        found.into_iter().map(row).collect()
    }

    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, StepError> {
        let done = self.run(|connection| {
            connection.exec_drop(sql, parameters(values))?;
            Ok(connection.affected_rows())
        });
        done.map_err(|no| no.failure)
    }

    fn unless_there(table: &str, column: &str) -> String {
        format!("ON DUPLICATE KEY UPDATE {table}.{column} = {table}.{column}")
    }

    fn raise_numbers(&mut self, above: i64) -> Result<(), StepError> {
        raise_gates(self, above)
    }

    fn look_for_changes(&mut self) -> Result<bool, StepError> {
        let mut gates = std::mem::take(&mut self.gates);
        let looked = gates.look(self, "SELECT CAST(sum(changes) AS SIGNED) FROM zklock_gate");
        self.gates = gates;
        looked
    }

    fn may_concern(&self, lock: &str) -> bool {
        self.gates.may_concern(lock)
    }

    fn has_ended_session(&mut self) -> Result<(), StepError> {
        has_ended_session(self)
    }

    fn pauses(&self) -> (Duration, Duration) {
        (Duration::from_millis(50), Duration::from_millis(200))
    }
}
