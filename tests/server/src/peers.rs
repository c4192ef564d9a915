//! The network between the members of an ensemble.
//!
//! Every ordered pair of members has proxies of its own: what the one connects to when it means the other. The ports
//! in a member's `zoo.cfg` are its own where it listens, and those of the proxies for its peers.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use parking_lot::Mutex;

use crate::error::Result;
use crate::proxy::{Proxy, Traffic};

/// Where a member listens for the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerAddrs {
    pub(crate) quorum: SocketAddr,
    pub(crate) election: SocketAddr,
}

impl PeerAddrs {
    /// What stands for the member in `zoo.cfg`.
    pub(crate) fn config(self) -> String {
        format!("{}:{}", self.quorum, self.election.port())
    }
}

/// Proxies between all members; dropping it resets their connections.
#[derive(Debug)]
pub(crate) struct Peers {
    lines: Vec<Line>,
    isolated: Mutex<BTreeSet<usize>>,
}

/// The way from one member to another.
#[derive(Debug)]
struct Line {
    from: usize,
    to: usize,
    quorum: Proxy,
    election: Proxy,
}

impl Peers {
    /// Before the members themselves are started.
    pub(crate) fn start(members: &[PeerAddrs]) -> Result<Peers> {
        let mut lines = Vec::new();
        for from in 0..members.len() {
            for (to, addrs) in members.iter().enumerate().filter(|(to, _)| *to != from) {
                let quorum = Proxy::between(Traffic::Quorum, vec![addrs.quorum])?;
                let election = Proxy::between(Traffic::Election, vec![addrs.election])?;
                lines.push(Line { from, to, quorum, election });
            }
        }
        Ok(Peers { lines, isolated: Mutex::default() })
    }

    /// Where a member finds another one, `None` for itself.
    pub(crate) fn addrs(&self, from: usize, to: usize) -> Option<PeerAddrs> {
        let line = self.lines.iter().find(|line| (line.from, line.to) == (from, to))?;
        Some(PeerAddrs { quorum: line.quorum.addr(), election: line.election.addr() })
    }

    pub(crate) fn isolate(&self, member: usize) {
        let mut isolated = self.isolated.lock();
        isolated.insert(member);
        for line in self.lines_of(member) {
            line.quorum.cut();
            line.election.cut();
        }
    }

    pub(crate) fn rejoin(&self, member: usize) {
        let mut isolated = self.isolated.lock();
        isolated.remove(&member);
        for line in self.lines_of(member) {
            // The other end may be isolated for itself.
            if !isolated.contains(&line.from) && !isolated.contains(&line.to) {
                line.quorum.heal();
                line.election.heal();
            }
        }
    }

    fn lines_of(&self, member: usize) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(move |line| line.from == member || line.to == member)
    }
}
