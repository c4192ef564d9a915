//! The identities of a session: those of the program, and its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::state::SessionState;
use super::{ClientInner, Link};
use crate::error::{Code, Error, Result};
use crate::logging::log;
use crate::process::inherited;
use crate::raw::{Credentials, Sink};
use crate::runtime::{Pending, Timer, within};
use crate::znode::Acl;

/// The pause after a connection was lost.
const ADD_AUTH_AGAIN: Duration = Duration::from_millis(10);

/// Whether a server that accepts them counts the client as authenticated.
fn is_proof(credentials: &Credentials) -> bool {
    credentials.scheme != "ip"
}

impl ClientInner {
    /// The servers have refused the session's own identity.
    pub(super) fn give_no_own_identities(&self) {
        if !self.identity_refused.swap(true, Ordering::AcqRel) {
            log!(
                INFO,
                "the servers refuse the scheme digest, so each waiter asks whether it holds (see announced_releases)"
            );
        }
    }

    /// Adds an identity to this session once it is connected, and to later sessions.
    pub(super) fn add_auth(self: &Arc<Self>, credentials: Credentials) -> Pending<()> {
        if self.is_inherited() {
            return Pending::ready(Err(inherited("add_auth", "")));
        }
        let deadline = self.operation_deadline();
        self.credentials.lock().push(credentials.clone());
        // Submitted now if possible: it goes ahead of what is submitted after it.
        let status = self.status();
        let mut submitted = status
            .link
            .filter(|_| status.state == SessionState::Connected)
            .map(|link| link.add_auth(&credentials));
        let inner = Arc::clone(self);
        let added = async move {
            loop {
                let pending = match submitted.take() {
                    Some(pending) => pending,
                    None => inner.trusted_session().await?.link.add_auth(&credentials),
                };
                match pending.await {
                    // The connection, or the session, was lost before the C client took it: again on the next one.
                    Err(error)
                        if [Code::INVALID_STATE, Code::SESSION_EXPIRED].contains(&error.code()) =>
                    {
                        inner.wake();
                    }
                    result => return result,
                }
                Timer::after(ADD_AUTH_AGAIN).await;
            }
        };
        let too_late = || {
            let detail = "no connection; it is added to the next one";
            Err(Error::with_detail("add_auth", "", Code::OPERATION_TIMEOUT, detail))
        };
        Pending::run("add_auth", "", within(deadline, added, too_late))
    }
}

impl Link {
    fn add_auth(&self, credentials: &Credentials) -> Pending<()> {
        self.request("add_auth", "", Ok, |handle, terms, sink| {
            handle.add_auth(terms.deadline, credentials, sink);
        })
    }

    /// Adds the session's identities to the C client once. Between two attempts to connect the C client refuses them. It
    /// sends them again on each new connection.
    pub(super) fn send_credentials(self: &Arc<Self>, of_program: Vec<Credentials>) {
        if self.credentials_sent.swap(true, Ordering::AcqRel) {
            return;
        }
        // The C client takes the first reply for that to all of them.
        let own = self.identity.as_ref().map(|own| (own.credentials(), true));
        let all = own.into_iter().chain(of_program.iter().map(|it| (it, false)));
        for (credentials, is_own) in all {
            let link = Arc::downgrade(self);
            let sink: Sink<()> = Box::new(move |reply| {
                let Some(link) = link.upgrade() else { return };
                match (reply, &link.identity) {
                    (Err(Code::INVALID_STATE), _) => {
                        link.credentials_sent.store(false, Ordering::Release);
                    }
                    (Ok(()), Some(identity)) if is_own => identity.accept(),
                    _ => {}
                }
            });
            self.handle.add_auth(None, credentials, sink);
        }
    }

    /// Refuses an ACL for the identities of this session, as a server does, where it has none but its own: whatever it
    /// is for would be out of reach once the session is over.
    pub(super) fn check_acl(&self, op: &'static str, path: &str, acl: &[Acl]) -> Result<()> {
        let is_for_creator = acl.iter().any(|entry| entry.scheme == "auth");
        if !is_for_creator || self.identity.is_none() || self.options.sasl.is_some() {
            return Ok(());
        }
        let owner = self.owner.upgrade();
        if owner.is_none_or(|owner| owner.credentials().iter().any(is_proof)) {
            return Ok(());
        }
        let why =
            "an acl for the creator, but the session has no identity (see ClientOptions::auth)";
        Err(Error::with_detail(op, path, Code::INVALID_ACL, why))
    }

    /// The id of the session's own identity in the scheme `digest`, if it has one that the servers have accepted.
    pub(crate) fn own_identity(&self) -> Option<&str> {
        self.identity.as_ref()?.id()
    }
}
