//! The commands that find out what is wrong, and those that change something.

pub mod ask;
pub mod doctor;
mod finding;
mod hosts;
mod judgement;
mod server;
