//! Floor 4: the C API. Thin: it translates, and everything else happens below.
//!
//! # The rules of the boundary
//! - **Codes.** Functions that can fail return ZooKeeper's own codes, or one of the few of ours
//!   (`codes.rs`). Why the last call on a thread failed is kept for `zkl_last_error`.
//! - **Outputs are written only on success.** What is freed may be null.
//! - **No panic crosses** (`boundary.rs`): it becomes a code.
//! - **No cancellation crosses** (`cancellation.rs`): it is off while a thread is inside.
//! - **Callbacks of the program** run on a thread of ours that nothing else depends on, so they
//!   may block and may call back in (`callbacks.rs`).
//! - **Objects** are boxes that the program owns. A function takes `Option<&T>` for one that stays
//!   the program's and `Option<Box<T>>` for one that it gives up; null is `None`. All of them can be
//!   used by several threads at once.
//!
//! `zkl/` is the API that programs are written for, `zkr/` what takes the place of ZooKeeper's own recipes.
//!
//! The doc comments in `zkl/` are the text of `include/zklock.h`: they speak to C programmers, and what
//! they ask of pointers is what the `SAFETY` notes rest on.

mod acl;
mod boundary;
mod callbacks;
mod cancellation;
mod codes;
mod one_copy;
#[cfg(all(test, not(zklock_loom)))]
#[path = "../../tests/inside/capi/mod.rs"]
mod properties;
mod stat;
mod zkl;
mod zkr;
