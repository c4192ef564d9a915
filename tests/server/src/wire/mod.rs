//! ZooKeeper's wire protocol, as far as tests need it, and a client that speaks nothing else.
//!
//! Every message is a frame: four bytes of length, then that many bytes. The first frame in each direction of a
//! connection opens the session. After that a request starts with its number (xid) and operation; a reply repeats the
//! number, adds the transaction id (zxid) and an error code, and carries a body only when that is zero. A few negative
//! numbers are reserved: -1 for watch events, -2 for pings, -4 for credentials, -8 for watches set again.

mod client;
mod code;
mod codec;
mod frame;
mod node;
mod op;
mod requests;

pub use client::RawClient;
pub(crate) use client::connect_request;
pub(crate) use code::{NO_NODE, NODE_EXISTS, told};
pub(crate) use codec::{Reader, Writer};
pub(crate) use frame::{Frames, Taken};
pub use node::{CreateMode, MultiOp, Stat, WatchEvent};
pub use op::{Op, Ops};
pub(crate) use requests::multi_error;

/// The xid of a watch event, which no request has asked for.
pub(crate) const XID_EVENT: i32 = -1;
/// The xid of pings and their replies.
pub(crate) const XID_PING: i32 = -2;
/// The xid of credentials and their replies.
pub(crate) const XID_AUTH: i32 = -4;
