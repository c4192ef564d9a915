//! Which version this is, for programs that were compiled against another header.

use std::ffi::{CStr, c_char, c_int};

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version has no NUL"),
    };

/// The version of the library that the program runs with, such as `0.1.0`. Lives as long as the
/// program.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_version() -> *const c_char {
    VERSION.as_ptr()
}

/// The same as one number: major * 1000000 + minor * 1000 + patch. To be compared with
/// `ZKL_VERSION_NUMBER`, the header's.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_version_number() -> c_int {
    let part = |text: &str| text.parse::<c_int>().unwrap_or(0);
    part(env!("CARGO_PKG_VERSION_MAJOR")) * 1_000_000
        + part(env!("CARGO_PKG_VERSION_MINOR")) * 1_000
        + part(env!("CARGO_PKG_VERSION_PATCH"))
}
