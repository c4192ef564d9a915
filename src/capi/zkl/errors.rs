//! What went wrong, in words.

use std::ffi::{c_char, c_int};

use crate::capi::boundary;
use crate::capi::codes::text_of;

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
