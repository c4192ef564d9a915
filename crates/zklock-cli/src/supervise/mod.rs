//! The process between `zklock run` and its command, which ends the command in time whatever becomes of the other.

pub mod ending;
pub mod exec;
pub mod orders;
pub mod supervisor;
pub mod wire;
