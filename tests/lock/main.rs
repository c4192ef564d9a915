//! Locks under faults, on real servers.
