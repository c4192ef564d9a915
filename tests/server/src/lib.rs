#![doc = include_str!("../README.md")]
//!
//! # Where things are
//! - [`Server`], [`Builder`], [`Ensemble`]: processes. [`four_letter`] and [`Stats`] ask them how they are.
//! - [`Proxy`], [`Rule`], [`Op`], [`Ops`], [`Action`], [`Gate`]: the network between clients and servers.
//! - [`Ensemble::isolate`]: the network between servers.
//! - [`Proxy::expire_sessions`], [`expire_session`]: the end of a session behind its client's back.
//! - [`Database`]: servers of PostgreSQL, MariaDB and Redis, for what works on several stores.
//! - [`Scratch`]: a directory that no other process gets.
//! - [`wire`]: the protocol, and a bare client for it.
//! - [`Error`]: what went wrong, and what to do about it.

#![deny(unsafe_code)]

mod builder;
mod busy;
mod connect_string;
mod data_dir;
mod database;
mod deadline;
mod ensemble;
mod error;
mod eventually;
mod four_letter;
mod install;
mod peers;
mod port;
mod process;
mod proxy;
mod scratch;
mod server;
mod session;
mod stats;
pub mod wire;

pub use builder::{Builder, LogLevel};
pub use busy::KeepBusy;
pub use database::Database;
pub use ensemble::Ensemble;
pub use error::{Error, Result};
pub use eventually::eventually;
pub use four_letter::four_letter;
pub use port::Port;
pub use proxy::{Action, Direction, Gate, InstalledRule, Proxy, Rule, Seen};
pub use scratch::Scratch;
pub use server::Server;
pub use session::expire_session;
pub use stats::{Connection, Stats, WatchSummary};
pub use wire::{Op, Ops};
