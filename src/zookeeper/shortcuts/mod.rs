//! What saves requests: what this client knows of a path, and when a claim holds by that alone.
//!
//! The acquire loop is complete without it.

pub(super) mod announced;
mod coalesced;
pub(super) mod continuity;
pub(super) mod following;
pub(super) mod memory;
pub(super) mod prove;
pub(super) mod succession;
