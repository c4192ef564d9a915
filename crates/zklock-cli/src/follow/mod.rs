//! The locks below a path, followed: a picture of them at any time, and what became of each hold.

mod budget;
pub mod follower;
pub mod holds;
pub mod meters;
pub mod options;
mod painter;
mod reader;
pub mod shared;
mod tree;
