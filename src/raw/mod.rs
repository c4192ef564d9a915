//! Floor 1: the only unsafe code toward the C client.
//!
//! # How the C client works, and what this floor makes of it
//!
//! A `zhandle_t` owns two threads. The *IO thread* talks to the server; the *completion thread*
//! runs, from one queue and in the server's order, the completions of asynchronous requests,
//! the watchers and the session events. A completion runs at most once: closing a handle can
//! lose it. A watcher may run any number of times.
//!
//! Three rules follow, and everything above can rely on them:
//!
//! 1. **No pointer of ours ever enters the C client as a context.** Contexts are numbers that are
//!    looked up in a table ([`slots`] for completions, [`watcher`] for events). At worst, a callback
//!    that comes late or twice finds nothing.
//! 2. **Every accepted request is answered exactly once**: by its completion, by its deadline
//!    ([`Handle::expire`]), or with `CLOSING` when the handle is closed or let go of.
//! 3. **Callbacks decode, hand over and return.** The functions that they call must not block. A panic
//!    there is caught and logged.

mod adopted;
mod adoption;
mod callback;
mod callback_thread;
mod contexts;
mod convert;
mod exit;
mod fork;
mod gate;
mod handle;
#[cfg(zklock_loom)]
#[path = "../../tests/inside/interleavings/mod.rs"]
mod interleavings;
mod log;
mod multi;
mod on_the_way;
mod request;
mod reserve;
#[cfg(zklock_sasl)]
mod sasl;
mod secure;
mod slots;
mod watcher;
mod window;
mod zhandle;

#[cfg(zklock_loom)]
use interleavings::c_client as sys;
#[cfg(not(zklock_loom))]
use zookeeper_sys as sys;

pub(crate) use adopted::Adopted;
pub(crate) use callback_thread::inside_callback;
pub(crate) use exit::at_exit;
pub(crate) use fork::watch_for_forks;
#[cfg(test)]
pub(crate) use handle::Requests;
pub(crate) use handle::{Config, Credentials, Handle, HandleState, Sink, Terms, Turn, WatchOn};
pub(crate) use multi::{RawOp, RawOpResult};
#[cfg(zklock_sasl)]
pub(crate) use sasl::check as check_sasl;
pub(crate) use sys::zhandle_t;
pub(crate) use watcher::{Event, EventKind};
pub(crate) use zhandle::Zhandle;
#[cfg(feature = "capi")]
pub(crate) use zhandle::shrink_tables;
