//! Ports that this machine's test programs hand out without treading on each other.
//!
//! A [`Port`] is ours from [`Port::reserve`] to its drop, also while the server that uses it is stopped: every test
//! process of the machine that uses this crate keeps away from it, because the reservation is an abstract Unix socket
//! named after the port, which ends with its process. Other programs know nothing of it: a server start can still
//! find its port taken, and tries another.
//!
//! Ports lie below the range that the kernel hands out for outgoing connections. Within that range a client that
//! keeps trying a stopped server's port would at some point be given that very port as its own and connect to itself.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

/// A loopback port, reserved until it is dropped.
#[derive(Debug)]
pub struct Port {
    number: u16,
    #[cfg(target_os = "linux")]
    _reservation: Option<std::os::unix::net::UnixListener>,
}

impl Port {
    /// Takes a port that nobody listens on.
    pub fn reserve() -> io::Result<Port> {
        Ok(Port::reserve_and_listen()?.0)
    }

    /// Takes a port and listens on it from this moment on.
    ///
    /// Whoever reserves a port only to listen on it in this process uses this: a child that another thread forks has
    /// a copy of the socket that [`Port::reserve`] tries the port with until it executes its program, and nobody can
    /// listen there for that long.
    pub(crate) fn reserve_and_listen() -> io::Result<(Port, TcpListener)> {
        let range = candidates();
        for _ in 0..1000 {
            let number = range.start + (next_random() % u32::from(range.end - range.start)) as u16;
            if let Some(both) = Port::reserve_number(number)? {
                return Ok(both);
            }
        }
        Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            format!("no free port on 127.0.0.1 in {range:?}"),
        ))
    }

    /// The port of a server of another process, which has reserved it.
    pub(crate) fn of_another_process(number: u16) -> Port {
        Port {
            number,
            #[cfg(target_os = "linux")]
            _reservation: None,
        }
    }

    /// Takes this very port.
    pub(crate) fn reserve_this(number: u16) -> io::Result<Port> {
        let taken = || {
            let why = format!("port {number} of 127.0.0.1 is in use, or may not be used");
            io::Error::new(io::ErrorKind::AddrInUse, why)
        };
        Ok(Port::reserve_number(number)?.ok_or_else(taken)?.0)
    }

    /// `None` when somebody else has reserved it or listens on it.
    fn reserve_number(number: u16) -> io::Result<Option<(Port, TcpListener)>> {
        #[cfg(target_os = "linux")]
        let _reservation = {
            use std::os::linux::net::SocketAddrExt;
            use std::os::unix::net::{SocketAddr, UnixListener};
            let name = format!("zklock-testing-port-{number}");
            match UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?) {
                Ok(listener) => Some(listener),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Ok(None),
                Err(error) => return Err(error),
            }
        };
        let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, number)) else {
            return Ok(None);
        };
        let port = Port {
            number,
            #[cfg(target_os = "linux")]
            _reservation,
        };
        Ok(Some((port, listener)))
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Where to listen, and where nobody does as long as that is not done.
    pub fn addr(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.number))
    }
}

/// Up to 10,000 ports right below the kernel's own.
fn candidates() -> Range<u16> {
    let first_of_kernel = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse::<u16>().ok())
        .unwrap_or(32768);
    if first_of_kernel > 12_000 {
        first_of_kernel - 10_000..first_of_kernel
    } else {
        // A kernel set up to use nearly all ports leaves no safe room: take what is there.
        20_000..30_000
    }
}

/// Scatters processes and threads over the range; the bind decides, so this need not be good.
fn next_random() -> u32 {
    static TURN: AtomicU32 = AtomicU32::new(0);
    let turn = TURN.fetch_add(1, Ordering::Relaxed);
    let nanos = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.subsec_nanos());
    let mixed =
        (nanos ^ std::process::id().rotate_left(16)).wrapping_add(turn.wrapping_mul(0x9E37_79B9));
    let mixed = (mixed ^ (mixed >> 16)).wrapping_mul(0x85EB_CA6B);
    mixed ^ (mixed >> 13)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserved_port_is_not_given_twice_even_while_nobody_listens() {
        let port = Port::reserve().unwrap();
        assert!(Port::reserve_number(port.number()).unwrap().is_none());
        let number = port.number();
        drop(port);
        assert!(Port::reserve_number(number).unwrap().is_some());
    }

    #[test]
    fn a_port_somebody_listens_on_is_passed_over() {
        let port = Port::reserve().unwrap();
        let number = port.number();
        let _listener = TcpListener::bind(port.addr()).unwrap();
        drop(port);
        assert!(Port::reserve_number(number).unwrap().is_none());
    }

    #[test]
    fn one_can_listen_on_a_port_while_other_threads_start_programs() {
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::process::Command::new("true").status().unwrap();
                }
            });
            let outcomes = (0..500).map(|_| crate::Proxy::start("127.0.0.1:1")).map(Result::err);
            let failures: Vec<_> = outcomes.flatten().collect();
            done.store(true, Ordering::Relaxed);
            assert!(failures.is_empty(), "{failures:?}");
        });
    }
}
