//! Floor 3: locks that are kept in ZooKeeper. No unsafe code, and nothing of the C client: only the client
//! above it.
//!
//! One acquire loop (`acquire.rs`) drives three strategies (`poll.rs`, `watch.rs`, `queue.rs`). A
//! claim (`claim.rs`) is the node that stands for one attempt; when it holds, a tenure
//! (`tenure.rs`) takes it over. It runs on [`client`](crate::client) alone. Inside, errors are the client's;
//! callers get a lock's own, which `refusal.rs` makes of them.

mod acquire;
mod admission;
mod asked;
mod attempt;
mod claim;
mod claim_data;
mod coalesced;
mod contenders;
mod continuity;
mod deletion_watch;
mod guarded;
mod holder;
mod keyed;
mod layout;
mod limit;
mod limit_node;
mod listing;
mod lookup;
mod memory;
mod name;
mod permits;
mod poll;
mod queue;
mod refusal;
mod revoke;
mod scan;
mod seen_ahead;
mod sent_after;
#[cfg(test)]
mod simulation;
mod spec;
mod stored;
mod tenure;
mod watch;

pub use keyed::Locks;
