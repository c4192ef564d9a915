//! The rules of each kind of lock: which earlier claims block one of ours.

pub(super) mod limit;
pub(super) mod limit_node;
pub(super) mod permits;
pub(super) mod upgrade;
