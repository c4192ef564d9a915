//! One client's connection: two sockets and what is to become of them.
//!
//! Every write asks for the link's fate under the same lock as the write itself. So once [`Link::silence`] or
//! [`Link::close`] has returned, not one more byte passes.

use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::core::Traffic;
use super::seen::Conversation;
use super::unsent::unconfirmed;

#[derive(Debug)]
pub(super) struct Link {
    pub(super) number: u64,
    client: TcpStream,
    /// Set once the server has accepted.
    server: OnceLock<TcpStream>,
    fate: Mutex<Fate>,
    pub(super) conversation: Mutex<Conversation>,
    /// These are not the frames of a client: bytes pass as they come.
    pub(super) foreign: AtomicBool,
    /// Requests that went to the server and whose replies have not gone to the client.
    pub(super) unanswered: AtomicUsize,
    /// Pumps that have ended.
    pub(super) ended: AtomicUsize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Open,
    /// Nothing passes any more, and nobody is told.
    Silent,
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    ToServer,
    ToClient,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Both ends are reset.
    Reset,
    /// The client is reset; the server sees an orderly end.
    ResetClient,
    /// Both ends have said their last word.
    Orderly,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Passed {
    Yes,
    Silent,
    Closed,
}

impl Link {
    pub(super) fn new(number: u64, client: TcpStream, traffic: Traffic, silent: bool) -> Link {
        Link {
            number,
            client,
            server: OnceLock::new(),
            fate: Mutex::new(if silent { Fate::Silent } else { Fate::Open }),
            conversation: Mutex::default(),
            foreign: AtomicBool::new(traffic != Traffic::Clients),
            unanswered: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
        }
    }

    /// Takes the connection to the server; `false`, and the connection is dropped, when the link was closed meanwhile.
    pub(super) fn set_server(&self, server: TcpStream) -> bool {
        let fate = self.fate.lock();
        *fate != Fate::Closed && self.server.set(server).is_ok()
    }

    /// Where bytes for this way come from. The server's socket is there before any pump asks for it.
    pub(super) fn source(&self, way: Way) -> Option<&TcpStream> {
        match way {
            Way::ToServer => Some(&self.client),
            Way::ToClient => self.server.get(),
        }
    }

    fn target(&self, way: Way) -> Option<&TcpStream> {
        match way {
            Way::ToServer => self.server.get(),
            Way::ToClient => Some(&self.client),
        }
    }

    pub(super) fn is_silent(&self) -> bool {
        *self.fate.lock() == Fate::Silent
    }

    pub(super) fn is_closed(&self) -> bool {
        *self.fate.lock() == Fate::Closed
    }

    pub(super) fn silence(&self) {
        let mut fate = self.fate.lock();
        if *fate == Fate::Open {
            *fate = Fate::Silent;
        }
    }

    /// The caller tells whoever waits for the link's fate.
    pub(super) fn close(&self, ending: Ending) {
        let mut fate = self.fate.lock();
        if *fate == Fate::Closed {
            return;
        }
        *fate = Fate::Closed;
        match ending {
            Ending::Reset | Ending::ResetClient => reset(&self.client),
            Ending::Orderly => drop(self.client.shutdown(Shutdown::Both)),
        }
        if let Some(server) = self.server.get() {
            match ending {
                Ending::Reset => reset(server),
                Ending::ResetClient | Ending::Orderly => drop(server.shutdown(Shutdown::Both)),
            }
        }
    }

    /// Waits until all that was written to the client has reached its system, or the link has ended.
    pub(super) fn wait_client_has_all(&self, deadline: Instant) {
        while !self.is_closed()
            && Instant::now() < deadline
            && unconfirmed(&self.client).is_ok_and(|bytes| bytes > 0)
        {
            // The system tells nobody when the last byte is confirmed.
            thread::sleep(Duration::from_micros(200));
        }
    }

    /// Tells the target that nothing more will come this way.
    pub(super) fn finish(&self, way: Way) {
        let fate = self.fate.lock();
        if let (Fate::Open, Some(target)) = (*fate, self.target(way)) {
            let _ = target.shutdown(Shutdown::Write);
        }
    }

    /// Writes everything, unless the link's fate says otherwise in between.
    pub(super) fn write(&self, way: Way, mut bytes: &[u8]) -> io::Result<Passed> {
        while !bytes.is_empty() {
            let Some(mut target) = self.target(way) else {
                return Ok(Passed::Closed);
            };
            let fate = self.fate.lock();
            match *fate {
                Fate::Open => {}
                Fate::Silent => return Ok(Passed::Silent),
                Fate::Closed => return Ok(Passed::Closed),
            }
            // The socket does not block, so the lock is held for a moment only.
            let written = target.write(bytes);
            drop(fate);
            match written {
                Ok(length) => bytes = &bytes[length..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // Short, because a link that falls silent wakes nobody here.
                    wait_for(target, PollFlags::OUT, Some(Duration::from_millis(20)))?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Passed::Yes)
    }
}

/// Waits until the socket is ready, has failed, or the time is over.
pub(super) fn wait_for(
    socket: &TcpStream,
    what: PollFlags,
    timeout: Option<Duration>,
) -> io::Result<()> {
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    match poll(&mut [PollFd::new(socket, what)], timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Sends a reset now, while other threads still hold the socket, and wakes those that wait for it.
fn reset(socket: &TcpStream) {
    let at_once = Some(Duration::ZERO);
    let _ = rustix::net::sockopt::set_socket_linger(socket, at_once);
    // Dissolving a connection resets it. Where a system does not do that, ending it wakes the threads, and the
    // linger time of zero makes the last close a reset.
    if rustix::net::connect_unspec(socket).is_err() {
        let _ = socket.shutdown(Shutdown::Both);
    }
}
