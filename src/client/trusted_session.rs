//! One session in one period of trust: what locks work on.

use std::ops::Deref;
use std::sync::Arc;

use super::{Hold, Link, TrustPeriod};

/// A session that could be trusted a moment ago. Its requests (those of its [`Link`]) are submitted when
/// called, in that order, and can never act on another session.
#[derive(Clone)]
pub(crate) struct TrustedSession {
    pub(crate) link: Arc<Link>,
    pub(crate) trust: Arc<TrustPeriod>,
}

impl TrustedSession {
    pub(super) fn new(link: &Arc<Link>, trust: &Arc<TrustPeriod>) -> TrustedSession {
        TrustedSession { link: Arc::clone(link), trust: Arc::clone(trust) }
    }

    pub(crate) fn id(&self) -> i64 {
        self.trust.session()
    }

    /// Whether the session is certainly alive, by the local clock. Once `false`, for ever `false`.
    pub(crate) fn is_trusted(&self) -> bool {
        self.trust.is_trusted()
    }

    /// Whether nobody but this client has ever used the session.
    pub(crate) fn is_ours_alone(&self) -> bool {
        !self.link.is_adopted() && !self.link.was_taken_up()
    }

    /// Holds something on the session, if the servers have proven that it is alive. A session that was
    /// trusted for less may not be any more, once something is held on it.
    pub(crate) fn hold(&self) -> Option<Hold> {
        self.trust.hold()
    }

    /// Waits until something can be held on the session, or it is no longer trusted.
    pub(crate) async fn proven(&self) {
        self.trust.proven(|| self.link.heartbeat()).await;
    }

    /// Waits until the session is no longer trusted.
    pub(crate) async fn lost(&self) {
        self.trust.lost().await;
    }
}

impl Deref for TrustedSession {
    type Target = Arc<Link>;

    fn deref(&self) -> &Arc<Link> {
        &self.link
    }
}
