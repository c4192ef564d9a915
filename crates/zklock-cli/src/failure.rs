//! Why a command could not do what it was asked to, and the exit status that says so.

use std::fmt;

use zklock::{Code, Error, LockError};

/// What `zklock run` exits with where zklock itself has failed, as `env` and `timeout` do.
pub const FAILED: u8 = 125;

#[derive(Debug)]
pub struct Failure {
    message: String,
}

impl Failure {
    pub fn new(message: impl Into<String>) -> Failure {
        Failure { message: message.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::new(with_remedy(error.to_string(), error.code()))
    }
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Failure {
        Failure::new(with_remedy(error.to_string(), error.code()))
    }
}

/// What the library leaves to those who know what the program was started with.
fn with_remedy(message: String, code: Code) -> String {
    match code {
        Code::CONNECTION_LOSS => {
            format!("{message} (is a server of --hosts up? `zklock doctor` says what each answers)")
        }
        // For a failed connect, show only what is wrong with the servers.
        Code::OPERATION_TIMEOUT => match message.split_once("no server took the session in time: ")
        {
            Some((_, why)) => why.to_owned(),
            None => message,
        },
        _ => message,
    }
}
