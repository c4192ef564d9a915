//! The client on real servers: its operations, its session, and everything that can go wrong.

mod auth;
mod changes;
mod closing;
mod driver;
mod ensemble;
mod forks;
mod hostile;
mod hosts;
mod lazy;
mod lifecycle;
mod logging;
mod operations;
mod preload;
mod proofs;
mod reconnect;
mod refusals;
mod requests;
mod scarcity;
mod sessions;
mod spans;
mod transactions;
mod trust;
mod wakers;
mod watches;
#[cfg(feature = "raw")]
mod zhandle;
