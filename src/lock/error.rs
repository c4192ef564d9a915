//! Why an operation on a lock failed: in words of locks, whatever store keeps them.

use std::borrow::Cow;
use std::fmt;

use super::contender::Contender;
use super::loss::LostReason;
use crate::error::{Code, Error, recognisable};

/// Why an operation on a lock failed.
///
/// It prints as one lowercase line, which names the path, and says what would help where that is not plain:
/// `acquire /locks/a: not acquired in time: behind web-3 pid 71 thread main (nightly run)`. The line tells
/// what the [`source`](std::error::Error::source) says, too.
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
        /// Who was ahead, as last seen: in a queue the claim before ours, otherwise the holder. `None` where
        /// no server has told yet.
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
    /// The lock is not held any more, so what needs it was not done.
    #[error("guard of {}: not held any more, so nothing was done: {}", line(path), reason)]
    NotHeld {
        /// The lock's path.
        path: String,
        /// Why it is not any more.
        reason: LostReason,
    },
    /// There can be no such lock at that path, however long one waits.
    #[error("lock {}: {why}", line(path))]
    Unusable {
        /// The lock's path.
        path: String,
        /// What is wrong with the path, with what is found there or with how the lock was made, and what
        /// would help.
        why: Cow<'static, str>,
        /// The same as a code.
        code: Code,
    },
    /// A permission is missing.
    #[error("lock {}: {why}", line(path))]
    NotPermitted {
        /// The lock's path.
        path: String,
        /// Which permission is missing on what.
        why: String,
    },
    /// The client is closed, or will never have a session again.
    #[error("lock {}: the client is closed: {source}", line(path))]
    Closed {
        /// The lock's path.
        path: String,
        /// Why it is.
        source: Error,
    },
    /// It is not known whether it was done.
    #[error("guard of {}: {}", line(path), Unconfirmed(source.as_ref()))]
    OutcomeUnknown {
        /// The lock's path.
        path: String,
        /// Why it will never be known. `None` of a release that goes on in the background.
        source: Option<Error>,
    },
    /// The store where the lock is kept has failed or refused a request. Nothing is left behind.
    #[error("lock {}: {source}", line(path))]
    Store {
        /// The lock's path.
        path: String,
        /// What the store has answered.
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

    /// What a [`Pending`](crate::Pending) ends with by itself, of an operation on a lock: the caller waits no
    /// longer, or is in another process.
    pub(crate) fn of_pending(error: Error) -> LockError {
        let path = error.path().to_owned();
        match (error.op(), error.code()) {
            // It is given up, and its claim deleted.
            ("acquire" | "upgrade", Code::OPERATION_TIMEOUT) => LockError::timed_out(&path, None),
            // It goes on.
            ("release", Code::OPERATION_TIMEOUT) => LockError::outcome_unknown(&path, None),
            ("multi" | "hand over" | "revoke" | "downgrade", Code::OPERATION_TIMEOUT) => {
                LockError::outcome_unknown(&path, error)
            }
            (_, Code::CLOSING) => LockError::closed(&path, error),
            _ => LockError::store(&path, error),
        }
    }

    /// The path it is about (its first 256 characters): the lock's, or [`Guard::path`](crate::Guard::path)
    /// where it was held.
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

    /// Whether it is not known if it was done. Never so of an acquire: one that fails leaves nothing behind.
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self, LockError::OutcomeUnknown { .. })
    }

    /// Whether the lock was lost, so that others may have held it before its holder let go.
    pub fn is_lost(&self) -> bool {
        matches!(self, LockError::Lost { .. } | LockError::NotHeld { .. })
    }

    /// ZooKeeper's code for it, which is what a C program gets: `OPERATION_TIMEOUT` of a timeout;
    /// `OUTCOME_UNKNOWN` where it is not known whether it was done; `SESSION_EXPIRED`, or `NO_NODE` where somebody has deleted it, of a lock that was
    /// lost; `NO_AUTH` where a permission is missing; otherwise the code of what is wrong with the path, of the
    /// client or of the store.
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

/// Who is ahead, and what is wrong with the store.
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
