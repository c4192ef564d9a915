//! Identities that are added to a client while it works.

use std::sync::Arc;
use std::time::Duration;

use super::ClientInner;
use super::state::SessionState;
use crate::error::{Code, Error};
use crate::process::inherited;
use crate::raw::Credentials;
use crate::runtime::{Pending, Timer, within};

/// How long to wait after a connection turned out to be gone.
const ADD_AUTH_AGAIN: Duration = Duration::from_millis(10);

impl ClientInner {
    /// Adds an identity to this session, as soon as there is one, and to later ones.
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
                    // The connection, or the session, was lost before the C client took it: again on the
                    // next one.
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
