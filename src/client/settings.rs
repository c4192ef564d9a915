//! What a client works by, once its options have been checked.

use std::time::Duration;

use crate::raw::Credentials;
use crate::session_key::SessionKey;

#[derive(Clone)]
pub(super) struct Settings {
    /// In the C client's form; empty until `connect`.
    pub(super) hosts: String,
    pub(super) session_timeout: Duration,
    /// The servers', if the program knows it.
    pub(super) tick_time: Option<Duration>,
    pub(super) operation_timeout: Duration,
    pub(super) max_request: usize,
    pub(super) session: Option<SessionKey>,
    pub(super) reopen: bool,
    pub(super) credentials: Vec<Credentials>,
}

impl Settings {
    /// What the servers see before each path.
    pub(super) fn chroot(&self) -> &str {
        self.hosts.find('/').map_or("", |at| &self.hosts[at..])
    }
}
