//! Floor 2: a client that can be trusted with a session. No unsafe code.
//!
//! A [`Client`] owns one session at a time. `session.rs` opens it, watches over it by the local clock, and opens
//! the next one when it has expired; one thread drives the sessions of all clients (`driver.rs`).
//! Requests go straight from the caller's thread to the C client; replies and watch events come
//! back through channels.

mod adoption;
mod changes;
mod closing;
mod connection;
mod credentials;
mod delete_all;
mod delete_both;
mod duty;
mod ensemble;
mod farewell;
mod guaranteed_delete;
pub(crate) mod handles;
mod heartbeat;
mod history;
mod hosts;
mod identity;
mod inner;
mod lease;
mod link;
mod multi;
mod operations;
mod options;
pub(crate) mod packet;
#[cfg(all(test, not(zklock_loom)))]
#[path = "../../tests/inside/properties/paths.rs"]
mod path_properties;
mod probe;
mod probing;
mod registry;
mod replies;
mod requests;
mod secure;
mod session;
mod settings;
mod state;
mod states;
mod status;
mod trust;
mod trusted_session;
mod unconfirmed;
mod watch;
mod zhandle;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

pub use ensemble::Reconfiguration;
pub use multi::{CheckHeld, Op, OpResult};
pub use options::ClientOptions;
pub use replies::{AclList, Children, Created, Watched, Znode};
pub use state::SessionState;
pub use states::SessionStates;
pub use watch::{Watch, WatchEvent, WatchEventKind};

pub(crate) use duty::Duties;
#[cfg(feature = "capi")]
pub(crate) use duty::Duty;
pub(crate) use inner::ClientInner;
pub(crate) use link::Link;

pub(crate) use trust::{Hold, TrustPeriod};
pub(crate) use trusted_session::TrustedSession;
pub(crate) use watch::WatchFor;

use crate::runtime::Pending;
use crate::session_key::SessionKey;

/// A client of a ZooKeeper ensemble, with its session.
///
/// Clones share the session. It ends with [`close`](Client::close), or when the last clone is dropped. Each
/// [`Lock`](crate::Lock) and [`Guard`](crate::Guard) of the client holds a clone.
///
/// Dropping the last clone does not block: the session ends in the background. At its end the process waits for that,
/// up to a second. Use [`close`](Client::close) to wait longer, and to learn whether a server has confirmed the end.
///
/// Operations are submitted in the order of the calls and never block. Each returns a [`Pending`]: `.await` it on any
/// runtime, or call `.wait()` to block. Operations of several requests say so. They submit the first at once, and the
/// others while the result is awaited or waited for. Every operation ends by its deadline
/// ([`ClientOptions::operation_timeout`]), even if no server ever answers.
///
/// # In a child process
/// A client and everything made from it belong to the process that made the client. In a child made by `fork`
/// - operations fail at once with `INVALID_STATE`, and those in flight end with `CLOSING`,
/// - the state is `Closed`, and guards are [`Lost`](crate::GuardState::Lost),
/// - dropping any of them releases nothing.
///
/// A child can make its own client.
///
/// # When the session is lost
/// After an expiry the client opens a new session, unless [`ClientOptions::reopen`] disables that. Ephemeral znodes,
/// watches and guards of the old session are gone. [`Client::states`] reports the change.
#[derive(Clone)]
pub struct Client {
    owner: Arc<Owner>,
}

/// Ends the session when the last clone of a client goes.
struct Owner {
    inner: Arc<ClientInner>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        if self.inner.is_inherited() {
            // Of what another process works with, nothing is taken apart here.
            return std::mem::forget(Arc::clone(&self.inner));
        }
        self.inner.request_close();
    }
}

impl Client {
    pub(crate) fn from_inner(inner: Arc<ClientInner>) -> Client {
        Client { owner: Arc::new(Owner { inner }) }
    }

    pub(crate) fn inner(&self) -> &Arc<ClientInner> {
        &self.owner.inner
    }

    /// The reference by which guards keep the client open.
    pub(crate) fn to_store(&self) -> Arc<dyn Any + Send + Sync> {
        Arc::clone(&self.owner) as _
    }

    /// The client that [`to_store`](Self::to_store) was called on, if `store` is from a client.
    pub(crate) fn of_store(store: &Arc<dyn Any + Send + Sync>) -> Option<Client> {
        let owner = Arc::clone(store).downcast().ok()?;
        Some(Client { owner })
    }

    /// Whether a parent process has made the client. Then it cannot be used here.
    pub(crate) fn is_inherited(&self) -> bool {
        self.inner().is_inherited()
    }

    /// The session's state, by the local clock at this moment.
    pub fn state(&self) -> SessionState {
        self.inner().look().0
    }

    /// Waits for a connected session.
    ///
    /// Cancel safety: it changes nothing.
    ///
    /// # Errors
    /// If the client is closed, the reason.
    pub fn connected(&self) -> Pending<()> {
        let inner = Arc::clone(self.inner());
        Pending::run("connect", "", async move { inner.trusted_session().await.map(drop) })
    }

    /// The session's id and password; `None` before the first connection and after the end.
    pub fn session(&self) -> Option<SessionKey> {
        let status = self.inner().status();
        // Before the first connection the C client may be writing it at this moment.
        status.trust?;
        status.link.filter(|_| status.failure.is_none())?.session()
    }

    /// The session timeout that the server granted.
    pub fn session_timeout(&self) -> Option<Duration> {
        self.inner().session_timeout()
    }

    /// Ends the session for all clones. Success means that a server has confirmed the end: every lock and every other
    /// ephemeral znode of the session is gone. Requests in flight are answered with `CLOSING`, later ones with
    /// `INVALID_STATE`.
    ///
    /// # Errors
    /// `CONNECTION_LOSS`, an [unknown outcome](crate::Error::is_outcome_unknown): no server has confirmed the end within the
    /// [operation timeout](ClientOptions::operation_timeout). The session, and what is held on it, may live on until the
    /// session timeout has passed.
    ///
    /// # On connection loss
    /// The client connects to the next server that it reaches, and ends the session there.
    ///
    /// # Cancel safety
    /// The session ends even if the [`Pending`] is dropped. Only the confirmation is lost.
    pub fn close(&self) -> Pending<()> {
        Pending::run("close", "", self.inner().close())
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("session", &self.session())
            .field("state", &self.state())
            .finish()
    }
}
