//! The access that a hold of a read/write lock leaves to others.

use super::kind::Kind;

/// How a [`ReadWriteLock`](crate::ReadWriteLock) is held, and so what others may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Access {
    /// Others may read, and one of them may be upgradeable.
    Read,
    /// Others may read, and none of them may be upgradeable. It can [become](crate::Guard::upgrade) a writer.
    Upgradeable,
    /// It excludes all others.
    Write,
}

impl Access {
    pub(crate) fn of(kind: Kind) -> Option<Access> {
        match kind {
            Kind::Read => Some(Access::Read),
            Kind::Upgradeable => Some(Access::Upgradeable),
            Kind::Upgrade | Kind::Write => Some(Access::Write),
            Kind::Exclusive | Kind::Permits(_) => None,
        }
    }
}

/// Why a change is refused while another is in flight.
pub(crate) const IS_BEING_CHANGED: &str = "it is being upgraded or downgraded already";
