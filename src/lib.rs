//! Distributed locks on [Apache ZooKeeper](https://zookeeper.apache.org), for Rust and for C.
//!
//! ```no_run
//! use zklock::Client;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let zk = Client::connect("127.0.0.1:2181").wait()?; // or .await
//!     let lock = zk.lock("/locks/invoices"); // a fair queue; others by .strategy(...)
//!     let guard = lock.acquire().wait()?; // or .within(limit), or try_acquire()
//!     println!("mine; my writes carry the token {}", guard.fencing_token());
//!     guard.release().wait()?; // or drop it: released in the background
//!     Ok(())
//! }
//! ```
//!
//! # What it promises
//! - **One holder.** A guard becomes [`Lost`](GuardState::Lost) by the local clock *before* the server can admit
//!   another client: even if the link is cut, the process is frozen, or the machine sleeps. [`Guard`] says what no lock
//!   can promise. [Fencing tokens](Guard::fencing_token) cover that too.
//! - **Nothing left behind.** However an acquire ends (an error, a deadline, a dropped future, a lost reply), its claim
//!   is deleted or dies with its session.
//! - **Unknown is not failed.** If a reply is lost, the outcome is looked up. No request is repeated blindly.
//! - **Every call ends.** Each operation has a deadline.
//!
//! # Which way
//! | to | |
//! |---|---|
//! | do a piece of work under the lock | [`Lock::while_held`]: ends the work before another client can hold the lock |
//! | keep one copy of a service active | [`Lock::whenever_held`], [`until`](WheneverHeld::until) a signal |
//! | elect a leader, which can hand over to another | [`Election`] |
//! | hold it across functions | [`Lock::acquire`], and the [`Guard`] |
//! | take it only if it is free | [`Lock::try_acquire`] |
//! | limit the time of anything | [`within`](Pending::within) |
//! | let many read or one write | [`Client::read_write`] |
//! | re-acquire a lock that you already hold | [`Lock::reentrant`] |
//! | hold several locks, all or none, without a deadlock | [`MultiLock`] |
//! | let at most N clients work | [`Client::semaphore`] |
//! | write to ZooKeeper only while it is held | [`Guard::set`], [`create`](Guard::create), [`delete`](Guard::delete), [`multi`](Guard::multi) |
//! | lock any of many keys for a short time | [`Client::locks`] |
//! | count, wait for each other, or know which members are alive | [`Counter`](recipes::Counter), [`Barrier`](recipes::Barrier), [`DoubleBarrier`](recipes::DoubleBarrier), [`Latch`](recipes::Latch), [`Group`](recipes::Group) |
//! | hand out work | [`WorkQueue`](recipes::WorkQueue) |
//! | have another store reject a stale writer | [`Guard::fencing_token`] |
//! | see the holder and the waiters | [`Lock::holder`], [`watch_holder`](Lock::watch_holder), [`contenders`](Lock::contenders) |
//!
//! # Before production
//! Four pages, with a picture each: [which strategy to choose](guide::strategy), [what no lock can
//! promise](guide::limits), [what to know in operation](guide::operate), [how to test under faults](guide::faults).
//!
//! # How to wait
//! Every operation returns a [`Pending`] (a watch is a [`Watch`](zookeeper::Watch)): `.await` it on any runtime, or
//! call `.wait()` to block. None needs a runtime. The operation starts before its function returns.
//! [`within`](Pending::within) limits it; dropping the `Pending` cancels it or drops its result, as its docs say under
//! "Cancel safety".
//!
//! # Without a server
//! Unit tests of code that takes a [`Lock`] need no server: [`LocalStore`] has locks within the process.
//!
//! # Other stores
//! [`connect`] takes an address and gives the same locks on ZooKeeper, Redis, PostgreSQL or MariaDB, in a database
//! file, or within the process: see [`Store`].
//!
//! # Features
//! All are off by default.
//! - `postgres`: locks in a database of PostgreSQL. `mysql`: of MariaDB or MySQL.
//! - `redis`: locks on a server of Redis.
//! - `postgres-tls`, `mysql-tls`, `redis-tls`: the same, also with TLS ([`StoreOptions::tls`]).
//! - `sqlite`: locks in a database file, for the processes of one machine. SQLite is compiled in.
//! - `metrics`: counts and times for the program's recorder of the crate `metrics` (`docs/operating.md` names them).
//! - `raw`: `Client::with_zhandle`, and the bindings of the C client as `zookeeper_sys`. It ties a program to the
//!   version of those bindings.
//! - `serde`: `Serialize` and `Deserialize` for reported values, such as [`Contender`], [`GuardState`],
//!   [`Stat`](zookeeper::Stat) and [`Znode`](zookeeper::Znode).
//! - `capi` builds the C library, and changes nothing in the Rust API. The command is the package `zklock-cli`.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "capi")]
#[allow(unsafe_code, reason = "C programs call it")]
mod capi;
// Handles that are adopted exist for C programs only.
#[cfg_attr(not(feature = "capi"), allow(dead_code))]
mod client;
mod error;
#[cfg(any(doc, doctest))]
pub mod guide;
#[cfg(feature = "_leases")]
mod leased;
mod local;
mod lock;
mod logging;
mod measures;
mod panics;
mod path;
mod process;
#[cfg_attr(not(feature = "capi"), allow(dead_code))]
#[allow(unsafe_code, reason = "it calls the C client")]
mod raw;
pub mod recipes;
#[cfg(feature = "redis")]
mod redis;
mod retry;
mod runtime;
mod sasl;
mod scarcity;
mod secret;
mod session_key;
mod spans;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod sql;
mod stores;
mod sync;
mod text;
mod threads;
mod tls;
mod znode;
pub mod zookeeper;

pub use client::{Client, ClientOptions};
pub use error::{Code, Error, Result};
pub use local::LocalStore;
pub use lock::{
    Access, Contender, Election, Guard, GuardState, GuardStates, HeldSince, Holders, Interop,
    KeyedLocks, Leadership, LocalHandoff, Lock, LockError, LostReason, LostSignal, MultiLock,
    Owner, ReadWriteLock, ReentrantLock, ReleaseRequests, Semaphore, Strategy, WheneverHeld,
    WhileHeld, WhileHeldError,
};
pub use runtime::{Pending, Timeout, Updates};
pub use stores::{Capabilities, Store, StoreOptions, connect};
pub use tls::Tls;
#[cfg(feature = "raw")]
#[cfg_attr(docsrs, doc(cfg(feature = "raw")))]
pub use zookeeper_sys;

/// The version of the C client that this library was built against, such as `3.8.0`.
pub const C_CLIENT_VERSION: &str = env!("ZKLOCK_C_CLIENT_VERSION");

/// The Rust blocks of the documents are doctests. (The tutorial's store needs SQLite.)
#[cfg(all(doctest, feature = "sqlite"))]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../docs/coming-from.md")]
#[doc = include_str!("../docs/security.md")]
#[doc = include_str!("../docs/stores.md")]
#[doc = include_str!("../docs/tutorial.md")]
struct Documents;
