//! Replacements for ZooKeeper's own recipes, with their names and structs.

pub(super) mod clients;
pub(super) mod lock;
pub(super) mod pmutex;
pub(super) mod queue;
