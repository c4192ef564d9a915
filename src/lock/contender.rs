//! Holders and waiters of a lock.

use std::rc::Rc;
use std::time::SystemTime;

use super::caller::Caller;

/// A text about an owner that is longer than that is cut: it is for people.
pub(crate) const MAX_TEXT: usize = 256;

/// A client that holds a lock or waits for it.
///
/// Any client may have written this data. Host, thread and label are single lines of up to 256 characters that are safe
/// to show on a terminal: spaces replace unprintable characters and those that change the writing direction. The path
/// is as in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Contender {
    /// The claim in its store: in ZooKeeper the path of its znode.
    pub path: String,
    /// The session of the claim; 0 if the store has no sessions.
    pub session: i64,
    /// Its fencing token once it holds: in ZooKeeper the zxid of the transaction that created the claim (its czxid).
    pub token: i64,
    /// When the claim was made, by the store's clock. A holder that had to wait has held for less.
    pub since: SystemTime,
    /// When it began to hold the lock; `None` for a waiter.
    pub held_since: Option<HeldSince>,
    /// The host name; empty if the claim is another library's.
    pub host: String,
    /// The process id; 0 if the claim is another library's.
    pub pid: u32,
    /// The name of the thread, or else its id (the kernel's, on Linux); empty if the claim is another library's.
    pub thread: String,
    /// The owner's label (see [`Lock::label`](crate::Lock::label)). If the claim is another library's, the beginning of
    /// its data.
    pub label: String,
}

/// When a hold began, as far as the servers' clocks show.
///
/// If a lock is one znode, the hold begins with its creation. In a queue it begins with the deletion of the previous
/// claim, and the servers keep no time for that. The hold began no earlier than the claim. It began no later than the
/// creation of the last claim in the queue, if nothing was deleted since. If no claim has followed the holder's, the
/// time is exact to the millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct HeldSince {
    /// The hold did not begin before this.
    pub earliest: SystemTime,
    /// The hold had begun by then. By this machine's clock, if the servers' clocks show nothing.
    pub latest: SystemTime,
}

impl Contender {
    pub(crate) fn new(path: impl Into<String>, token: i64) -> Contender {
        Contender {
            path: path.into(),
            token,
            session: 0,
            since: SystemTime::UNIX_EPOCH,
            held_since: None,
            host: String::new(),
            pid: 0,
            thread: String::new(),
            label: String::new(),
        }
    }
}

impl std::fmt::Display for Contender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.as_str() {
            "" => write!(f, "session {:#x}", self.session)?,
            host => write!(f, "{host} pid {} thread {}", self.pid, self.thread)?,
        }
        if !self.label.is_empty() {
            write!(f, " ({})", self.label)?;
        }
        Ok(())
    }
}

/// Gives the host and the process, and the thread that this one acts for.
pub(crate) fn with_owner<T>(body: impl FnOnce(&str, u32, &str) -> T) -> T {
    thread_local! {
        static HOST: Rc<str> = rustix::system::uname().nodename().to_string_lossy().into();
    }
    // A thread that is ending has none any more.
    let host = HOST.try_with(Rc::clone).unwrap_or_default();
    body(&host, std::process::id(), &Caller::present().name())
}
