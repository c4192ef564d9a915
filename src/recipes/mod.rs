//! Counters, barriers, a latch, groups and a work queue in ZooKeeper, in addition to the locks.

mod barrier;
mod counter;
mod double_barrier;
mod ephemeral;
mod group;
mod latch;
mod persistent;
mod priority;
// Public for C programs only.
#[cfg_attr(not(feature = "capi"), allow(dead_code, unused_imports))]
mod queue;
mod receipt;
mod retry_budget;
mod transaction;
mod work_queue;

pub use barrier::Barrier;
pub use counter::Counter;
pub use double_barrier::{DoubleBarrier, Entered};
pub use group::{Group, Member, Members, Membership};
pub use latch::Latch;
#[cfg(feature = "capi")]
pub(crate) use priority::DEFAULT_PRIORITY;
#[cfg(feature = "capi")]
pub(crate) use queue::{Head, Queue};
pub use work_queue::{Delivery, WorkQueue};
