//! What it costs when there are many: waiters, locks, clients, requests, children; on real servers.
//!
//! Each scenario runs here with numbers that take seconds. `make limits` runs them with the numbers of
//! `docs/limits.md` and prints the figures of its tables.

mod bench;
mod children;
mod crowd;
mod idle;
mod pressure;
mod recovery;
mod watches;
