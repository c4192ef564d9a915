//! A client's options after they were checked.

use std::time::Duration;

use crate::error::{Code, Error};
use crate::raw::Credentials;
use crate::sasl::Sasl;
use crate::session_key::SessionKey;
use crate::tls::Tls;

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
    pub(super) announces_releases: bool,
    /// Whether a lock may skip the listing when the client already knows that it holds.
    pub(super) takes_shortcuts: bool,
    pub(super) tls: Option<Tls>,
    pub(super) sasl: Option<Sasl>,
}

impl Settings {
    /// Why servers end a session by which nobody was authenticated.
    pub(super) fn auth_failed(&self) -> Error {
        let Some(sasl) = &self.sasl else {
            return Error::new("connect", "", Code::AUTH_FAILED);
        };
        let user = sasl.user.as_deref().map_or_else(String::new, |user| format!(" user {user}"));
        let detail = format!(
            "the servers refuse{user} by {}: is the password right, and do they know such users?",
            sasl.mechanism
        );
        Error::with_detail("connect", "", Code::AUTH_FAILED, detail)
    }

    /// The prefix that the servers see before each path.
    pub(super) fn chroot(&self) -> &str {
        self.hosts.find('/').map_or("", |at| &self.hosts[at..])
    }
}
