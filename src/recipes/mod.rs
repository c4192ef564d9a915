//! Floor 3: what is built on the client beside locks.

mod queue;
mod receipt;
mod retry_budget;
mod transaction;

pub(crate) use queue::{Head, Queue};
