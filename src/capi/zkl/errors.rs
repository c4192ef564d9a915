//! Error messages.

use std::ffi::{c_char, c_int};

use crate::capi::boundary;
use crate::capi::codes::text_of;

/// The meaning of a code of ZooKeeper or zklock, as a lowercase phrase.
///
/// Any thread. The string lives as long as the program. Never NULL, even for an unknown code.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_strerror(code: c_int) -> *const c_char {
    boundary::value(c"unknown code".as_ptr(), || text_of(code).as_ptr())
}

/// The error of the last failed function on this thread: one line, for people. Inside a `done` callback,
/// the error of that operation.
///
/// Any thread. The library owns the string, which is valid until the next failure on this thread. Empty if nothing has
/// failed yet; never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_last_error() -> *const c_char {
    boundary::value(c"".as_ptr(), boundary::last_message)
}
