//! Which version this is, for programs that were compiled against another header.

use std::ffi::{CStr, c_char, c_int};

const VERSION: &CStr = c_text(concat!(env!("CARGO_PKG_VERSION"), "\0"));
const C_CLIENT_VERSION: &CStr = c_text(concat!(env!("ZKLOCK_C_CLIENT_VERSION"), "\0"));

const fn c_text(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a version has no NUL"),
    }
}

/// The version of the library at run time, such as `0.1.0`. `ZKL_VERSION` is that of the header.
///
/// Any thread. The string lives as long as the program; never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_version() -> *const c_char {
    VERSION.as_ptr()
}

/// The same as a number: major * 1000000 + minor * 1000 + patch. Compare it with `ZKL_VERSION_NUMBER` of the header.
///
/// Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_version_number() -> c_int {
    let part = |text: &str| text.parse::<c_int>().unwrap_or(0);
    part(env!("CARGO_PKG_VERSION_MAJOR")) * 1_000_000
        + part(env!("CARGO_PKG_VERSION_MINOR")) * 1_000
        + part(env!("CARGO_PKG_VERSION_PATCH"))
}

/// The version of ZooKeeper's C client that the library was built against, such as `3.8.0`.
///
/// Any thread. The string lives as long as the program; never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_c_client_version() -> *const c_char {
    C_CLIENT_VERSION.as_ptr()
}
