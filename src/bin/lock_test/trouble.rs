//! Why the test could not be made, as opposed to what it found.

use std::fmt;

/// The test could not be made, or not to its end.
#[derive(Debug)]
pub enum Trouble {
    /// The arguments can't be followed.
    Usage(String),
    /// A server did not start, a client did not connect, an acquire failed.
    Cannot(String),
    /// Ctrl-C came before there was anything to tell.
    Interrupted,
}

impl Trouble {
    /// What was tried, and the library's message. Bad arguments that only the library recognises
    /// are still bad arguments.
    pub fn of(what: impl fmt::Display, error: &zklock::Error) -> Trouble {
        let message = format!("{what}: {error}");
        match error.code() {
            zklock::Code::BAD_ARGUMENTS => Trouble::Usage(message),
            _ => Trouble::Cannot(message),
        }
    }

    pub fn message(&self) -> Option<&str> {
        match self {
            Trouble::Usage(message) | Trouble::Cannot(message) => Some(message),
            Trouble::Interrupted => None,
        }
    }

    pub fn exit_code(&self) -> u8 {
        match self {
            Trouble::Usage(_) => 2,
            Trouble::Cannot(_) => 3,
            Trouble::Interrupted => super::INTERRUPTED,
        }
    }
}
