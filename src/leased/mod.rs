//! Locks in a store that knows its clients by leases: what a client claims lives on a session, which the client renews, and
//! which the store ends once that was not done in time.
//!
//! A claim has a number that no other has, and that grows: it is the claim's place in the queue, and its token. Who may
//! hold beside whom is said in `lock/kind.rs`, for all stores. `database.rs` says what is asked of the store itself.

mod acquire;
pub(crate) mod attempts;
mod backlog;
mod claim;
pub(crate) mod database;
mod inner;
mod looks;
mod session;
mod spec;
mod store;
mod stored;
mod tenure;
mod worker;

pub(crate) use claim::path_of;
pub(crate) use store::Store;
