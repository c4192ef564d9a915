//! The C client that is linked.

mod consts;
#[cfg(target_pointer_width = "64")]
mod layout;
mod link;
mod secured;
