//! The differences between the databases: the connection, the clock, and a few words of SQL.

use std::time::Duration;

use crate::leased::database::{Cause, StepError};

/// A connection to a database. One step is one transaction, which does nothing before its commit. A query outside of a
/// step is a snapshot. Steps with the same gate run one after the other.
pub(crate) trait Dialect: Send + 'static {
    /// Has a query lock the rows that it reads, until the step ends.
    const LOCKED: &'static str = "";
    /// The same, and passes over those that another step has locked.
    const UNLESS_LOCKED: &'static str = "";

    /// Wakes the waiters for a lock once the step that executes it is done. The `?` is the lock's path.
    const WAKE: Option<&'static str> = None;

    /// Begins a step, which changes what lies behind a gate, if it names one.
    fn begin_step(&mut self, gate: Option<&str>) -> Result<Begun, StepError>;

    /// Does a step of statements that are known before it. Gives how many rows each has changed. Errors are those of
    /// [`commit_step`](Dialect::commit_step).
    fn apply(&mut self, gate: &str, statements: &[Statement<'_>]) -> Result<Vec<u64>, StepError>
    where
        Self: Sized,
    {
        step(self, Some(gate), |database, _| {
            statements.iter().map(|(sql, values)| database.execute(sql, values)).collect()
        })
    }

    /// Ends it. After most errors it is not known whether it is done.
    fn commit_step(&mut self) -> Result<(), StepError>;

    /// Ends it, and nothing of it is done.
    fn undo_step(&mut self);

    /// When the next session ends, if there is one, and the time by the same clock, in nanoseconds.
    fn first_end(&mut self) -> Result<(Option<i64>, i64), StepError>;

    /// The rows that a query finds. Each value replaces a `?`.
    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, StepError>;

    /// How many rows a statement has changed.
    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, StepError>;

    /// Both, in this order. Gives how many rows the statement has changed, and what the query gives.
    fn execute_then_query(
        &mut self,
        (statement, values): Statement<'_>,
        (query, of_query): Statement<'_>,
    ) -> Result<(u64, Vec<Row>), StepError> {
        Ok((self.execute(statement, &values)?, self.query(query, &of_query)?))
    }

    /// The end of an `INSERT` into a table that does nothing where a row has the same in a column.
    fn unless_there(_table: &str, column: &str) -> String {
        format!("ON CONFLICT ({column}) DO NOTHING")
    }

    /// Within a step: makes the numbers of claims larger than `above` from now on.
    fn raise_numbers(&mut self, above: i64) -> Result<(), StepError>;

    /// Whether others may have changed anything since the last time that this was asked.
    fn look_for_changes(&mut self) -> Result<bool, StepError>;

    /// Whether those may concern that lock.
    fn may_concern(&self, _lock: &str) -> bool {
        true
    }

    /// Within a step: a session has ended, with claims on any lock.
    fn has_ended_session(&mut self) -> Result<(), StepError> {
        Ok(())
    }

    /// How seldom that is asked where somebody waits, and where locks are held alone.
    fn pauses(&self) -> (Duration, Duration);

    /// Has that be called at a change that others make, as
    /// [`announce`](crate::leased::database::Database::announce).
    fn listen(&mut self, _changed: Box<dyn Fn() -> bool + Send>) {}

    /// A claim of that session, which is this client's, has to wait.
    fn waits(&mut self, _session: &str) {}
}

/// A statement, and the values of its `?`.
pub(crate) type Statement<'a> = (&'a str, Vec<Value>);

/// Does a step as a whole, or nothing of it.
pub(super) fn step<D: Dialect, T>(
    database: &mut D,
    gate: Option<&str>,
    work: impl FnOnce(&mut D, Begun) -> Result<T, StepError>,
) -> Result<T, StepError> {
    let begun = database.begin_step(gate)?;
    match work(database, begun) {
        Ok(done) => {
            database.commit_step()?;
            Ok(done)
        }
        Err(failure) => {
            database.undo_step();
            Err(failure)
        }
    }
}

/// Fails where the server takes no writes, or this user may not make all that steps are made of: who may not delete
/// could acquire a lock, and not release it.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(super) fn check_writes(database: &mut impl Dialect) -> Result<(), StepError> {
    database.begin_step(Some(""))?;
    let tables = [("session", "expires"), ("claim", "grace"), ("limit", "permits")];
    let tried = tables.iter().try_for_each(|(table, column)| {
        [
            format!("INSERT INTO zklock_{table} SELECT * FROM zklock_{table} WHERE 1 = 0"),
            format!("UPDATE zklock_{table} SET {column} = {column} WHERE 1 = 0"),
            format!("DELETE FROM zklock_{table} WHERE 1 = 0"),
        ]
        .iter()
        .try_for_each(|statement| database.execute(statement, &[]).map(drop))
    });
    database.undo_step();
    tried
}

/// A step has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    /// The time, which is no earlier than that of any step with the same gate that was done before it.
    pub(super) now: i64,
    /// The number of a claim that it makes, unless the database gives that when a row is made.
    pub(super) number: Option<i64>,
}

/// The value in a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Text(String),
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Int(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Value {
        Value::Int(number.into())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Value {
        Value::Text(text.clone())
    }
}

/// A row that a query has found. Anyone may have written it.
#[derive(Clone, Debug)]
pub(crate) struct Row(pub(super) Vec<Value>);

impl Row {
    pub(super) fn int(&self, column: usize) -> Result<i64, StepError> {
        self.some_int(column)?.ok_or_else(malformed)
    }

    pub(super) fn some_int(&self, column: usize) -> Result<Option<i64>, StepError> {
        match self.0.get(column) {
            Some(Value::Int(number)) => Ok(Some(*number)),
            Some(Value::Null) => Ok(None),
            _ => Err(malformed()),
        }
    }

    pub(super) fn text(&self, column: usize) -> Result<&str, StepError> {
        self.some_text(column)?.ok_or_else(malformed)
    }

    pub(super) fn some_text(&self, column: usize) -> Result<Option<&str>, StepError> {
        match self.0.get(column) {
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(Value::Null) => Ok(None),
            _ => Err(malformed()),
        }
    }

    /// A number that is out of range counts as 0.
    pub(super) fn small(&self, column: usize) -> Result<u32, StepError> {
        Ok(u32::try_from(self.int(column)?).unwrap_or(0))
    }
}

pub(super) fn malformed() -> StepError {
    StepError::new(Cause::Failed, "a row of its tables is none that zklock has written")
}
