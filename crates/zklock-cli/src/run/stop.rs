//! Why a run ends before its command has.

use std::io;

use zklock::LockError;

use crate::failure::Failure;

pub enum Stop {
    /// By a signal, before there was a command to hand it on to.
    Signal(i32),
    /// Somebody else has the lock.
    Conflict(String),
    /// There is no supervisor for the next command.
    Anew,
    Failure(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failure(failure)
    }
}

impl From<zklock::Error> for Stop {
    fn from(error: zklock::Error) -> Stop {
        Stop::Failure(error.into())
    }
}

impl From<LockError> for Stop {
    fn from(error: LockError) -> Stop {
        Stop::Failure(error.into())
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Failure(Failure::new(error.to_string()))
    }
}
