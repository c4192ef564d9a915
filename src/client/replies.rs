//! The results of operations on znodes.

use super::Watch;
use crate::znode::{Acl, Stat};

/// A znode that was created.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Created {
    /// Its path, with the sequence number if it got one.
    pub path: String,
    /// Its stat at creation.
    pub stat: Stat,
}

/// A znode's data and stat, both of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Znode {
    /// Its data; a znode without data has none.
    pub data: Vec<u8>,
    /// Its stat.
    pub stat: Stat,
}

/// A znode's children and its stat, both of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Children {
    /// Their names, not their paths, in no order.
    pub names: Vec<String>,
    /// The stat of the parent znode.
    pub stat: Stat,
}

/// A znode's access control list and its stat, both of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct AclList {
    /// The znode's access control list.
    pub entries: Vec<Acl>,
    /// The znode's stat; its `aversion` is the version of the list.
    pub stat: Stat,
}

/// A value, and a watch that the same read has set: no change in between is missed.
#[derive(Debug)]
pub struct Watched<T> {
    /// The value that was read.
    pub value: T,
    /// Ends with the first change after that.
    pub watch: Watch,
}
