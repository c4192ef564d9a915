//! Codes of our own, beside ZooKeeper's: far below them, so that they never collide.

use std::ffi::{CStr, c_int};

use crate::error::Code;

/// Another contender is ahead: a holder or, in a queue, a waiter (functions named `try` only).
pub const ZKL_TAKEN: c_int = -2001;
/// The program cancelled the acquire or other wait.
pub const ZKL_CANCELLED: c_int = -2002;
/// The call would wait for its own thread.
pub const ZKL_WOULD_DEADLOCK: c_int = -2003;
/// A defect of zklock, caught before it could harm the program.
pub const ZKL_PANIC: c_int = -2004;
/// The lock is no longer held, or the element no longer claimed. Nothing was written, handed over or removed.
pub const ZKL_NOT_HELD: c_int = -2005;
/// The attempt has not ended yet.
pub const ZKL_PENDING: c_int = -2006;
/// The outcome is unknown, and will stay unknown; zkl_last_error says why.
pub const ZKL_OUTCOME_UNKNOWN: c_int = -2007;
const _: () = assert!(ZKL_OUTCOME_UNKNOWN == Code::OUTCOME_UNKNOWN.as_raw());
/// There was no connection, and the call does not wait for one. Nothing was sent; try again.
pub const ZKL_NOT_CONNECTED: c_int = -2008;
const _: () = assert!(ZKL_NOT_CONNECTED == Code::NOT_CONNECTED.as_raw());

/// The text for one of these codes, or for one of ZooKeeper's.
pub(super) fn text_of(code: c_int) -> &'static CStr {
    match code {
        ZKL_TAKEN => c"the lock is taken",
        ZKL_CANCELLED => c"cancelled",
        ZKL_WOULD_DEADLOCK => c"the call would wait for the thread it was made on",
        ZKL_PANIC => c"a defect in zklock",
        ZKL_NOT_HELD => c"the lock is no longer held",
        ZKL_PENDING => c"not ended yet",
        code => Code::from_raw(code).c_text().unwrap_or(c"unknown code"),
    }
}
