//! Real ZooKeeper for tests: servers, ensembles, and a proxy that makes the network fail on demand.
//!
//! ```no_run
//! use std::time::Duration;
//! use zklock_testing::{Action, Proxy, Rule, Server, expire_session, wire::{Op, RawClient}};
//!
//! let server = Server::start()?;                        // Debian's zookeeper, on loopback, in memory; half a second
//! let proxy = Proxy::start(server.addr())?;
//! proxy.on(Rule::reply(Op::Create).once(), Action::Drop);
//!
//! let mut client = RawClient::connect(proxy.addr(), Duration::from_secs(10))?;
//! assert!(client.create("/node", b"").unwrap_err().is_connection_loss());
//!
//! let mut other = RawClient::connect(server.addr(), Duration::from_secs(10))?;
//! assert!(other.exists("/node")?.is_some());            // the server did what the client does not know of
//! expire_session(&server.hosts(), client.session_id(), &client.password())?;
//! server.freeze()?;                                     // and so on: thaw, stop, kill, start_again
//! # Ok::<(), zklock_testing::Error>(())
//! ```
//!
//! # What can be relied on
//! - **Nothing outlives the test.** A [`Server`], [`Ensemble`] or [`Proxy`] ends when it is dropped. A server also
//!   ends when its program does, however that dies; its directory then goes when the next program starts a server.
//! - **Tests may run in parallel**, in threads and in processes: each server has its own ports and directory.
//! - **Ready means ready**: what `start` returns answers requests.
//! - **Waiting ends**: whatever waits has a deadline, and says in its [`Error`] what it waited for.
//!
//! # What is needed
//! Linux, Java and ZooKeeper: on Debian `apt-get install zookeeper`; elsewhere set `ZOOKEEPER_HOME` to an unpacked
//! release, and `JAVA_HOME` if `java` is not on the path.
//!
//! # Where things are
//! - [`Server`], [`Builder`], [`Ensemble`]: processes. [`four_letter`] and [`Stats`] ask them how they are.
//! - [`Proxy`], [`Rule`], [`Action`], [`Gate`]: the network between clients and a server.
//! - [`Ensemble::isolate`]: the network between servers.
//! - [`expire_session`]: ends a session behind its client's back.
//! - [`wire`]: the protocol, and a bare client for it.

#![deny(unsafe_code)]

mod builder;
mod busy;
mod data_dir;
mod deadline;
mod ensemble;
mod error;
mod four_letter;
mod install;
mod peers;
mod port;
mod process;
mod proxy;
mod server;
mod session;
mod stats;
pub mod wire;

pub use builder::{Builder, LogLevel};
pub use busy::KeepBusy;
pub use ensemble::Ensemble;
pub use error::{Error, Result};
pub use four_letter::four_letter;
pub use proxy::{Action, Direction, Gate, InstalledRule, Proxy, Rule, Seen};
pub use server::Server;
pub use session::expire_session;
pub use stats::{Connection, Stats, WatchSummary};
pub use wire::{Op, Ops};
