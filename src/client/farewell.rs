//! Ends a session for certain, on a separate connection.
//!
//! `zookeeper_close` sends CLOSE and closes its socket at once. If a reply or an event is unread then, the kernel resets the
//! connection, and the server drops the CLOSE and the requests before it. So the client presents the session in another
//! handshake afterwards. If the servers accept it, the client closes it here, and reads the reply.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::hosts::resolve;
use super::secure::{self, Stream};
use crate::error::Code;
use crate::session_key::SessionKey;
use crate::tls::Tls;

/// The longest time that a host gets for one step.
const STEP: Duration = Duration::from_secs(2);
/// The pause before the hosts are tried again: it doubles up to the longest. After the end of a server, as many clients
/// as it had may be here at once.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Longer than any frame that a server sends here.
const FRAME: usize = 1 << 10;
/// The number of the only request, and what it asks for.
const XID: i32 = 1;
const CLOSE_SESSION: i32 = -11;
/// A session timeout, which servers raise to their shortest.
const SHORTEST: Duration = Duration::ZERO;

/// A session that may live on after its handle was closed.
#[derive(Clone)]
pub(super) struct LeftBehind {
    pub(super) session: SessionKey,
    /// The server that it was connected to.
    pub(super) server: Option<SocketAddr>,
    /// How long it lives on unless it is ended, once servers serve.
    pub(super) timeout: Option<Duration>,
}

/// How to reach the servers.
#[derive(Clone, Copy)]
pub(super) struct Route<'a> {
    pub(super) hosts: &'a [String],
    pub(super) tls: Option<&'a Tls>,
    pub(super) deadline: Option<Instant>,
}

/// Ends a session. Tries the hosts, the server that it was connected to first, until one has ended it or the deadline has
/// passed. Gives whether one has. With `confirm`, success means that the end is committed. Blocks.
pub(super) fn end_session(left: &LeftBehind, route: Route<'_>, confirm: bool) -> bool {
    let mut longest = FIRST_PAUSE;
    loop {
        let mut addresses = route.addresses();
        addresses.sort_by_key(|(address, _)| Some(*address) != left.server);
        let mut hosts = addresses.into_iter();
        if hosts.any(|(address, name)| {
            route.end(&left.session, || route.connect(address, name), confirm).is_ok()
        }) {
            return true;
        }
        let pause = longest.mul_f64(0.5 + fastrand::f64() / 2.0);
        if route.time_left() <= pause {
            return false;
        }
        std::thread::sleep(pause);
        // Somebody may wait for this.
        longest = if confirm { FIRST_PAUSE } else { LONGEST_PAUSE.min(2 * longest) };
    }
}

/// Whether the servers know a session: what the first says that answers. A handshake takes the session away from the
/// connection that has it, and sets its timeout, which therefore has to be the session's own. Blocks while that is wanted.
pub(super) fn is_known(
    session: &SessionKey,
    timeout: Duration,
    route: Route<'_>,
    is_wanted: &dyn Fn() -> bool,
) -> Option<bool> {
    route.addresses().into_iter().take_while(|_| is_wanted()).find_map(|(address, name)| {
        let mut stream = route.connect(address, name).ok()?;
        shake_hands(&mut *stream, session, timeout).ok()
    })
}

impl<'a> Route<'a> {
    fn addresses(self) -> Vec<(SocketAddr, &'a str)> {
        let mut addresses = Vec::new();
        for host in self.hosts {
            let name = host.rsplit_once(':').map_or(&**host, |(name, _)| name);
            let resolved = resolve(host).unwrap_or_default();
            addresses.extend(resolved.into_iter().map(|address| (address, name)));
        }
        addresses
    }

