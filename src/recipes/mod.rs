//! Floor 3: what is built on the client beside locks.

mod patience;
mod per_session;
mod queue;
mod receipt;
mod transaction;

pub(crate) use queue::{Head, Queue};
