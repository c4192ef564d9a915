//! Who holds a lock or waits for it.

use std::time::SystemTime;

use super::caller::Caller;

/// A text about an owner that is longer than that is cut: it is for people.
pub(crate) const MAX_TEXT: usize = 256;

/// Somebody who holds a lock or waits for it.
///
/// Anyone may have written what a store says of it. Host, thread and label are lines of up to 256
/// characters that can be shown on a terminal: others than can be printed are spaces, those among them
/// that turn the direction of writing. The path is as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Contender {
    /// What stands for the claim in its store: in ZooKeeper a znode.
    pub path: String,
    /// The session that the claim lives on; 0 where the store has none.
    pub session: i64,
    /// Its fencing token, once it holds: in ZooKeeper the transaction that made the claim (its czxid).
    pub token: i64,
    /// When the claim was made, by the store's clock. A holder that had to wait holds for less.
    pub since: SystemTime,
    /// When it has come to hold the lock; `None` for those who wait.
    pub held_since: Option<HeldSince>,
    /// Host name; empty where the claim is another library's.
    pub host: String,
    /// Process id; 0 where the claim is another library's.
    pub pid: u32,
    /// The name of the thread, or its id (the kernel's, on Linux); empty where the claim is another
    /// library's.
    pub thread: String,
    /// What the owner calls itself (see [`Lock::label`](crate::Lock::label)); of another library's
    /// claim, the beginning of its data.
    pub label: String,
}

/// When a hold has begun, as far as the servers' clocks show.
///
/// Where a lock is one znode, that znode's creation is the beginning of the hold. In a queue it is the
/// deletion of the claim before, and servers keep no time for that: only that it was no earlier than
/// the claim itself, and no later than the creation of the last claim in the queue, if nothing was
/// deleted since. A holder that nobody has followed yet is known to the millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct HeldSince {
    /// It has not begun before.
    pub earliest: SystemTime,
    /// It has begun by then; by this machine's clock, where the servers' show nothing.
    pub latest: SystemTime,
}

#[cfg(feature = "capi")]
impl Contender {
    /// The one whose claim that is, as far as it is needed to mean it.
    pub(crate) fn named(path: &str, token: i64) -> Contender {
        Contender {
            path: path.to_owned(),
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
    let host = rustix::system::uname();
    let caller = Caller::present();
    body(&host.nodename().to_string_lossy(), std::process::id(), &caller.name())
}
