//! The states of a session, as a program sees them.

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum SessionState {
    /// No server has accepted the session yet.
    Connecting,
    /// A server is connected, and the session is alive.
    Connected,
    /// The connection is lost. The session may still be alive: stop writing under a lock.
    Suspended,
    /// The session is over, or the local clock no longer proves it alive. Its locks are lost.
    Lost,
    /// The client is closed, or cannot continue (credentials refused).
    Closed,
}

impl SessionState {
    /// As metrics name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            SessionState::Connecting => "connecting",
            SessionState::Connected => "connected",
            SessionState::Suspended => "suspended",
            SessionState::Lost => "lost",
            SessionState::Closed => "closed",
        }
    }
}
