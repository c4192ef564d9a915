//! Floor 4: the C API. Thin: it translates, and everything else happens below.
//!
//! # The rules of the boundary
//! - **Codes.** Functions that can fail return ZooKeeper's own codes, or one of the few of ours
//!   (`codes.rs`). Why the last call on a thread failed is kept for `zkl_last_error`.
//! - **Outputs are written only on success.** What is freed may be null.
//! - **No panic crosses** (`boundary.rs`): it becomes a code.
//! - **Callbacks of the program** run on a thread of ours that nothing else depends on, so they
//!   may block and may call back in.

mod acl;
mod boundary;
mod callbacks;
mod codes;
mod one_copy;
mod version;
mod zkr_clients;
mod zkr_lock;
