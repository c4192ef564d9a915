//! Saves requests: the client's knowledge about a path, and when that alone proves that a claim holds.
//!
//! The acquire loop is complete without it.

pub(super) mod announced;
mod coalesced;
pub(super) mod continuity;
pub(super) mod following;
pub(super) mod memory;
pub(super) mod prove;
pub(super) mod succession;
