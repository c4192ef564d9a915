//! What a program can know of its session.

/// What a program can know of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum SessionState {
    /// No server has taken the session yet.
    Connecting,
    /// A server is connected and the session lives.
    Connected,
    /// The connection is lost; the session may still be alive. Stop writing under a lock.
    Suspended,
    /// The session is over, or can't be trusted any more by the local clock. Its locks are lost.
    Lost,
    /// The client is closed, or can't go on (credentials refused).
    Closed,
}
