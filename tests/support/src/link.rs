//! A link to a server of any kind, on which requests and replies are lost.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;

/// What is lost between a client and its server, which knows nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// A request, before the server has it.
    Request,
    /// A reply, to what the server has done.
    Reply,
    /// A reply and all after it, either way. Neither side learns of it, as when a client's machine stands still.
    ReplyAndSilence,
}

/// Passes on all frames, except the one that is to be lost next. The connection of that one is closed, or passes on
/// nothing more.
pub struct Link {
    /// Where clients connect to.
    pub address: SocketAddr,
    server: Arc<Mutex<SocketAddr>>,
    connections: Arc<AtomicUsize>,
    /// After so many more frames.
    next: Arc<Mutex<Option<(Lost, u32)>>>,
}

impl Link {
    /// A link to a server.
    pub fn to(server: SocketAddr) -> Link {
        Link::between("127.0.0.1:0".parse().unwrap(), server)
    }

    /// A link to a server, for clients that connect to `address`.
    pub fn between(address: SocketAddr, server: SocketAddr) -> Link {
        let listener = TcpListener::bind(address).unwrap();
        let (address, next) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(None)));
        let (plan, server) = (Arc::clone(&next), Arc::new(Mutex::new(server)));
        let connections = Arc::new(AtomicUsize::new(0));
        let link = Link {
            address,
            server: Arc::clone(&server),
            connections: Arc::clone(&connections),
            next,
        };
        // Ends with the test's process.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                connections.fetch_add(1, Ordering::AcqRel);
                let server = *server.lock();
                let Ok(server) = TcpStream::connect(server) else { continue };
                let is_silent = Arc::new(AtomicBool::new(false));
                for (from, to, is_reply) in [(&client, &server, false), (&server, &client, true)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let (plan, is_silent) = (Arc::clone(&plan), Arc::clone(&is_silent));
                    thread::spawn(move || pass(from, to, is_reply, &plan, &is_silent));
                }
            }
        });
        link
    }

    /// New connections lead to another server.
    pub fn lead_to(&self, server: SocketAddr) {
        *self.server.lock() = server;
    }

    /// How many connections clients have made so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Acquire)
    }

    /// The next request or reply is lost, or one after so many frames that way.
    pub fn lose(&self, what: Lost, after: u32) {
        *self.next.lock() = Some((what, after));
    }

    /// Whether what was to be lost is.
    pub fn has_lost(&self) -> bool {
        self.next.lock().is_none()
    }
}

fn pass(
    mut from: TcpStream,
    mut to: TcpStream,
    is_reply: bool,
    plan: &Mutex<Option<(Lost, u32)>>,
    is_silent: &AtomicBool,
) {
    let mut bytes = [0; 65_536];
    loop {
        let length = from.read(&mut bytes).unwrap_or(0);
        let lost = plan.lock().take_if(|(lost, left)| {
            let is_now = *left == 0;
            // The end of a connection is no frame.
            let is_this_way = length > 0 && is_reply != (*lost == Lost::Request);
            *left = left.saturating_sub(is_this_way.into());
            is_this_way && is_now
        });
        if lost.is_some_and(|(lost, _)| lost == Lost::ReplyAndSilence) {
            is_silent.store(true, Ordering::Release);
        }
        if is_silent.load(Ordering::Acquire) {
            // Both ends stay open: that of the other direction by its own thread, or by this one.
            loop {
                thread::park();
            }
        }
        if length == 0 || lost.is_some() || to.write_all(&bytes[..length]).is_err() {
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
            return;
        }
    }
}
