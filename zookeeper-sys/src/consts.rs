//! The values behind the C library's `const int` globals, for use in patterns and constants.
//!
//! Each has the name of its C global, which is bound at the root of the crate as a `static`.
//! The library may send values that are not listed here: leave room for them in a `match`.

use core::ffi::c_int;

macro_rules! consts {
    ($($(#[doc = $doc:literal])+ $name:ident = $value:literal;)+) => {
        $($(#[doc = $doc])+ pub const $name: c_int = $value;)+
    };
}

// What a node is created as.
consts! {
    /// A node that stays until it is deleted.
    ZOO_PERSISTENT = 0;
    /// A node that goes with the session that created it.
    ZOO_EPHEMERAL = 1;
    /// Persistent, with a number appended to its name by the server.
    ZOO_PERSISTENT_SEQUENTIAL = 2;
    /// Ephemeral, with a number appended to its name by the server.
    ZOO_EPHEMERAL_SEQUENTIAL = 3;
    /// A node that the server deletes some time after its last child has gone.
    ZOO_CONTAINER = 4;
    /// A persistent node that the server deletes when it is childless and unchanged for its TTL.
    ZOO_PERSISTENT_WITH_TTL = 5;
    /// As `ZOO_PERSISTENT_WITH_TTL`, with a number appended to its name.
    ZOO_PERSISTENT_SEQUENTIAL_WITH_TTL = 6;
    /// The bit that older code adds to `ZOO_PERSISTENT` and `ZOO_EPHEMERAL` for the number.
    ZOO_SEQUENCE = 2;
}

// What a session's state can be: `zoo_state`, and the `state` of a watcher's call.
consts! {
    /// The session is over, and its ephemeral nodes are gone. Final.
    ZOO_EXPIRED_SESSION_STATE = -112;
    /// The server refused the credentials. Final.
    ZOO_AUTH_FAILED_STATE = -113;
    /// Opening a connection.
    ZOO_CONNECTING_STATE = 1;
    /// Connected, waiting for the server to accept the session.
    ZOO_ASSOCIATING_STATE = 2;
    /// In session.
    ZOO_CONNECTED_STATE = 3;
    /// In session with a server that has lost its ensemble.
    ZOO_READONLY_STATE = 5;
    /// Shaking hands for TLS. Exported by the library since 3.6, declared by no header.
    ZOO_SSL_CONNECTING_STATE = 7;
    /// Not yet started.
    ZOO_NOTCONNECTED_STATE = 999;
}

// What a watcher is called for: its `type`.
consts! {
    /// The node was created.
    ZOO_CREATED_EVENT = 1;
    /// The node was deleted.
    ZOO_DELETED_EVENT = 2;
    /// The node's data changed.
    ZOO_CHANGED_EVENT = 3;
    /// A child was created or deleted.
    ZOO_CHILD_EVENT = 4;
    /// The session's state changed; no node is meant.
    ZOO_SESSION_EVENT = -1;
    /// The watch is no longer kept.
    ZOO_NOTWATCHING_EVENT = -2;
}

// What an ACL entry allows: its `perms`, added up.
consts! {
    /// Read the data and list the children.
    ZOO_PERM_READ = 1;
    /// Change the data.
    ZOO_PERM_WRITE = 2;
    /// Create children.
    ZOO_PERM_CREATE = 4;
    /// Delete children.
    ZOO_PERM_DELETE = 8;
    /// Change the ACL.
    ZOO_PERM_ADMIN = 16;
    /// All of these.
    ZOO_PERM_ALL = 31;
}
