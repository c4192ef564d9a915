//! The meaning of a server's answer, or of none.

use std::future::Future;
use std::time::Duration;

use tokio_postgres::Error;
use tokio_postgres::error::{Severity, SqlState};

use crate::leased::database::{Cause, StepError};
use crate::lock::MAX_TEXT;
use crate::text::one_line;

/// Why there is no answer.
pub(super) struct NoAnswer {
    pub(super) failure: StepError,
    /// It is one: nothing was done.
    pub(super) is_refusal: bool,
}

impl NoAnswer {
    /// The connection cannot be used any more.
    pub(super) fn lost(why: impl Into<String>) -> NoAnswer {
        NoAnswer { failure: StepError::new(Cause::Busy, why), is_refusal: false }
    }
}

/// Fails where that takes longer.
pub(super) async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, NoAnswer> {
    match tokio::time::timeout(limit, work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(refused(&error)),
        Err(_) => Err(NoAnswer::lost("the server has not answered in time")),
    }
}

/// The meaning of an error for a step that was not committed.
fn refused(error: &Error) -> NoAnswer {
    let Some(refusal) = error.as_db_error() else {
        // What the driver says of a connection is in its cause.
        let cause = std::error::Error::source(error).map(ToString::to_string);
        let why = cause.map_or(error.to_string(), |cause| format!("{error}: {cause}"));
        return NoAnswer::lost(one_line(&why, MAX_TEXT));
    };
    let code = refusal.code();
    let class = code.code().get(..2).unwrap_or_default();
    let what = match class {
        // No waiting helps here.
        _ if *code == SqlState::DISK_FULL => Cause::Failed,
        // Connections, transactions that were in each other's way, resources, operators who end something.
        "08" | "40" | "53" | "55" | "57" => Cause::Busy,
        "25" if *code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => Cause::Busy,
        // A server that stands in for another takes no writes yet.
        "25" if *code == SqlState::READ_ONLY_SQL_TRANSACTION => Cause::Busy,
        "28" => Cause::NotPermitted,
        "3D" | "54" => Cause::Unusable,
        _ if *code == SqlState::INSUFFICIENT_PRIVILEGE => Cause::NotPermitted,
        _ => Cause::Failed,
    };
    let is_refusal = matches!(refusal.parsed_severity(), Some(Severity::Error))
        && !matches!(class, "08" | "57")
        && *code != SqlState::READ_ONLY_SQL_TRANSACTION;
    NoAnswer { failure: StepError::new(what, one_line(refusal.message(), MAX_TEXT)), is_refusal }
}
