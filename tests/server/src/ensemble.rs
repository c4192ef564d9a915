//! Several servers that agree with each other, and lose their leader when a test wants them to.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use crate::builder::Builder;
use crate::busy::KeepBusy;
use crate::deadline;
use crate::error::{Error, Result};
use crate::peers::{PeerAddrs, Peers};
use crate::port::Port;
use crate::server::{Server, tells_of_a_taken_port};

/// An ensemble of ZooKeeper servers on loopback.
///
/// Each member is a [`Server`] that can be stopped, killed, frozen and started again by itself. Dropping the ensemble
/// kills them all, and removes their directories.
///
/// ```no_run
/// use std::time::Duration;
/// use zklock_testing::{Ensemble, Proxy};
///
/// let ensemble = Ensemble::start(3)?;
/// let proxy = Proxy::start(ensemble.hosts())?; // one address with all members behind it
/// // ... a program connects to proxy.hosts(), or to ensemble.hosts() ...
/// let leader = ensemble.wait_for_quorum(Duration::from_secs(20))?;
/// ensemble.member(leader).kill();
/// # Ok::<(), zklock_testing::Error>(())
/// ```
///
/// A test whose client is the only one of an ensemble wants [`keep_busy`](Ensemble::keep_busy).
#[derive(Debug)]
#[must_use = "an ensemble that is dropped ends at once"]
pub struct Ensemble {
    // The order is the order of drop: the servers first, what is between them after them.
    members: Vec<Server>,
    peers: Option<Peers>,
}

impl Ensemble {
    /// Starts `members` servers with the default [settings](Builder). There is a quorum and every member serves when
    /// this returns, which takes two to four seconds on a small machine.
    ///
    /// # Errors
    /// As [`Server::start`], and [`Error::BadArgument`] when `members` is zero.
    pub fn start(members: usize) -> Result<Ensemble> {
        Server::builder().start_ensemble(members)
    }

    pub(crate) fn start_with(builder: &Builder, members: usize) -> Result<Ensemble> {
        const ATTEMPTS: usize = 3;
        if members == 0 {
            return Err(Error::bad_argument(
                "start an ensemble of 0 members: it needs one at least",
            ));
        }
        let ids = builder.ids(members)?;
        for _ in 1..ATTEMPTS {
            match Ensemble::attempt(builder, &ids) {
                Err(Error::Start { tail, .. }) if tells_of_a_taken_port(&tail) => {}
                outcome => return outcome,
            }
        }
        Ensemble::attempt(builder, &ids)
    }

    fn attempt(builder: &Builder, ids: &[u8]) -> Result<Ensemble> {
        let mut ports = Vec::new();
        let mut addrs = Vec::new();
        for _ in ids {
            let reserve = || Port::reserve().map_err(Error::io("reserve a port"));
            let (client, quorum, election) = (reserve()?, reserve()?, reserve()?);
            addrs.push(PeerAddrs { quorum: quorum.addr(), election: election.addr() });
            ports.push((client, vec![quorum, election]));
        }
        let peers = builder.is_partitionable().then(|| Peers::start(&addrs)).transpose()?;
        let mut ensemble = Ensemble { members: Vec::new(), peers };
        for (index, (client, others)) in ports.into_iter().enumerate() {
            let line = |(other, own): (usize, &PeerAddrs)| {
                let proxied = ensemble.peers.as_ref().and_then(|peers| peers.addrs(index, other));
                (format!("server.{}", ids[other]), proxied.unwrap_or(*own).config())
            };
            let lines: Vec<(String, String)> = addrs.iter().enumerate().map(line).collect();
            let server = Server::prepare(builder, client, Some((ids[index], &lines)), others)?;
            server.launch()?;
            ensemble.members.push(server);
        }
        for member in &ensemble.members {
            member.wait_ready(builder.starts_within())?;
        }
        Ok(ensemble)
    }

    /// Its first member, which needs no proxy when it is the only one.
    pub(crate) fn into_only_member(mut self) -> Server {
        self.members.remove(0)
    }

    /// Where clients connect to, all members in one line: `127.0.0.1:a,127.0.0.1:b,127.0.0.1:c`.
    pub fn hosts(&self) -> String {
        let hosts: Vec<String> = self.members.iter().map(Server::hosts).collect();
        hosts.join(",")
    }

    /// Where clients connect to by TLS, all members in one line, if they have a
    /// [`secure_client_port`](Builder::secure_client_port).
    pub fn secure_hosts(&self) -> Option<String> {
        let hosts: Option<Vec<String>> = self.members.iter().map(Server::secure_hosts).collect();
        Some(hosts?.join(","))
    }

