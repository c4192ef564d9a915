//! Checks histories of lock operations against sequential specifications, under linearizability.
//!
//! The checker sees only the history: one JSON line for each call, each return, and each look at a guard that said
//! "held". `docs/history.md` defines the lines and states what the checker can't see.

mod check;
mod hold;
mod line;
mod semaphore;

pub use check::{Verdict, Violation, check};
