//! Why an operation on a lock failed: in words of locks, whatever store keeps them.

use std::borrow::Cow;
use std::fmt;

use super::contender::Contender;
use super::loss::LostReason;
use crate::error::{Code, Error, recognisable};

/// Why an operation on a lock failed.
///
/// It prints as one lowercase line with the path, the reason and, where it helps, the remedy: `acquire /locks/a: not
/// acquired in time: behind web-3 pid 71 thread main (nightly run)`. The line includes the text of the
/// [`source`](std::error::Error::source).
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let lock = zklock::Client::connect("127.0.0.1:2181").wait()?.lock("/locks/invoices");
/// use zklock::LockError;
///
/// match lock.acquire().within(std::time::Duration::from_secs(5)).wait() {
///     Ok(guard) => println!("mine, with token {}", guard.fencing_token()),
///     Err(LockError::TimedOut { ahead: Some(who), .. }) => println!("{} has it", who.host),
///     Err(error) if error.is_timeout() => println!("no server answers"),
///     Err(error) => return Err(error.into()),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// The lock was not acquired in time. Nothing is left behind.
    #[error("acquire {}: not acquired in time: {}", line(path), Delay(ahead.as_deref(), why.as_deref()))]
    TimedOut {
        /// The lock's path.
        path: String,
        /// The contender ahead, as last seen: in a queue the claim before ours, otherwise the holder. `None` if no
        /// server has answered yet.
        ahead: Option<Box<Contender>>,
        /// Why the store lets nobody acquire, as last seen: the server cannot be reached, for example. `None` if no
        /// reason is known.
        why: Option<String>,
    },
    /// The lock was lost before its release was confirmed: others may have held it meanwhile.
    #[error("release {}: lost before its release was confirmed: {}", line(path), reason)]
    Lost {
        /// The lock's path.
        path: String,
        /// Why it was lost.
        reason: LostReason,
    },
    /// The lock is no longer held, so nothing was done.
    #[error("guard of {}: not held any more, so nothing was done: {}", line(path), reason)]
    NotHeld {
        /// The lock's path.
        path: String,
        /// Why it is no longer held.
        reason: LostReason,
    },
    /// No such lock can exist at that path. A retry does not help.
    #[error("lock {}: {why}", line(path))]
    Unusable {
        /// The lock's path.
        path: String,
        /// The fault in the path, in the data there or in the lock's options, and the remedy.
        why: Cow<'static, str>,
        /// The same as a code.
        code: Code,
    },
    /// A permission is missing.
    #[error("lock {}: {why}", line(path))]
    NotPermitted {
        /// The lock's path.
        path: String,
        /// Which permission is missing, and where.
        why: String,
    },
    /// The client is closed, or will never have a session again.
    #[error("lock {}: the client is closed: {source}", line(path))]
    Closed {
        /// The lock's path.
        path: String,
        /// Why it is closed.
        source: Error,
    },
    /// The outcome is unknown: the operation may have been done or not.
    #[error("guard of {}: {}", line(path), Unconfirmed(source.as_ref()))]
    OutcomeUnknown {
        /// The lock's path.
        path: String,
        /// Why it stays unknown. `None` for a release that continues in the background.
        source: Option<Error>,
    },
    /// The store failed or refused a request. Nothing is left behind.
    #[error("lock {}: {source}", line(path))]
    Store {
        /// The lock's path.
        path: String,
        /// The store's answer.
        source: Error,
    },
}

impl LockError {
    pub(crate) fn timed_out(path: &str, ahead: Option<Contender>) -> LockError {
        LockError::TimedOut { path: recognisable(path), ahead: ahead.map(Box::new), why: None }
    }

    pub(crate) fn lost(path: &str, reason: LostReason) -> LockError {
        LockError::Lost { path: recognisable(path), reason }
    }

    pub(crate) fn not_held(path: &str, reason: LostReason) -> LockError {
        LockError::NotHeld { path: recognisable(path), reason }
    }

    pub(crate) fn unusable(path: &str, why: impl Into<Cow<'static, str>>, code: Code) -> LockError {
        LockError::Unusable { path: recognisable(path), why: why.into(), code }
    }

