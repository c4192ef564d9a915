//! Accepts clients and gives each connection its threads.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use super::core::{Mode, Shared};
use super::link::{Ending, Link};
use super::pump;

/// Makes the listener look at what has changed.
#[derive(Debug)]
pub(super) struct Waker(UnixStream);

impl Waker {
    pub(super) fn wake(&self) {
        // It fails only when the listener is gone, or has many wake-ups to read already.
        let _ = (&self.0).write(&[1]);
    }
}

/// Serves who connects to `listener`.
pub(super) fn start(
    listener: TcpListener,
    shared: Arc<Shared>,
) -> io::Result<(Waker, JoinHandle<()>)> {
    let addr = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let (waker, woken) = UnixStream::pair()?;
    waker.set_nonblocking(true)?;
    woken.set_nonblocking(true)?;
    let thread = thread::Builder::new().name("zk-proxy".into()).spawn(move || {
        let mut listener = Some(listener);
        while go_on(&shared, addr, &mut listener) {
            if let Some(listener) = &listener {
                accept(&shared, listener, &woken);
            }
        }
    })?;
    Ok((Waker(waker), thread))
}

fn bind(addr: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(addr)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Opens or closes the listening socket as the proxy's mode asks; `false` when the proxy ends.
fn go_on(shared: &Shared, addr: SocketAddr, listener: &mut Option<TcpListener>) -> bool {
    let mut core = shared.core.lock();
    while !core.stopping {
        if core.mode == Mode::Refuse {
            // Closing it would leave it listening in a child that is just being started, until that runs its program.
            if let Some(listener) = listener.take() {
                let _ = rustix::net::shutdown(&listener, rustix::net::Shutdown::Both);
            }
        } else if listener.is_none() {
            *listener = bind(addr).ok();
        }
        if core.listening != listener.is_some() {
            core.listening = listener.is_some();
            shared.changed.notify_all();
        }
        match (core.mode, &listener) {
            (Mode::Refuse, _) => shared.changed.wait(&mut core),
            // Somebody sits on the port, though it is reserved: try again until they go.
            (_, None) => drop(shared.changed.wait_for(&mut core, Duration::from_millis(10))),
            _ => return true,
        }
    }
    shared.changed.notify_all();
    false
}

/// Waits for clients or for the waker, and serves those that came.
fn accept(shared: &Arc<Shared>, listener: &TcpListener, mut woken: &UnixStream) {
    let mut both = [PollFd::new(listener, PollFlags::IN), PollFd::new(woken, PollFlags::IN)];
    let _ = poll(&mut both, None);
    let _ = woken.read(&mut [0; 64]);
    loop {
        match listener.accept() {
            Ok((client, _)) => serve(shared, client),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(_) => {
                // Out of descriptors, or a client that changed its mind. The pause keeps the former from spinning.
                thread::sleep(Duration::from_millis(5));
                return;
            }
        }
    }
}

fn serve(shared: &Arc<Shared>, client: TcpStream) {
    let prepared = client.set_nodelay(true).and_then(|()| client.set_nonblocking(true));
    if prepared.is_err() {
        return;
    }
    // Under the lock, so that a cut either sees this link or is seen by it.
    let mut core = shared.core.lock();
    core.next_connection += 1;
    let silent = core.mode == Mode::Cut;
    let link = Arc::new(Link::new(core.next_connection, client, shared.traffic, silent));
    if core.mode == Mode::Refuse || core.stopping {
        link.close(Ending::Reset);
        return;
    }
    match pump::start(shared, &link) {
        Ok(thread) => {
            core.add_thread(thread);
            core.links.push(link);
        }
        Err(_) => link.close(Ending::Reset),
    }
}
