//! The locks below a path, followed: a picture of them at any time, and what became of each hold.
//!
//! One thread (`follower.rs`) keeps every znode below the path listed and watched. `tree.rs` says when each is due, and
//! `budget.rs` how many requests a second that may cost. `holds.rs` compares one look at a lock with the next.

mod budget;
pub mod follower;
pub mod holds;
pub mod meters;
pub mod options;
mod painter;
mod reader;
pub mod shared;
mod tree;
