//! The sessions that were opened through a proxy, and their end behind their clients' backs.

use super::Proxy;
use super::link::Ending;
use crate::error::{Error, Result};
use crate::session::expire_session_at;

impl Proxy {
    /// Ends every session that was opened through this proxy and not closed since, as the server does when a client
    /// is silent for too long: also those of programs that would never tell their session's password. Returns their
    /// ids; sessions that have ended by themselves are not among them.
    ///
    /// When this returns their ephemeral nodes are gone and their connections are reset, and with them those that have
    /// not opened a session yet; a client that comes back is told. It goes straight to the servers: rules see nothing
    /// of it, and it works while the proxy is [`cut`](Proxy::cut).
    ///
    /// ```no_run
    /// # let proxy = zklock_testing::Proxy::start("127.0.0.1:2181")?;
    /// // ... a program connects to proxy.hosts() ...
    /// let ended = proxy.expire_sessions()?;
    /// assert_eq!(ended.len(), 1, "the program had one session");
    /// # Ok::<(), zklock_testing::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`expire_session`](crate::expire_session), at the first session that cannot be ended.
    pub fn expire_sessions(&self) -> Result<Vec<i64>> {
        let sessions = self.shared.core.lock().sessions.clone();
        let mut ended = Vec::new();
        for (id, password) in sessions {
            match self.expire(id, &password) {
                Ok(()) => ended.push(id),
                Err(Error::SessionExpired { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(ended)
    }

    /// As [`expire_sessions`](Proxy::expire_sessions), for one of them.
    ///
    /// # Errors
    /// As [`expire_session`](crate::expire_session); [`Error::SessionExpired`] also when the session was not opened
    /// through this proxy.
    pub fn expire_session(&self, id: i64) -> Result<()> {
        let password = self.shared.core.lock().sessions.get(&id).copied();
        self.expire(id, &password.ok_or(Error::SessionExpired { session_id: id })?)
    }

    fn expire(&self, id: i64, password: &[u8; 16]) -> Result<()> {
        let ended = expire_session_at(&self.shared.upstream, id, password);
        if matches!(ended, Ok(()) | Err(Error::SessionExpired { .. })) {
            self.disconnect(id);
        }
        ended
    }

    /// Resets what the session's client is on. The server would close that; but it can forget a connection on which a
    /// client takes its session up again while it is taken away, and such a connection may yet be opening.
    fn disconnect(&self, id: i64) {
        let mut core = self.shared.core.lock();
        core.sessions.remove(&id);
        for link in &core.links {
            if link.conversation.lock().session.is_none_or(|(other, _)| other == id) {
                link.close(Ending::Reset);
            }
        }
        self.shared.changed.notify_all();
    }
}
