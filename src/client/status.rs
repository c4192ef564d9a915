//! How a client's session is, as all its clones see it.

use std::sync::Arc;

use super::state::SessionState;
use super::{Link, TrustPeriod};
use crate::error::{Error, Result};
use crate::process::inherited;

#[derive(Clone)]
pub(super) struct Status {
    pub(super) state: SessionState,
    /// How often the session was lost.
    pub(super) losses: u64,
    pub(super) link: Option<Arc<Link>>,
    pub(super) trust: Option<Arc<TrustPeriod>>,
    /// Why the client can't go on, once `state` is `Closed`.
    pub(super) failure: Option<Error>,
    /// Once its handle is closed: whether its session has ended, too.
    pub(super) over: Option<Result<()>>,
}

impl Status {
    /// That of a client in a child of its process.
    pub(super) fn inherited() -> Status {
        Status {
            state: SessionState::Closed,
            losses: 0,
            link: None,
            trust: None,
            failure: Some(inherited("connect", "")),
            over: Some(Ok(())),
        }
    }

    /// Whether the present link has been connected.
    pub(super) fn was_connected(&self) -> bool {
        self.trust.is_some()
    }

    pub(super) fn lose(&mut self) {
        if let Some(trust) = &self.trust {
            trust.declare_lost();
        }
        if !matches!(self.state, SessionState::Lost | SessionState::Closed) {
            self.state = SessionState::Lost;
            self.losses += 1;
        }
    }

    pub(super) fn fail(&mut self, failure: Error) {
        if let Some(trust) = &self.trust {
            trust.declare_lost();
        }
        self.state = SessionState::Closed;
        self.failure.get_or_insert(failure);
    }
}
