//! Defects of other locks, each shown on a small port of the faulty logic and then passed by ours.
//!
//! [`docs/defects.md`](../../docs/defects.md) is the table: a row for each test here. A test has two
//! halves. In the first the port (`seeds/`) walks into its defect, on a real server, because the test
//! makes the unlucky moment happen: a frame that is lost or held, a session that is ended, a node that
//! somebody deletes, a hook between two steps. Nothing rests on luck. In the second half the same
//! happens to zklock's lock.

mod answers;
mod catalogue;
mod double_holders;
mod expiry;
mod incidents;
mod load;
mod lost_wakeups;
mod order;
mod orphans;
mod releases;
mod seeds;
mod snapshot;
#[cfg(all(feature = "postgres", feature = "redis", feature = "sqlite"))]
mod stores;
mod wrap;
