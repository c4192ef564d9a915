//! The parts of ZooKeeper besides locks: znodes, their access control, transactions, watches, and sessions.
//!
//! A [`Client`](crate::Client) works with them, and its locks are kept there: see [`Client::lock`](crate::Client::lock).

// Floor 3: locks that are kept in ZooKeeper. It runs on `client` alone.
//
// `stored.rs` is the lock as `lock/` knows it. `acquire/` is the loop with its three strategies; `claim/` is the znode of
// one attempt; `kinds/` says who waits for whom; `shortcuts/` saves requests; `hold/` is a claim that holds; `contenders/`
// shows who holds and waits. Inside, errors are the client's; `refusal.rs` makes a lock's own of them for callers.

mod acquire;
mod claim;
mod contenders;
mod hold;
mod kinds;
mod name;
mod refusal;
mod shortcuts;
#[cfg(test)]
#[path = "../../tests/inside/simulation/mod.rs"]
mod simulation;
mod spec;
mod stored;

pub use crate::client::{
    AclList, Children, Created, Op, OpResult, Reconfiguration, SessionState, SessionStates, Watch,
    WatchEvent, WatchEventKind, Watched, Znode,
};
pub use crate::sasl::Sasl;
pub use crate::session_key::SessionKey;
pub use crate::znode::{Acl, CreateMode, Permissions, Stat};
