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
//! The doc comments here are the text of `include/zklock.h`: they speak to C programmers, and what
//! they ask of pointers is what the `SAFETY` notes rest on.

mod acl;
mod attempt;
mod boundary;
mod callbacks;
mod cancellation;
mod client;
mod codes;
mod contenders;
mod guard;
mod lock;
mod loss_signals;
mod one_copy;
mod options;
mod pmutex;
#[cfg(all(test, not(zklock_loom)))]
mod properties;
mod stat;
mod version;
mod zkr_clients;
mod zkr_lock;
mod zkr_queue;
