//! What takes the place of ZooKeeper's own recipes, under their names and with their structs.

pub(super) mod clients;
pub(super) mod lock;
pub(super) mod pmutex;
pub(super) mod queue;
