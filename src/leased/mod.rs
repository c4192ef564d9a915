//! Locks in a store with leases. A client's claims live on a session that the client renews. If it does not renew in
//! time, the store ends the session.
//!
//! A claim has a unique number, and numbers grow. The number is the claim's place in the queue, and its token.
//! `lock/kind.rs` defines for all stores which claims exclude each other. `database.rs` lists the operations of a store.

mod acquire;
pub(crate) mod attempts;
mod backlog;
mod claim;
pub(crate) mod database;
mod duties;
mod inner;
mod looks;
mod session;
mod spec;
mod store;
mod stored;
mod tenure;
#[cfg(feature = "_tls")]
pub(crate) mod tls;
mod worker;

pub(crate) use claim::path_of;
pub(crate) use store::Store;
