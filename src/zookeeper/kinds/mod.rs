//! What makes a kind of lock: which of the earlier claims keep one of ours from holding.

pub(super) mod limit;
pub(super) mod limit_node;
pub(super) mod permits;
pub(super) mod upgrade;
