//! The state of a client's session, and how it follows from the state of its handle.

use std::sync::Arc;

use super::settings::Settings;
use super::state::SessionState;
use super::{Link, TrustPeriod};
use crate::error::{Code, Error, Result};
use crate::process::inherited;
use crate::raw::HandleState;
use crate::runtime::BootInstant;

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
    pub(super) fn new() -> Status {
        let state = SessionState::Connecting;
        Status { state, losses: 0, link: None, trust: None, failure: None, over: None }
    }

    /// That of a client in a child of its process.
    pub(super) fn inherited() -> Status {
        Status {
            state: SessionState::Closed,
            failure: Some(inherited("connect", "")),
            over: Some(Ok(())),
            ..Status::new()
        }
    }

    pub(super) fn has(&self, link: &Arc<Link>) -> bool {
        self.link.as_ref().is_some_and(|present| Arc::ptr_eq(present, link))
    }

    /// Whether the present link has been connected.
    pub(super) fn was_connected(&self) -> bool {
        self.trust.is_some()
    }

    fn is_trust_over(&self, now: BootInstant) -> bool {
        self.trust.as_ref().is_some_and(|trust| !trust.is_trusted_at(now))
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

    /// Follows the state of the present link's handle, as seen at `now`.
    pub(super) fn follow(&mut self, link: &Arc<Link>, options: &Settings, now: BootInstant) {
        match link.handle_state() {
            Some(HandleState::CONNECTED) => self.follow_connection(link, options, now),
            Some(HandleState::EXPIRED) => self.lose(),
            // It goes on without an identity of its own.
            Some(HandleState::AUTH_FAILED) if link.identity.is_some() => {
                if self.was_connected() {
                    self.lose();
                }
            }
            Some(HandleState::AUTH_FAILED) => {
                self.lose();
                self.fail(options.auth_failed());
            }
            Some(HandleState::GONE) => {
                self.lose();
                let detail = "the program has closed the handle, or let go of it";
                self.fail(Error::with_detail("connect", "", Code::INVALID_STATE, detail));
            }
            state => {
                link.connection.lock().is_absent(state, now);
                if self.is_trust_over(now) {
                    self.lose();
                } else if self.state == SessionState::Connected {
                    self.state = SessionState::Suspended;
                }
            }
        }
    }

    /// A connection counts once a server has answered on it.
    fn follow_connection(&mut self, link: &Arc<Link>, options: &Settings, now: BootInstant) {
        let (Some(session), Some(timeout)) = (link.session(), link.session_timeout()) else {
            return;
        };
        link.lease.set_terms(timeout, options.tick_time);
        let is_usable = link.connection.lock().is_usable(&link.lease, now);
        if self.is_trust_over(now) {
            self.lose();
        }
        if !is_usable {
            return;
        }
        if self.trust.as_ref().is_none_or(|trust| !trust.is_trusted_at(now)) {
            let lease = Arc::clone(&link.lease);
            self.trust = Some(Arc::new(TrustPeriod::begin(session.id(), lease)));
        }
        self.state = SessionState::Connected;
    }
}