    fn end(
        self,
        session: &SessionKey,
        connect: impl Fn() -> io::Result<Box<dyn Stream>>,
        confirm: bool,
    ) -> io::Result<()> {
        let mut stream = connect()?;
        if shake_hands(&mut *stream, session, SHORTEST)? {
            return close(&mut *stream);
        }
        // The servers refuse it: it has ended, or its end is proposed and not committed yet. A new session is committed
        // after that.
        if confirm {
            let mut stream = connect()?;
            if !shake_hands(&mut *stream, &SessionKey::new(0, [0; 16]), SHORTEST)? {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            // Without a reply it times out soon.
            let _ = close(&mut *stream);
        }
        Ok(())
    }

    fn time_left(self) -> Duration {
        let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
        self.deadline.map_or(Duration::MAX, left)
    }

    fn connect(self, address: SocketAddr, name: &str) -> io::Result<Box<dyn Stream>> {
        let timeout = self.time_left().min(STEP);
        if timeout.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let stream = TcpStream::connect_timeout(&address, timeout)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        stream.set_nodelay(true)?;
        secure::dial(stream, name, self.tls).map_err(|_| io::Error::other("no TLS"))
    }
}

/// Takes up a session, or begins one. Gives whether the servers have accepted it.
fn shake_hands(
    stream: &mut dyn Stream,
    session: &SessionKey,
    timeout: Duration,
) -> io::Result<bool> {
    stream.write_all(&handshake(session, timeout))?;
    // The version of the protocol, the timeout, the session.
    let answer = read_frame(stream)?;
    Ok(number(&answer, 8).map(i64::from_be_bytes)? != 0)
}

/// Closes the session of a connection. The reply follows the commit.
fn close(stream: &mut dyn Stream) -> io::Result<()> {
    stream.write_all(&[8, XID, CLOSE_SESSION].map(i32::to_be_bytes).concat())?;
    loop {
        // The request's number, the transaction, the error.
        let reply = read_frame(stream)?;
        if number(&reply, 0).map(i32::from_be_bytes)? != XID {
            continue;
        }
        return match Code::from_raw(number(&reply, 12).map(i32::from_be_bytes)?) {
            Code::OK | Code::SESSION_EXPIRED => Ok(()),
            code => Err(io::Error::other(code.to_string())),
        };
    }
}

/// A handshake: for a session, of a client that has seen no transaction that a server would have to know.
fn handshake(session: &SessionKey, timeout: Duration) -> Vec<u8> {
    const LENGTH: i32 = 45;
    const PROTOCOL: i32 = 0;
    const LAST_SEEN: i64 = 0;
    const READ_ONLY: u8 = 0;
    let password = session.password();
    let timeout = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    [
        &LENGTH.to_be_bytes()[..],
        &PROTOCOL.to_be_bytes(),
        &LAST_SEEN.to_be_bytes(),
        &timeout.to_be_bytes(),
        &session.id().to_be_bytes(),
        &(password.len() as i32).to_be_bytes(),
        &password,
        &[READ_ONLY],
    ]
    .concat()
}

fn read_frame(stream: &mut dyn Stream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = usize::try_from(i32::from_be_bytes(length)).ok().filter(|length| *length <= FRAME);
    let mut frame = vec![0; length.ok_or(io::ErrorKind::InvalidData)?];
    stream.read_exact(&mut frame)?;
    Ok(frame)
}

/// The bytes of a number in a frame.
fn number<const N: usize>(frame: &[u8], at: usize) -> io::Result<[u8; N]> {
    let bytes = frame.get(at..at + N).and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use zklock_testing::wire::{CreateMode, RawClient};
    use zklock_testing::{Server, eventually};

    use super::*;

    #[test]
    fn a_session_that_was_asked_for_lives_on_for_its_own_timeout() {
        const LONG: Duration = Duration::from_secs(600);
        let tick = Duration::from_millis(100);
        let server = Server::builder().tick_time(tick).max_session_timeout(LONG).start().unwrap();
        let hosts = [server.addr().to_string()];
        let route = Route { hosts: &hosts, tls: None, deadline: None };
        let known = RawClient::connect(server.addr(), LONG).unwrap();
        let session = SessionKey::new(known.session_id(), known.password());
        assert_eq!(is_known(&session, LONG, route, &|| false), None);
        assert_eq!(is_known(&session, LONG, route, &|| true), Some(true));
        // One that was begun later, and has the servers' shortest timeout, ends.
        let mut short = RawClient::connect(server.addr(), SHORTEST).unwrap();
        short.create_with("/short", b"", CreateMode::Ephemeral).unwrap();
        let mut witness = RawClient::connect(server.addr(), LONG).unwrap();
        eventually("the short one ends", || witness.exists("/short").unwrap().is_none());
        assert_eq!(is_known(&session, LONG, route, &|| true), Some(true));
        let unknown = SessionKey::new(session.id() + 1, session.password());
        assert_eq!(is_known(&unknown, LONG, route, &|| true), Some(false));
    }
}
