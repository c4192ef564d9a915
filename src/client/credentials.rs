//! The identities of a session: those of the program, and its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::identity::OwnIdentity;
use super::state::SessionState;
use super::{ClientInner, Link};
use crate::error::{Code, Error};
use crate::process::inherited;
use crate::raw::{Credentials, Sink};
use crate::runtime::{Pending, Timer, within};

/// The pause after a connection was lost.
const ADD_AUTH_AGAIN: Duration = Duration::from_millis(10);

impl ClientInner {
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
        let own = self.identity.as_ref().map(OwnIdentity::credentials);
        let all = of_program.iter().map(|it| (it, false)).chain(own.map(|it| (it, true)));
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

    /// The id of the session's own identity in the scheme `digest`, if it has one that the servers have accepted.
    pub(crate) fn own_identity(&self) -> Option<&str> {
        self.identity.as_ref()?.id()
    }
}
