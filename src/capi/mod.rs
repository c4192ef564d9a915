//! Floor 4: the C API. Thin: it translates, and everything else happens below.
//!
//! # The rules of the boundary
//! - **Codes.** Functions that can fail return ZooKeeper's own codes, or one of the few of ours
//!   (`codes.rs`). Why the last call on a thread failed is kept for `zkl_last_error`.
//! - **Outputs are written only on success.** Free functions accept null.
//! - **No panic crosses** (`boundary.rs`): it becomes a code.
//! - **No cancellation crosses** (`cancellation.rs`): it is off while a thread is inside.
//! - **Callbacks of the program** run on a thread that nothing else depends on, so they may block and
//!   may call back in (`callbacks.rs`).
//! - **Objects** are boxes that the program owns. A function borrows an object as `Option<&T>`, and
//!   takes ownership as `Option<Box<T>>`; null is `None`. Several threads can use an object at once.
//!
//! `zkl/` is the API for new programs. `zkr/` replaces ZooKeeper's own C recipes.
//!
//! The doc comments in `zkl/` become the text of `include/zklock.h`, so they address C programmers. The
//! `SAFETY` notes rely on their rules for pointers.

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
