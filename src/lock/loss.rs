//! Whether a lock is held, and why it is not.

use std::fmt;

/// Whether a lock is still held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum GuardState {
    /// It is held: no other client can acquire it now.
    Held,
    /// The connection is lost. The lock is still held, but may be lost soon: stop writing.
    Suspended,
    /// It is lost for good: others may hold it.
    Lost,
}

/// Why a guard no longer holds its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum LostReason {
    /// The session expired, or the local clock no longer proves it alive.
    Session,
    /// Another client deleted the lock's znode.
    Deleted,
    /// Another client [broke](crate::Lock::break_hold) the hold.
    Broken,
    /// The guard was released or dropped. This ends signals and states that outlive the guard.
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
