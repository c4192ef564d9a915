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

/// Whether the servers know a session: what the first says that answers. Blocks.
pub(super) fn is_known(session: &SessionKey, route: Route<'_>) -> Option<bool> {
    route.addresses().into_iter().find_map(|(address, name)| {
        let mut stream = route.connect(address, name).ok()?;
        shake_hands(&mut *stream, session).ok()
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
        if shake_hands(&mut *stream, session)? {
            return close(&mut *stream);
        }
        // The servers refuse it: it has ended, or its end is proposed and not committed yet. A new session is committed
        // after that.
        if confirm {
            let mut stream = connect()?;
            if !shake_hands(&mut *stream, &SessionKey::new(0, [0; 16]))? {
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
fn shake_hands(stream: &mut dyn Stream, session: &SessionKey) -> io::Result<bool> {
    stream.write_all(&handshake(session))?;
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
fn handshake(session: &SessionKey) -> Vec<u8> {
    const LENGTH: i32 = 45;
    const PROTOCOL: i32 = 0;
    const LAST_SEEN: i64 = 0;
    // Servers raise it to their smallest.
    const TIMEOUT: i32 = 0;
    const READ_ONLY: u8 = 0;
    let password = session.password();
    [
        &LENGTH.to_be_bytes()[..],
        &PROTOCOL.to_be_bytes(),
        &LAST_SEEN.to_be_bytes(),
        &TIMEOUT.to_be_bytes(),
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
