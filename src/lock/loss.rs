//! Whether a lock is held, and why it is not.

use std::fmt;

/// Whether a lock is still held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum GuardState {
    /// It is held: no other client can acquire it now.
    Held,
    /// The connection is lost. It is held yet, but may be lost soon: stop writing.
    Suspended,
    /// It is lost: others may hold it. It stays so.
    Lost,
}

/// Why a guard's tenure is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum LostReason {
    /// The session expired, or could not be trusted any more by the local clock.
    Session,
    /// Somebody deleted the lock's znode.
    Deleted,
    /// Somebody [broke](crate::Lock::break_hold) the hold.
    Broken,
    /// The guard was released or dropped.
    Released,
}

impl fmt::Display for LostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LostReason::Session => "its session is over, or can't be trusted any more",
            LostReason::Deleted => "somebody has deleted it",
            LostReason::Broken => "somebody has broken it",
            LostReason::Released => "it was released",
        })
    }
}
