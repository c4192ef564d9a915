//! Codes of our own, beside ZooKeeper's: far below them, so that they never collide.

use std::ffi::{CStr, c_char, c_int};

use super::boundary;
use crate::error::Code;

/// Somebody holds the lock or is ahead in its queue (`zkl_lock_try` only).
pub const ZKL_TAKEN: c_int = -2001;
/// The acquire was cancelled by the program.
pub const ZKL_CANCELLED: c_int = -2002;
/// The call would wait for the very thread that it was made on.
pub const ZKL_WOULD_DEADLOCK: c_int = -2003;
/// A defect of zklock itself, caught before it could harm the program.
pub const ZKL_PANIC: c_int = -2004;
/// The lock is no longer held, so nothing was written (`zkl_guard_set` only).
pub const ZKL_NOT_HELD: c_int = -2005;

/// What a code means, as one lowercase phrase: ZooKeeper's codes and zklock's.
///
/// Any thread. Returns a string that lives as long as the program; never NULL, also for an unknown
/// code.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_strerror(code: c_int) -> *const c_char {
    boundary::value(c"unknown code".as_ptr(), || text_of(code).as_ptr())
}

/// Why the last function that failed on this thread did, with the path it was about: one line, for
/// people. Inside a `done` callback: why that acquire failed.
///
/// Any thread. Returns a string that belongs to the library and is good until the next failure on
/// this thread; empty if nothing failed yet; never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_last_error() -> *const c_char {
    boundary::value(c"".as_ptr(), boundary::last_message)
}

fn text_of(code: c_int) -> &'static CStr {
    match code {
        ZKL_TAKEN => c"the lock is taken",
        ZKL_CANCELLED => c"cancelled",
        ZKL_WOULD_DEADLOCK => c"the call would wait for the thread it was made on",
        ZKL_PANIC => c"a defect in zklock",
        ZKL_NOT_HELD => c"the lock is no longer held",
        code => Code::from_raw(code).c_text().unwrap_or(c"unknown code"),
    }
}
