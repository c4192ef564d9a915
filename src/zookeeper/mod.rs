//! What ZooKeeper has besides locks: znodes, their access control, transactions, watches, and sessions.
//!
//! A [`Client`](crate::Client) works with them, and its locks are kept there: see [`Client::lock`](crate::Client::lock).

// Floor 3: locks that are kept in ZooKeeper. No unsafe code, and nothing of the C client: only the client above it.
//
// One acquire loop (`acquire.rs`) drives three strategies (`poll.rs`, `watch.rs`, `queue.rs`). A claim (`claim.rs`) is the
// node that stands for one attempt; when it holds, a tenure (`tenure.rs`) takes it over. It runs on `client` alone.
// Inside, errors are the client's; callers get a lock's own, which `refusal.rs` makes of them.

mod acquire;
mod acquired;
mod admission;
mod announced;
mod asked;
mod attempt;
mod change;
mod claim;
mod claim_data;
mod coalesced;
mod contenders;
mod continuity;
mod deletion_watch;
mod following;
mod guarded;
mod held;
mod holder;
mod layout;
mod limit;
mod limit_node;
mod listing;
mod lookup;
mod memory;
mod name;
mod node;
mod pair;
mod permits;
mod poll;
mod queue;
mod refusal;
mod revoke;
mod scan;
mod seen_ahead;
mod sent_after;
#[cfg(test)]
#[path = "../../tests/inside/simulation/mod.rs"]
mod simulation;
mod spec;
mod stored;
mod succession;
mod tenure;
mod together;
mod transaction;
mod upgrade;
mod wanted;
mod watch;

pub use crate::client::{
    AclList, Children, Created, Op, OpResult, Reconfiguration, SessionState, SessionStates, Watch,
    WatchEvent, WatchEventKind, Watched, Znode,
};
pub use crate::sasl::Sasl;
pub use crate::session_key::SessionKey;
pub use crate::tls::Tls;
pub use crate::znode::{Acl, CreateMode, Permissions, Stat};
