//! The commands that find out what is wrong, and those that change something.

pub mod ask;
pub mod break_hold;
pub mod clean;
pub mod doctor;
mod finding;
mod holders;
mod hosts;
mod judgement;
mod server;
