//! A ZooKeeper client in its barest form: one socket, no threads, no reconnects, no pings of its own.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::{Frames, Op, Reader, Taken, WatchEvent, Writer, XID_EVENT, XID_PING};
use crate::deadline;
use crate::error::{Error, Result};

/// A client that does what it is told and nothing else, so that a test knows every byte that travels.
///
/// It sends no pings: its session ends when it says nothing for the session's timeout. Requests can be pipelined with
/// [`submit`](RawClient::submit). Dropping it closes the socket and leaves the session to its timeout.
///
/// ```no_run
/// use std::time::Duration;
/// use zklock_testing::{Server, wire::RawClient};
///
/// let server = Server::start()?;
/// let mut client = RawClient::connect(server.addr(), Duration::from_secs(10))?;
/// client.create("/greeting", b"hello")?;
/// client.close_session()?;
/// # Ok::<(), zklock_testing::Error>(())
/// ```
#[derive(Debug)]
pub struct RawClient {
    stream: TcpStream,
    frames: Frames,
    session_id: i64,
    password: [u8; 16],
    session_timeout: Duration,
    reply_timeout: Duration,
    last_xid: i32,
    /// Replies that came while another one was waited for.
    replies: BTreeMap<i32, (i32, Vec<u8>)>,
    events: VecDeque<WatchEvent>,
}

impl RawClient {
    /// Opens a new session at `addr`. `session_timeout` is what is asked for; see
    /// [`session_timeout`](RawClient::session_timeout) for what the server grants.
    ///
    /// # Errors
    /// [`Error::Io`] for the connection, [`Error::Timeout`] when the server says nothing for ten seconds.
    pub fn connect(addr: SocketAddr, session_timeout: Duration) -> Result<RawClient> {
        RawClient::attach(addr, session_timeout, 0, &[0; 16])
    }

    /// Takes over the session with this id and password. The server closes the connection that had it.
    ///
    /// # Errors
    /// [`Error::SessionExpired`] when the server has no such session, else as [`RawClient::connect`].
    pub fn attach(
        addr: SocketAddr,
        session_timeout: Duration,
        session_id: i64,
        password: &[u8; 16],
    ) -> Result<RawClient> {
        let mut client = RawClient::open(addr, session_timeout)?;
        let hello = connect_request(session_timeout, session_id, password);
        client.send(&hello)?;
        client.finish_connect(session_id)?;
        Ok(client)
    }

    /// A socket to the server, on which nothing was said.
    pub(crate) fn open(addr: SocketAddr, session_timeout: Duration) -> Result<RawClient> {
        const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
        let stream = TcpStream::connect_timeout(&addr, REPLY_TIMEOUT)
            .and_then(|stream| stream.set_nodelay(true).map(|()| stream))
            .map_err(Error::io(format!("connect to {addr}")))?;
        Ok(RawClient {
            stream,
            frames: Frames::default(),
            session_id: 0,
            password: [0; 16],
            session_timeout,
            reply_timeout: REPLY_TIMEOUT,
            last_xid: 0,
            replies: BTreeMap::new(),
            events: VecDeque::new(),
        })
    }

    pub(crate) fn finish_connect(&mut self, asked_for: i64) -> Result<()> {
        let frame = self.next_frame(deadline::after(self.reply_timeout), "connect")?;
        let mut reader = Reader::new(&frame);
        let fields = (|| {
            let _protocol = reader.int()?;
            let timeout = reader.int()?;
            let session_id = reader.long()?;
            Some((timeout, session_id, reader.buffer()?))
        })();
        let (timeout, session_id, password) = fields.ok_or_else(|| garbled("connect"))?;
        if session_id == 0 {
            return Err(Error::SessionExpired { session_id: asked_for });
        }
        self.session_id = session_id;
        self.session_timeout = Duration::from_millis(timeout.try_into().unwrap_or(0));
        self.password = password.try_into().map_err(|_| garbled("connect"))?;
        Ok(())
    }

    /// The session's id.
    pub fn session_id(&self) -> i64 {
        self.session_id
    }

    /// The session's password, with which [`RawClient::attach`] takes the session over.
    pub fn password(&self) -> [u8; 16] {
        self.password
    }

    /// The session timeout that the server granted.
    pub fn session_timeout(&self) -> Duration {
        self.session_timeout
    }

    /// How long each request waits for its reply. Default: ten seconds.
    pub fn set_reply_timeout(&mut self, timeout: Duration) {
        self.reply_timeout = timeout;
    }

