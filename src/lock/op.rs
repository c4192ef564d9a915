//! The operations on locks: their names in errors, and the error if the caller stops waiting.

use std::future::Future;
use std::sync::Arc;

use super::error::LockError;
use crate::error::{Code, Error};
use crate::runtime::Pending;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockOp {
    Acquire,
    Upgrade,
    Downgrade,
    Release,
    HandOver,
    Revoke,
    Multi,
    Contenders,
    Holder,
    Limit,
    SetLimit,
    Take,
    #[cfg(feature = "capi")]
    Unlock,
}

impl LockOp {
    pub(crate) fn name(self) -> &'static str {
        match self {
            LockOp::Acquire => "acquire",
            LockOp::Upgrade => "upgrade",
            LockOp::Downgrade => "downgrade",
            LockOp::Release => "release",
            LockOp::HandOver => "hand over",
            LockOp::Revoke => "revoke",
            LockOp::Multi => "multi",
            LockOp::Contenders => "contenders",
            LockOp::Holder => "holder",
            LockOp::Limit => "limit",
            LockOp::SetLimit => "set limit",
            LockOp::Take => "take",
            #[cfg(feature = "capi")]
            LockOp::Unlock => "unlock",
        }
    }

    /// Runs it as [`Pending::run_as`] does.
    pub(crate) fn run<T>(
        self,
        path: impl Into<Arc<str>>,
        work: impl Future<Output = Result<T, LockError>> + Send + 'static,
    ) -> Pending<T, LockError> {
        let into_error: fn(Error) -> LockError = match self {
            // Its claim is deleted.
            LockOp::Acquire | LockOp::Upgrade => {
                |error| failed(error, |path, _| LockError::timed_out(path, None))
            }
            // It continues.
            LockOp::Release => {
                |error| failed(error, |path, _| LockError::outcome_unknown(path, None))
            }
            LockOp::Multi
            | LockOp::HandOver
            | LockOp::Revoke
            | LockOp::SetLimit
            | LockOp::Downgrade => |error| failed(error, LockError::outcome_unknown),
            _ => |error| failed(error, LockError::store),
        };
        Pending::run_as(self.name(), path, into_error, work)
    }
}

pub(crate) fn ready<T>(result: Result<T, LockError>) -> Pending<T, LockError> {
    Pending::ready_as(|error| failed(error, LockError::store), result)
}

/// The error of a [`Pending`] that fails without the store: after its deadline, or in a forked process.
fn failed(error: Error, late: fn(&str, Error) -> LockError) -> LockError {
    let path = error.path().to_owned();
    match error.code() {
        Code::OPERATION_TIMEOUT => late(&path, error),
        Code::CLOSING => LockError::closed(&path, error),
        _ => LockError::store(&path, error),
    }
}