    /// Where clients connect to, by member.
    pub fn addrs(&self) -> Vec<SocketAddr> {
        self.members.iter().map(Server::addr).collect()
    }

    /// All members; their order never changes.
    pub fn members(&self) -> &[Server] {
        &self.members
    }

    /// The member with this index, from zero; `members().get(index)` does not panic.
    ///
    /// # Panics
    /// When there is no such member.
    #[track_caller]
    pub fn member(&self, index: usize) -> &Server {
        &self.members[index]
    }

    /// The index of the member that says it leads, `None` during an election.
    pub fn leader(&self) -> Option<usize> {
        self.members.iter().position(|member| leads(member.mode().as_deref()))
    }

    /// Waits until one member leads and, with it, more than half of all members serve. Returns the leader's index.
    ///
    /// Right after the leader's death its followers may still count themselves as such: to see the change, wait for a
    /// leader that is another one.
    ///
    /// # Errors
    /// [`Error::Timeout`] after `timeout`.
    pub fn wait_for_quorum(&self, timeout: Duration) -> Result<usize> {
        let deadline = deadline::after(timeout);
        loop {
            let modes: Vec<Option<String>> = self.members.iter().map(Server::mode).collect();
            let serving = modes.iter().flatten().count();
            let leader = modes.iter().position(|mode| leads(mode.as_deref()));
            match leader {
                Some(leader) if serving > self.members.len() / 2 => return Ok(leader),
                _ if Instant::now() < deadline => thread::sleep(Duration::from_millis(20)),
                _ => {
                    return Err(Error::Timeout {
                        what: format!("wait for a quorum (members: {modes:?})"),
                        waited: timeout,
                    });
                }
            }
        }
    }

    /// Partitions a member from its peers: the connections between them fall silent both ways, and new ones are
    /// accepted but stay silent. Its clients still reach it. Nothing passes any more once this has returned. Nobody is
    /// told: the members find out by the [`sync_limit`](Builder::sync_limit), and until then a follower goes on
    /// answering its clients by itself.
    ///
    /// # Errors
    /// [`Error::BadArgument`] when there is no such member, or the ensemble was not started as
    /// [`partitionable`](Builder::partitionable).
    pub fn isolate(&self, index: usize) -> Result<()> {
        self.network_of(index)?.isolate(index);
        Ok(())
    }

    /// Ends [`isolate`](Ensemble::isolate): connections that fell silent are reset, and new ones are served. The member
    /// serves its clients again some time after this has returned: see [`Server::wait_ready`].
    ///
    /// # Errors
    /// As [`isolate`](Ensemble::isolate).
    pub fn rejoin(&self, index: usize) -> Result<()> {
        self.network_of(index)?.rejoin(index);
        Ok(())
    }

    fn network_of(&self, index: usize) -> Result<&Peers> {
        self.check(index)?;
        let peers = self.peers.as_ref();
        peers.ok_or_else(|| {
            Error::bad_argument(
                "isolate a member: start the ensemble with Builder::partitionable(true)",
            )
        })
    }

    fn check(&self, index: usize) -> Result<&Server> {
        let count = self.members.len();
        self.members.get(index).ok_or_else(|| {
            Error::bad_argument(format!("there is no member {index}: {count} count from zero"))
        })
    }

    /// Runs a client in the background that commits something about every 50 ms, until the guard is dropped.
    ///
    /// Why: a follower of ZooKeeper 3.8.0 (Debian 12) can miss the wake-up for a commit. The next commit repairs it,
    /// but where a single client waits for its own reply there is none, and it stalls until its session's silence is
    /// noticed, up to 20 s. It sees an operation timeout there that says nothing about the code under test.
    ///
    /// The background client costs a session, a node (`/zklock-keep-busy`) and packets that the counters show.
    ///
    /// # Errors
    /// [`Error::Io`] when its thread cannot be started. A lost connection is no error: it tries the next member.
    pub fn keep_busy(&self) -> Result<KeepBusy> {
        KeepBusy::start(self.addrs())
    }

    /// The same through these members only: where a test [isolates](Ensemble::isolate) a member, those that keep the
    /// quorum.
    ///
    /// # Errors
    /// As [`keep_busy`](Ensemble::keep_busy), and [`Error::BadArgument`] when there is no such member.
    pub fn keep_busy_through(&self, members: &[usize]) -> Result<KeepBusy> {
        if members.is_empty() {
            return Err(Error::bad_argument("keep an ensemble busy through no member"));
        }
        let addrs = members.iter().map(|index| self.check(*index).map(Server::addr));
        KeepBusy::start(addrs.collect::<Result<_>>()?)
    }
}

/// A member that is the only one says that it stands alone.
fn leads(mode: Option<&str>) -> bool {
    matches!(mode, Some("leader" | "standalone"))
}