    /// Sends a request without waiting for its reply. Returns the request's number, for
    /// [`wait_reply`](RawClient::wait_reply). `body`: what follows the operation, encoded.
    ///
    /// # Errors
    /// [`Error::Io`] for the connection.
    pub fn submit(&mut self, op: Op, body: &[u8]) -> Result<i32> {
        let xid = if op == Op::Ping {
            XID_PING
        } else {
            self.last_xid += 1;
            self.last_xid
        };
        let mut request = Writer::new();
        request.int(xid).int(op.number()).raw(body);
        let frame = request.frame();
        self.send(&frame)?;
        Ok(xid)
    }

    pub(crate) fn send(&mut self, frame: &[u8]) -> Result<()> {
        self.stream.write_all(frame).map_err(Error::io("send a request"))
    }

    /// Waits for the reply to the request with this number. Returns its error code and its body.
    ///
    /// # Errors
    /// [`Error::Timeout`], or [`Error::Io`] when the connection ends.
    pub fn wait_reply(&mut self, xid: i32) -> Result<(i32, Vec<u8>)> {
        let deadline = deadline::after(self.reply_timeout);
        loop {
            if let Some(reply) = self.replies.remove(&xid) {
                return Ok(reply);
            }
            self.receive(deadline, "wait for a reply")?;
        }
    }

    /// Waits for a watch to fire. Events come in the server's order.
    ///
    /// # Errors
    /// [`Error::Timeout`] after `timeout`, or [`Error::Io`] when the connection ends.
    pub fn next_event(&mut self, timeout: Duration) -> Result<WatchEvent> {
        let deadline = deadline::after(timeout);
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            self.receive(deadline, "wait for a watch event")?;
        }
    }

    /// Waits until the server or something in between ends the connection, and returns the reason: `UnexpectedEof`
    /// for an orderly close, `ConnectionReset` for a reset. Replies and events on the way are kept.
    ///
    /// # Errors
    /// [`Error::Timeout`] when the connection still stands after `timeout`.
    pub fn wait_closed(&mut self, timeout: Duration) -> Result<io::ErrorKind> {
        let deadline = deadline::after(timeout);
        loop {
            match self.receive(deadline, "wait for the connection's end") {
                Ok(()) => {}
                Err(Error::Io { source, .. }) => return Ok(source.kind()),
                Err(error) => return Err(error),
            }
        }
    }

    fn receive(&mut self, deadline: Instant, what: &str) -> Result<()> {
        let frame = self.next_frame(deadline, what)?;
        let mut reader = Reader::new(&frame);
        let header = (|| Some((reader.int()?, reader.long()?, reader.int()?)))();
        let (xid, _zxid, code) = header.ok_or_else(|| garbled(what))?;
        if xid == XID_EVENT {
            let event = (|| {
                let kind = reader.int()?;
                let _state = reader.int()?;
                let path = reader.string()?;
                Some(WatchEvent { kind, path })
            })();
            self.events.push_back(event.ok_or_else(|| garbled(what))?);
        } else {
            const HEADER: usize = 16;
            self.replies.insert(xid, (code, frame[HEADER..].to_vec()));
        }
        Ok(())
    }

    /// The next frame without its length. A timeout loses nothing: what has arrived is kept.
    fn next_frame(&mut self, deadline: Instant, what: &str) -> Result<Vec<u8>> {
        let began = Instant::now();
        let mut chunk = [0; 4096];
        loop {
            match self.frames.take() {
                Some(Taken::Frame(frame)) => return Ok(frame[4..].to_vec()),
                Some(Taken::Foreign(_)) => return Err(garbled(what)),
                None => {}
            }
            let left = deadline.saturating_duration_since(Instant::now());
            // A deadline that is over still takes what has already arrived.
            let left = left.max(Duration::from_micros(1));
            let read = self
                .stream
                .set_read_timeout(Some(left))
                .and_then(|()| self.stream.read(&mut chunk));
            match read {
                Ok(0) => return Err(Error::io(what)(io::ErrorKind::UnexpectedEof.into())),
                Ok(length) => self.frames.push(&chunk[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if Instant::now() >= deadline {
                        return Err(Error::Timeout {
                            what: what.to_owned(),
                            waited: began.elapsed(),
                        });
                    }
                }
                Err(error) => return Err(Error::io(what)(error)),
            }
        }
    }
}

pub(crate) fn connect_request(
    session_timeout: Duration,
    session_id: i64,
    password: &[u8; 16],
) -> Vec<u8> {
    let timeout = i32::try_from(session_timeout.as_millis()).unwrap_or(i32::MAX);
    let mut hello = Writer::new();
    // Protocol version, last zxid seen (none: any server will do), and at the end "read only": no.
    hello.int(0).long(0).int(timeout).long(session_id).buffer(password).bool(false);
    hello.frame()
}

pub(crate) fn garbled(what: &str) -> Error {
    Error::io(what)(io::Error::new(
        io::ErrorKind::InvalidData,
        "the server's answer makes no sense",
    ))
}
