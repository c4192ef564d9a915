#![doc = include_str!("../README.md")]
#![no_std]
#![allow(unsafe_code, reason = "it declares what the C client exports")]

// What the C client calls is linked by it.
#[cfg(feature = "tls")]
use openssl_sys as _;

pub mod consts;
pub mod secure;

// Generated code has no comments of its own, and C's names.
#[cfg(not(zookeeper_sys_generated))]
#[rustfmt::skip]
#[allow(missing_docs, non_camel_case_types, non_snake_case, non_upper_case_globals, clippy::all)]
mod bindings;
#[cfg(zookeeper_sys_generated)]
#[allow(missing_docs, non_camel_case_types, non_snake_case, non_upper_case_globals, clippy::all)]
mod bindings {
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}

#[doc(inline)]
pub use bindings::*;

/// The version of the header that this crate was built against, such as `3.8.0`.
///
/// The library itself cannot be asked: a shared object may have been replaced since.
pub const HEADER_VERSION: &str = env!("ZOOKEEPER_SYS_VERSION");
