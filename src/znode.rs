//! The vocabulary of the data tree: `Stat`, access control, create modes. Plain values, no behaviour.

use std::time::Duration;

/// The metadata of a znode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
#[non_exhaustive]
pub struct Stat {
    /// The transaction that created the znode. It grows across the whole ensemble, so the czxid of a lock's znode is
    /// its fencing token.
    pub czxid: i64,
    /// The transaction that last changed the data.
    pub mzxid: i64,
    /// When the znode was created: milliseconds since the epoch, by the server's clock.
    pub ctime: i64,
    /// When the data last changed: milliseconds since the epoch, by the server's clock.
    pub mtime: i64,
    /// How often the data changed.
    pub version: i32,
    /// How often the set of children changed.
    pub cversion: i32,
    /// How often the ACL changed.
    pub aversion: i32,
    /// The session that owns an ephemeral znode; 0 for any other.
    pub ephemeral_owner: i64,
    /// The length of the data in bytes.
    pub data_length: i32,
    /// The number of children.
    pub num_children: i32,
    /// The transaction that last changed the set of children.
    pub pzxid: i64,
}

impl Stat {
    /// Whether the znode lives only as long as a session.
    ///
    /// Servers report no owner for containers and TTL znodes. If a server ever reports the mark of a TTL znode (a top
    /// byte of 0xff), this takes it for a session. Session ids begin with the id of a server, which can be 255.
    pub fn is_ephemeral(&self) -> bool {
        // Containers are marked with i64::MIN, which no session has for an id.
        self.ephemeral_owner != 0 && self.ephemeral_owner != i64::MIN
    }
}

/// How long a new znode lives, and whether the server appends a sequence number to its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum CreateMode {
    /// Lives until it is deleted.
    Persistent,
    /// Lives until it is deleted. The server appends ten digits, which grow under one parent.
    PersistentSequential,
    /// Lives as long as the session that created it.
    Ephemeral,
    /// As `Ephemeral`, with a sequence number.
    EphemeralSequential,
    /// The server deletes it some time after its last child is gone.
    Container,
    /// The server deletes it once it has had no child and no change for that time, in whole milliseconds. The server
    /// must have extended types enabled.
    PersistentWithTtl(Duration),
    /// As `PersistentWithTtl`, with a sequence number.
    PersistentSequentialWithTtl(Duration),
}

bitflags::bitflags! {
    /// The permissions of an identity on a znode.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    pub struct Permissions: i32 {
        /// Read its data and list its children.
        const READ = 1;
        /// Change its data.
        const WRITE = 2;
        /// Create children.
        const CREATE = 4;
        /// Delete children.
        const DELETE = 8;
        /// Change its ACL.
        const ADMIN = 16;
        /// Everything.
        const ALL = 31;
    }
}

/// One entry of a znode's access control list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Acl {
    /// The permissions of the identity.
    pub permissions: Permissions,
    /// The scheme of the identity: `world`, `auth`, `digest`, `ip`, `x509`, `sasl`.
    pub scheme: String,
    /// The identity within the scheme, such as `anyone` or `user:base64(sha1(user:password))`.
    pub id: String,
}

impl Acl {
    /// An entry.
    pub fn new(permissions: Permissions, scheme: impl Into<String>, id: impl Into<String>) -> Acl {
        Acl { permissions, scheme: scheme.into(), id: id.into() }
    }

    /// All clients may do everything.
    pub fn open() -> Vec<Acl> {
        vec![Acl::new(Permissions::ALL, "world", "anyone")]
    }

    /// Whether by it, alone, everyone may do everything.
    pub(crate) fn is_open(&self) -> bool {
        (self.permissions, &*self.scheme, &*self.id) == (Permissions::ALL, "world", "anyone")
    }

    /// All clients may read; none may change.
    pub fn read_only() -> Vec<Acl> {
        vec![Acl::new(Permissions::READ, "world", "anyone")]
    }

    /// The identities of this session may do everything.
    pub fn creator() -> Vec<Acl> {
        vec![Acl::new(Permissions::ALL, "auth", "")]
    }
}
