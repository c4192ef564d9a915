//! Why the test could not be made, as opposed to what it found.

use std::fmt;

/// The exit code where Ctrl-C has ended a run, as shells have it.
pub const INTERRUPTED: u8 = 130;

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
    /// Who met it, and what it was.
    pub fn of(who: impl fmt::Display, trouble: impl Into<Trouble>) -> Trouble {
        let said = |message| format!("{who}: {message}");
        match trouble.into() {
            Trouble::Usage(message) => Trouble::Usage(said(message)),
            Trouble::Cannot(message) => Trouble::Cannot(said(message)),
            Trouble::Interrupted => Trouble::Interrupted,
        }
    }

    /// Bad arguments that only the library recognises are still bad arguments.
    fn with_code(message: String, code: zklock::Code) -> Trouble {
        match code {
            zklock::Code::BAD_ARGUMENTS => Trouble::Usage(message),
            _ => Trouble::Cannot(message),
        }
    }

    /// What it says; nothing of an interruption, which its author knows of.
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
            Trouble::Interrupted => INTERRUPTED,
        }
    }
}

impl From<zklock::Error> for Trouble {
    fn from(error: zklock::Error) -> Trouble {
        Trouble::with_code(error.to_string(), error.code())
    }
}

impl From<zklock::LockError> for Trouble {
    fn from(error: zklock::LockError) -> Trouble {
        Trouble::with_code(error.to_string(), error.code())
    }
}
