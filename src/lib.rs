//! Distributed locks on Apache ZooKeeper.

mod client;
mod error;
mod lock;
mod raw;
mod session_key;
mod znode;

pub use client::{
    Client, ClientOptions, Created, Op, OpResult, Pending, SessionState, SessionStates, Watch,
    WatchEvent, WatchEventKind,
};
pub use error::{Code, Error, Result};
pub use lock::{Contender, Guard, GuardState, Lock, LostReason, LostSignal, Strategy};
pub use session_key::SessionKey;
pub use znode::{Acl, CreateMode, Permissions, Stat};
