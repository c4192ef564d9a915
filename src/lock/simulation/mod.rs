//! The acquire loop of production against simulated servers: on one thread, in virtual time, every
//! run repeatable.
//!
//! # What is modelled
//! A leader orders the writes; each session has a server that applies them (at once, or lagging).
//! A session's requests are taken up in their order, and answers and watch events come back in the
//! servers' order. A connection can break: what the servers had got they may still execute, until
//! the session moves on. A client that is back sets its watches again. Trust ends by the client's
//! clock before the servers give the session up; that and the end of its znodes are two steps, with
//! the client's next session perhaps between them. Timers go off in any order: no two processes
//! have to be equally fast. Beyond that: requests that are not answered in time, processes frozen or
//! killed, acquires given up, claims deleted by an operator, empty directories reaped, litter.
//!
//! # What is checked
//! At every step: at most one contender has a tenure that stands, tokens grow, no deletion hits
//! another's znode. At the end: everybody is done, no claim is left, no task, no deletion to do.
//!
//! # All schedules
//! A *reduced* scenario has fewer schedules and the same outcomes. What one client alone can see
//! (answers that arrive, code that runs, trust that ends) happens at once, for it commutes with all
//! that others do: only the order in which the servers take up requests, and where faults fall, is
//! left to choose. A pause that could change nothing ends once, not for ever. Of clients to whom
//! nothing has happened yet, and who do the same, one stands for all. And where two schedules lead
//! to one state (as a digest of 64 bits), one of them goes on. Nothing else is left out of it; but
//! each contender acquires once, and held claims are not watched by the sentinel. Random schedules
//! reduce nothing, acquire more than once, and have the sentinel.
//!
//! # To repeat a failure
//! It prints the command, with `ZKLOCK_SEED` or with `ZKLOCK_SCENARIO` and `ZKLOCK_CHOICES`.
//! `make simulate` runs far more than `cargo test` does: among them three contenders with one fault.

mod checks;
mod client;
mod contender;
mod digest;
mod disposal;
mod effort;
mod faults;
mod replay;
mod request;
mod run;
mod scenario;
mod schedule;
mod server;
mod service;
mod session;
mod steps;
mod tasks;
mod tests;
mod world;