    pub(crate) fn not_permitted(path: &str, why: String) -> LockError {
        LockError::NotPermitted { path: recognisable(path), why }
    }

    pub(crate) fn closed(path: &str, source: Error) -> LockError {
        LockError::Closed { path: recognisable(path), source }
    }

    pub(crate) fn outcome_unknown(path: &str, source: impl Into<Option<Error>>) -> LockError {
        LockError::OutcomeUnknown { path: recognisable(path), source: source.into() }
    }

    pub(crate) fn store(path: &str, source: Error) -> LockError {
        LockError::Store { path: recognisable(path), source }
    }

    /// Of what was begun: whether it is done later is not known.
    pub(crate) fn after_a_write(self) -> LockError {
        match self {
            LockError::Closed { path, source } | LockError::Store { path, source } => {
                LockError::OutcomeUnknown { path, source: Some(source) }
            }
            error => error,
        }
    }

    /// The path in question, at most 256 characters of it: the lock's path, or [`Guard::path`](crate::Guard::path) if
    /// it was held.
    pub fn path(&self) -> &str {
        match self {
            LockError::TimedOut { path, .. }
            | LockError::Lost { path, .. }
            | LockError::NotHeld { path, .. }
            | LockError::Unusable { path, .. }
            | LockError::NotPermitted { path, .. }
            | LockError::Closed { path, .. }
            | LockError::OutcomeUnknown { path, .. }
            | LockError::Store { path, .. } => path,
        }
    }

    /// Whether the operation only timed out. It acquired, changed and left nothing, and a retry may succeed.
    pub fn is_timeout(&self) -> bool {
        match self {
            LockError::TimedOut { .. } => true,
            LockError::Store { source, .. } => source.is_timeout(),
            _ => false,
        }
    }

    /// Whether the outcome is unknown. Never true of an acquire: a failed acquire leaves nothing behind.
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self, LockError::OutcomeUnknown { .. })
    }

    /// Whether the lock was lost, so that others may have held it before this holder let go.
    pub fn is_lost(&self) -> bool {
        matches!(self, LockError::Lost { .. } | LockError::NotHeld { .. })
    }

    /// The code of ZooKeeper for it, as C programs get it:
    /// - `OPERATION_TIMEOUT`: a timeout
    /// - `OUTCOME_UNKNOWN`: the outcome is unknown
    /// - `NO_NODE`: the lock was lost because another client deleted its znode
    /// - `SESSION_EXPIRED`: the lock was lost for another reason
    /// - `NO_AUTH`: a permission is missing
    /// - otherwise the code of the path's error, the client or the store
    pub fn code(&self) -> Code {
        match self {
            LockError::TimedOut { .. } => Code::OPERATION_TIMEOUT,
            LockError::Lost { reason, .. } | LockError::NotHeld { reason, .. } => match reason {
                LostReason::Deleted => Code::NO_NODE,
                LostReason::Session | LostReason::Broken | LostReason::Released => {
                    Code::SESSION_EXPIRED
                }
            },
            LockError::Unusable { code, .. } => *code,
            LockError::NotPermitted { .. } => Code::NO_AUTH,
            LockError::OutcomeUnknown { .. } => Code::OUTCOME_UNKNOWN,
            LockError::Closed { source, .. } | LockError::Store { source, .. } => source.code(),
        }
    }
}

/// A path in the line that an error prints: a hostile one must not be able to forge a second line.
fn line(path: &str) -> impl fmt::Display + '_ {
    path.escape_debug()
}

/// The contender ahead, and what is wrong with the store.
struct Delay<'a>(Option<&'a Contender>, Option<&'a str>);

impl fmt::Display for Delay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.1) {
            (Some(who), None) => write!(f, "behind {who}"),
            (Some(who), Some(why)) => write!(f, "behind {who}; {why}"),
            (None, Some(why)) => f.write_str(why),
            (None, None) => f.write_str("no word from the servers yet of who is ahead"),
        }
    }
}

struct Unconfirmed<'a>(Option<&'a Error>);

impl fmt::Display for Unconfirmed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(why) => write!(f, "it is not known whether it was done: {why}"),
            None => {
                f.write_str("no server has confirmed the release yet; it goes on in the background")
            }
        }
    }
}
