//! The C client that is linked.

#![allow(unsafe_code, reason = "it calls the C client")]

mod consts;
#[cfg(target_pointer_width = "64")]
mod layout;
mod link;
mod secured;
