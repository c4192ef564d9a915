//! The states of a session, as a stream.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use event_listener::EventListener;

use super::{ClientInner, SessionState};
use crate::runtime::{block_on, block_on_until, wake};

/// The session's states, from the one at the time of the call on.
///
/// It gives the latest state: a state that came and went between two looks may be left out, except
/// `Lost`, which is always reported. It ends after `Closed`.
///
/// It does not keep the client open.
pub struct SessionStates {
    inner: Arc<ClientInner>,
    reported: Option<SessionState>,
    losses: u64,
    listener: Option<EventListener>,
}

impl SessionStates {
    pub(super) fn new(inner: Arc<ClientInner>) -> SessionStates {
        let (_, losses) = inner.look();
        SessionStates { inner, reported: None, losses, listener: None }
    }

    /// The next state that has not been reported yet; `None` after `Closed`. The first call gives the
    /// present state at once. Cancel-safe.
    pub async fn next(&mut self) -> Option<SessionState> {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    /// Blocks this thread until there is a state that has not been reported yet.
    pub fn wait(&mut self) -> Option<SessionState> {
        block_on(self.next())
    }

    /// As [`wait`](SessionStates::wait), but no longer than `timeout`: `None` when it has passed.
    #[allow(clippy::option_option)]
    pub fn wait_timeout(&mut self, timeout: Duration) -> Option<Option<SessionState>> {
        block_on_until(Instant::now().checked_add(timeout), self.next())
    }

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

impl futures_core::Stream for SessionStates {
    type Item = SessionState;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<SessionState>> {
        self.poll(cx)
    }
}

impl std::fmt::Debug for SessionStates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionStates").field("reported", &self.reported).finish_non_exhaustive()
    }
}
