//! Handles that the program owns: whether they can be used, and how the client lets go of them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

#[cfg(feature = "capi")]
use super::link::LinkOwner as _;
use super::{Client, ClientInner, Link};
use crate::error::Code;
#[cfg(feature = "capi")]
use crate::error::Error;
use crate::raw::{HandleState, inside_callback};

impl Link {
    /// Whether the program owns the handle.
    pub(crate) fn is_adopted(&self) -> bool {
        self.handle.is_adopted()
    }

    /// Sets a watch that makes an adopted handle report the events of its session. Other handles need none.
    pub(super) fn watch_session_events(&self) {
        if self.is_adopted() && !self.session_watched.swap(true, Ordering::AcqRel) {
            let session_watched = Arc::clone(&self.session_watched);
            let unwatched = move || session_watched.store(false, Ordering::Release);
            self.handle.watch_session_events(Box::new(unwatched));
        }
    }

    /// Lets go of the handle at once: on return nothing of ours is inside it.
    pub(super) fn let_go(&self) {
        self.handle.close_for(Some(HandleState::GONE));
    }
}

impl ClientInner {
    /// Lets go of an adopted handle at once, also of one that is being given back: on return nothing of ours is inside
    /// it, and the guards are lost. All claims stay until the session ends.
    #[cfg(feature = "capi")]
    pub(crate) fn detach(&self) {
        if let Some(link) = self.status().link {
            link.let_go();
            self.observe(&link);
        }
        self.request_close();
    }
}

impl Client {
    /// Whether the program has closed the handle below, or we have let go of it.
    pub(crate) fn is_let_go(&self) -> bool {
        let status = self.inner().status();
        status.link.and_then(|link| link.handle_state()) == Some(HandleState::GONE)
            || status.failure.is_some_and(|failure| failure.code() == Code::INVALID_STATE)
    }

    /// Whether this thread may wait for replies: not if it is the thread that delivers them.
    pub(crate) fn can_be_waited_for(&self) -> bool {
        let link = self.inner().status().link;
        link.map_or_else(|| !inside_callback(), |link| link.handle.can_be_waited_for())
    }

    /// Whether the handle below can be used now.
    pub(crate) fn is_attached(&self) -> bool {
        let link = self.inner().status().link;
        let is_final = |link: Arc<Link>| link.handle_state().is_none_or(HandleState::is_final);
        self.while_open(|_| ()).is_some() && !link.is_none_or(is_final)
    }

    /// The reason if the client can't be used any more. It includes the present state of an adopted handle, which the driver
    /// may not have seen yet.
    #[cfg(feature = "capi")]
    pub(crate) fn failure(&self) -> Option<Error> {
        let status = self.inner().status();
        let state = status.link.and_then(|link| link.handle_state());
        let code = state.and_then(|state| match state {
            HandleState::EXPIRED => Some(Code::SESSION_EXPIRED),
            HandleState::AUTH_FAILED => Some(Code::AUTH_FAILED),
            HandleState::GONE => Some(Code::INVALID_STATE),
            _ => None,
        });
        status.failure.or_else(|| code.map(|code| Error::new("connect", "", code)))
    }
}
