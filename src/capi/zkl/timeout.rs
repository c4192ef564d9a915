//! How long a call may take.

use std::ffi::c_int;
use std::time::Duration;

use crate::capi::boundary::Failure;
use crate::runtime::Pending;

/// No limit.
pub const ZKL_FOREVER: c_int = -1;

/// `None`: for ever.
pub(super) fn timeout(
    function: &'static str,
    timeout_ms: c_int,
) -> Result<Option<Duration>, Failure> {
    match u64::try_from(timeout_ms) {
        Ok(millis) => Ok(Some(Duration::from_millis(millis))),
        Err(_) if timeout_ms == ZKL_FOREVER => Ok(None),
        Err(_) => {
            Err(Failure::bad_argument(function, "timeout_ms is negative and not ZKL_FOREVER"))
        }
    }
}

/// An operation that may take so long.
pub(super) fn limited<T, E>(pending: Pending<T, E>, within: Option<Duration>) -> Pending<T, E> {
    match within {
        Some(within) => pending.within(within),
        None => pending,
    }
}

/// Waits for an operation that may take so long.
pub(super) fn wait<T, E>(pending: Pending<T, E>, within: Option<Duration>) -> Result<T, Failure>
where
    Failure: From<E>,
{
    Ok(limited(pending, within).wait()?)
}
