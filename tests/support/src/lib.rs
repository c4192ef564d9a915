//! What the test groups of zklock share: a server with a proxy to work on ([`Bench`]), clients of it
//! ([`options`], [`connect`]), processes that are told what to do a line at a time ([`Process`]), and
//! C programs, built against an installed zklock ([`c_programs`]).
//!
//! The library's unit tests can't use it: it is linked with the library as others use it.

#![deny(unsafe_code)]

mod acquires;
mod bench;
pub mod c_programs;
mod clients;
mod link;
mod process;
mod scale;
pub mod secure;
pub mod shared;
mod stalls;
pub mod svg;

pub use acquires::{acquire_in_background, expect_blocked, poll_unless, poll_until};
pub use bench::{Bench, Stranger, alone, unused_path};
pub use clients::{
    LONGEST_SESSION, SESSION_TIMEOUT, TIMEOUT, connect, expire, options, session_id, states_until,
    wait_for_another_session,
};
pub use link::{Link, Lost};
pub use process::{Process, Running, child_about, say};
pub use scale::scaled;
pub use shared::{once, zookeeper as shared};
pub use stalls::{Stalls, unless_it_stalls};
pub use zklock_testing::eventually;
