//! Nodes, as requests and replies describe them.

use std::time::Duration;

/// How a node is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CreateMode {
    /// Stays until it is deleted.
    Persistent,
    /// Ends with its session.
    Ephemeral,
    /// Stays, and gets a number after its name.
    PersistentSequential,
    /// Ends with its session, and gets a number after its name.
    EphemeralSequential,
    /// Is removed some time after its last child.
    Container,
    /// Is removed when it had no child and no change for so long.
    Ttl(Duration),
}

/// A node's facts, as the server sends them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are ZooKeeper's own")]
#[non_exhaustive]
pub struct Stat {
    pub czxid: i64,
    pub mzxid: i64,
    pub ctime: i64,
    pub mtime: i64,
    pub version: i32,
    pub cversion: i32,
    pub aversion: i32,
    pub ephemeral_owner: i64,
    pub data_length: i32,
    pub num_children: i32,
    pub pzxid: i64,
}

/// A watch that fired.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchEvent {
    /// ZooKeeper's number: 1 created, 2 deleted, 3 changed, 4 children changed.
    pub kind: i32,
    /// The node.
    pub path: String,
}

/// One part of a [`RawClient::multi`](super::RawClient::multi). Only `Check` asks for a version.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are ZooKeeper's own")]
#[non_exhaustive]
pub enum MultiOp {
    Create { path: String, data: Vec<u8> },
    CreateEphemeral { path: String, data: Vec<u8> },
    Delete { path: String },
    SetData { path: String, data: Vec<u8> },
    Check { path: String, version: i32 },
}
