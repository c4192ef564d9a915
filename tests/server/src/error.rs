//! The one error of this crate: it says what was being done, and how to fix what a person can fix.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::wire::{self, Op};

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Why a server, a session or a proxy did not do as it was told.
///
/// Converts into [`io::Error`], so that `?` also works in functions that return `io::Result`. Its `Debug` is the message
/// as well: that is what `unwrap` shows in a failed test.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no Java to run ZooKeeper with.
    #[error(
        "no java found ({tried}): run `apt-get install default-jre-headless`, or set JAVA_HOME"
    )]
    NoJava {
        /// Where was looked.
        tried: String,
    },
    /// There is no ZooKeeper to run.
    #[error(
        "no ZooKeeper found ({tried}): run `apt-get install libzookeeper-java`, or set ZOOKEEPER_HOME to an unpacked release"
    )]
    NoZooKeeper {
        /// Where was looked.
        tried: String,
    },
    /// There is no such database server to run.
    #[error("no {program} found: run `apt-get install {package}`")]
    NoDatabase {
        /// What was to be run.
        program: String,
        /// In which package it is.
        package: &'static str,
    },
    /// A database server was not set up, or its process ended, or never served.
    #[error("start a database server: the end of its log:\n{tail}")]
    Database {
        /// The last lines of that log.
        tail: String,
    },
    /// The server's process ended, or never served.
    #[error("start ZooKeeper: {reason}; the end of its log:\n{tail}")]
    Start {
        /// What went wrong, in one line.
        reason: String,
        /// The server's log, which is removed with the server: a failed first start leaves none.
        log: PathBuf,
        /// The last lines of that log.
        tail: String,
    },
    /// What was asked for cannot be: a mistake in the test itself. Nothing was done.
    #[error("{what}")]
    BadArgument {
        /// What was asked for, and why it cannot be.
        what: String,
    },
    /// The server is not running, so it has no process to signal.
    #[error("the server is stopped: call start_again first")]
    Stopped,
    /// Something did not happen in time.
    #[error("{what}: not within {waited:?}")]
    Timeout {
        /// What was waited for.
        what: String,
        /// How long was waited.
        waited: Duration,
    },
    /// The server answered a request with an error.
    #[error("{op:?} {path}: {}", wire::told(*code))]
    Server {
        /// The request.
        op: Op,
        /// Its path, empty where it has none.
        path: String,
        /// ZooKeeper's code, for instance -101 for "no node".
        code: i32,
    },
    /// The server no longer knows the session: it has expired or was closed, or the password is wrong.
    #[error("session {session_id:#x}: expired, closed or wrong password")]
    SessionExpired {
        /// The session that was asked for.
        session_id: i64,
    },
    /// The operating system refused something.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// The system's error.
        source: io::Error,
    },
}

impl Error {
    /// Names what was being done when the system refused: for `map_err`.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let what = what.into();
        move |source| Error::Io { what, source }
    }

    pub(crate) fn bad_argument(what: impl Into<String>) -> Error {
        Error::BadArgument { what: what.into() }
    }

    /// ZooKeeper's code, when the server answered with one.
    pub fn code(&self) -> Option<i32> {
        match self {
            Error::Server { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether something was waited for in vain.
    pub fn is_timeout(&self) -> bool {
        io_kind(self) == io::ErrorKind::TimedOut
    }

    /// Whether the connection was closed or reset by the other side.
    pub fn is_connection_loss(&self) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        matches!(io_kind(self), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

fn io_kind(error: &Error) -> io::ErrorKind {
    match error {
        Error::NoJava { .. } | Error::NoZooKeeper { .. } | Error::NoDatabase { .. } => {
            io::ErrorKind::NotFound
        }
        Error::BadArgument { .. } => io::ErrorKind::InvalidInput,
        Error::Timeout { .. } => io::ErrorKind::TimedOut,
        Error::Io { source, .. } => source.kind(),
        _ => io::ErrorKind::Other,
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        io::Error::new(io_kind(&error), error)
    }
}
