//! Connects a client's connection to a server.

use std::io;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use super::core::Traffic;
use super::pump::Pump;

/// How long a server may take to accept. Loopback needs no time, unless the server is frozen and its queue full.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a member of an ensemble may take to listen. Its peers would try again; but they are not refused here, they
/// are accepted and then lose a connection they had begun to use, which costs them a whole round of the election.
const LISTEN: Duration = Duration::from_secs(1);

impl Pump {
    pub(super) fn reach(&self) -> io::Result<TcpStream> {
        let timeout = if self.shared.traffic == Traffic::Clients { Duration::ZERO } else { LISTEN };
        let deadline = Instant::now() + timeout;
        loop {
            match self.reach_one() {
                Err(error)
                    if error.kind() == io::ErrorKind::ConnectionRefused
                        && Instant::now() < deadline
                        && !self.link.is_closed() =>
                {
                    thread::sleep(Duration::from_millis(5));
                }
                outcome => return outcome,
            }
        }
    }

    /// Connections take turns at the servers; one that does not accept is passed over.
    fn reach_one(&self) -> io::Result<TcpStream> {
        let servers = &self.shared.upstream;
        let first = (self.link.number as usize).wrapping_sub(1) % servers.len();
        let (before, from_first) = servers.split_at(first);
        let mut outcome = Err(io::ErrorKind::ConnectionRefused.into());
        for server in from_first.iter().chain(before) {
            outcome = TcpStream::connect_timeout(server, CONNECT);
            if outcome.is_ok() || self.link.is_closed() {
                break;
            }
        }
        outcome
    }
}
