//! Ends a client's session behind its back, as the server does when the client is silent for too long.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use crate::connect_string;
use crate::error::{Error, Result};
use crate::wire::{Op, RawClient, Writer, connect_request};

/// How long [`expire_session`] tries in all.
const EXPIRY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long it pauses when no server has answered, so that it does not spin.
const PAUSE: Duration = Duration::from_millis(10);

/// Ends the session with this id and password: its ephemeral nodes are gone when this returns, and its client is told
/// that it has expired when it comes back. That is a moment later, for the server has closed its connection.
///
/// Where the program under test does not tell its session's password, [`Proxy::expire_sessions`] does the same.
///
/// `hosts`: what clients connect to, one address or several, as in `127.0.0.1:2181,127.0.0.1:2182`; the first that
/// answers is used, and a chroot at the end does no harm. Go to the server itself rather than through a [`Proxy`],
/// whose rules would see the extra connection.
///
/// ```no_run
/// # use std::time::Duration;
/// # use zklock_testing::{Server, expire_session, wire::RawClient};
/// let server = Server::start()?;
/// let client = RawClient::connect(server.addr(), Duration::from_secs(10))?;
/// expire_session(&server.hosts(), client.session_id(), &client.password())?;
/// # Ok::<(), zklock_testing::Error>(())
/// ```
///
/// It takes the session over and closes it in one breath. A client that comes back in between wins its session back:
/// then this starts over, until the server has confirmed the close or no longer knows the session.
///
/// ZooKeeper 3.8.0 can lose sight of a client that comes back at that very moment: its connection stays open, and is
/// never answered again. Such a client learns of the expiry when its pings have been unanswered for long enough, which
/// is before the session's timeout is over. [`Proxy::expire_sessions`] disconnects it.
///
/// # Errors
/// [`Error::SessionExpired`] when the server does not know the session in the first place: it has ended already, or
/// the password is wrong, which the server does not tell apart. [`Error::Timeout`] after ten seconds, with what was in
/// the way. [`Error::BadArgument`] when `hosts` cannot be read, [`Error::Io`] when it names somebody nobody knows.
///
/// [`Proxy`]: crate::Proxy
/// [`Proxy::expire_sessions`]: crate::Proxy::expire_sessions
pub fn expire_session(hosts: &str, session_id: i64, password: &[u8; 16]) -> Result<()> {
    expire_session_at(&connect_string::resolve(hosts)?, session_id, password)
}

pub(crate) fn expire_session_at(
    addrs: &[SocketAddr],
    session_id: i64,
    password: &[u8; 16],
) -> Result<()> {
    let deadline = Instant::now() + EXPIRY_TIMEOUT;
    let mut known = false;
    let mut last = None;
    while Instant::now() < deadline {
        for addr in addrs {
            match take_over_and_close(*addr, session_id, password) {
                Ok(()) => return Ok(()),
                Err(Error::SessionExpired { .. }) if known => return Ok(()),
                Err(error @ Error::SessionExpired { .. }) => return Err(error),
                Err(error) => {
                    // The close may have arrived although its reply did not, or not yet.
                    known |= error.is_connection_loss() || matches!(error, Error::Timeout { .. });
                    last = Some(error);
                }
            }
        }
        thread::sleep(PAUSE);
    }
    let why = last.map_or_else(String::new, |error| format!(" (last: {error})"));
    Err(Error::Timeout {
        what: format!("expire session {session_id:#x}{why}"),
        waited: EXPIRY_TIMEOUT,
    })
}

/// Both frames go out together, so that the client has no time to take its session back in between.
fn take_over_and_close(addr: SocketAddr, session_id: i64, password: &[u8; 16]) -> Result<()> {
    const TIMEOUT: Duration = Duration::from_secs(10);
    let mut client = RawClient::open(addr, TIMEOUT)?;
    client.set_reply_timeout(Duration::from_secs(2));
    let mut frames = connect_request(TIMEOUT, session_id, password);
    let mut close = Writer::new();
    let xid = 1;
    close.int(xid).int(Op::CloseSession.number());
    frames.extend(close.frame());
    client.send(&frames)?;
    client.finish_connect(session_id)?;
    client.wait_reply(xid).map(drop)
}
