//! Whether a lock is held, and why it is not.

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
