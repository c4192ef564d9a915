//! The states of a session, as they change.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use event_listener::EventListener;
use futures_lite::stream;

use super::{Client, ClientInner, SessionState};
use crate::process::Process;
use crate::runtime::{Updates, wake};

/// The states of a session as they change: see [`Client::states`].
pub type SessionStates = Updates<SessionState>;

impl Client {
    /// The session's states as they change, the present one first. States that come and go between two looks may be
    /// left out, except `Lost`, which is always reported. It ends after `Closed` and does not keep the client open.
    pub fn states(&self) -> SessionStates {
        let inner = Arc::clone(self.inner());
        let (_, losses) = inner.look();
        let mut states = States { inner, reported: None, losses, listener: None };
        let stream = stream::poll_fn(move |cx| states.poll(cx));
        Updates::new(Process::this(), SessionState::Closed, stream)
    }
}

struct States {
    inner: Arc<ClientInner>,
    reported: Option<SessionState>,
    losses: u64,
    listener: Option<EventListener>,
}

impl States {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<SessionState>> {
        loop {
            if self.reported == Some(SessionState::Closed) {
                return Poll::Ready(None);
            }
            // Listen before looking, or a change in between is missed.
            let mut listener = self.listener.take().unwrap_or_else(|| self.inner.listen());
            let (state, losses) = self.inner.look();
            // A loss by the clock alone may never be made official: the client may close first.
            if losses > self.losses {
                self.losses = losses;
                self.reported = Some(SessionState::Lost);
                return Poll::Ready(self.reported);
            }
            if self.reported != Some(state) {
                self.reported = Some(state);
                return Poll::Ready(self.reported);
            }
            if pin!(wake::DeferredWake(&mut listener)).poll(cx).is_pending() {
                self.listener = Some(listener);
                return Poll::Pending;
            }
        }
    }
}
