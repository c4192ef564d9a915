//! The servers of a soak, the network before them, and a client that only looks.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use zklock::{Client, CreateMode, Strategy};
use zklock_testing::{Ensemble, KeepBusy, Proxy, Server};

use crate::locks::{LockName, REGISTERS, ROOT};
use crate::trouble::Trouble;

pub const MEMBERS: usize = 3;
/// How long servers may take to serve again; the machine may be busy.
pub const RECOVERS_WITHIN: Duration = Duration::from_secs(120);
/// The session of the client that looks.
const CONTROL: Duration = Duration::from_secs(60);
/// A machine that is busy with all of this makes servers silent for a while.
const SYNC_LIMIT: Duration = Duration::from_secs(5);
const SETTLES_WITHIN: Duration = Duration::from_secs(10);
const NAP: Duration = Duration::from_millis(20);

pub struct Cluster {
    // The order is the order of drop.
    control: Client,
    busy: Option<KeepBusy>,
    /// For each client process, its ways to the members.
    ways: Vec<Vec<Proxy>>,
    pub ensemble: Ensemble,
}

impl Cluster {
    /// Three members, and for each of `processes` a proxy before each of them.
    ///
    /// # Errors
    /// Why it can't be.
    pub fn start(processes: usize) -> Result<Cluster, Trouble> {
        let ensemble = Server::builder()
            .start_timeout(RECOVERS_WITHIN)
            .sync_limit(SYNC_LIMIT)
            // Members that were away get a snapshot, which they have on disk before they count as
            // up to date. Transaction by transaction, a member of 3.8.0 that is interrupted counts
            // as up to date without having them, wins the next election, and what was
            // acknowledged is lost: see docs/soak.md.
            .jvm_arg("-Dzookeeper.forceSnapshotSync=true")
            .jvm_arg("-Xmx384m")
            // They are started again and again: what compiles fast beats what runs fast.
            .jvm_arg("-XX:TieredStopAtLevel=1")
            // The machine does not fail here, only processes: what was written is there.
            .jvm_arg("-Dzookeeper.forceSync=no")
            .jvm_arg("-Dzookeeper.preAllocSize=4096")
            .start_ensemble(MEMBERS)
            .map_err(Trouble::new("start the servers"))?;
        let way = || -> zklock_testing::Result<Vec<Proxy>> {
            ensemble.addrs().into_iter().map(Proxy::start).collect()
        };
        let ways: zklock_testing::Result<Vec<_>> = (0..processes).map(|_| way()).collect();
        let ways = ways.map_err(Trouble::new("start the proxies"))?;
        let busy = ensemble.keep_busy().map_err(Trouble::new("start a background client"))?;
        let control = Client::options().session_timeout(CONTROL).connect(&ensemble.hosts()).wait();
        let control = control.map_err(Trouble::new("connect"))?;
        Ok(Cluster { control, busy: Some(busy), ways, ensemble })
    }

    /// Makes the registers.
    ///
    /// # Errors
    /// Those of the requests.
    pub fn prepare(&self, locks: &[LockName]) -> Result<(), Trouble> {
        let registers = locks.iter().map(LockName::register);
        for path in [ROOT.to_owned(), REGISTERS.to_owned()].into_iter().chain(registers) {
            match self.control.create(&path, b"", CreateMode::Persistent).wait() {
                Ok(_) => {}
                Err(error) if error.is_node_exists() => {}
                Err(error) => return Err(Trouble::new("prepare")(error)),
            }
        }
        Ok(())
    }

    /// Where the process of this seat connects to.
    pub fn hosts(&self, seat: usize) -> String {
        let hosts: Vec<String> = self.ways[seat].iter().map(Proxy::hosts).collect();
        hosts.join(",")
    }

    /// Cuts all links of the process of this seat: they fall silent, and nobody is told.
    pub fn cut(&self, seat: usize) {
        self.ways[seat].iter().for_each(Proxy::cut);
    }

    pub fn heal(&self, seat: usize) {
        self.ways[seat].iter().for_each(Proxy::heal);
    }

    /// Drops what the proxies remember of the frames that have passed.
    pub fn forget_traffic(&self) {
        self.ways.iter().flatten().for_each(Proxy::clear_seen);
    }

    /// Starts those members that are down, and waits until all serve.
    ///
    /// # Errors
    /// When one does not come back.
    pub fn recover(&self) -> Result<usize, Trouble> {
        let members = self.ensemble.members();
        for member in members {
            member.launch().map_err(Trouble::new("start a server again"))?;
        }
        for member in members {
            member.wait_ready(RECOVERS_WITHIN).map_err(Trouble::new("wait for a server"))?;
        }
        self.ensemble.wait_for_quorum(RECOVERS_WITHIN).map_err(Trouble::new("wait for a leader"))
    }

    /// The nodes of these locks that are still there when `patience` is over; returns as soon as
    /// there are none.
    ///
    /// # Errors
    /// When no server tells.
    pub fn left(&self, locks: &[LockName], patience: Duration) -> Result<Vec<String>, Trouble> {
        let deadline = Instant::now() + patience;
        loop {
            let look: zklock::Result<Vec<Vec<String>>> =
                locks.iter().map(|lock| self.nodes(lock)).collect();
            let is_late = Instant::now() >= deadline;
            match look {
                Ok(left) if left.iter().all(Vec::is_empty) || is_late => return Ok(left.concat()),
                // The last fault may have cost this client its connection, too.
                Err(error) if Instant::now() >= deadline + RECOVERS_WITHIN => {
                    return Err(Trouble::new("look for nodes")(error));
                }
                _ => std::thread::sleep(NAP),
            }
        }
    }

    fn nodes(&self, lock: &LockName) -> zklock::Result<Vec<String>> {
        let path = lock.path();
        if lock.strategy != Strategy::Queue {
            let stat = self.control.exists(&path).wait()?;
            return Ok(stat.map(|_| path).into_iter().collect());
        }
        match self.control.children(&path).wait() {
            Ok(names) => Ok(names.iter().map(|name| format!("{path}/{name}")).collect()),
            Err(error) if error.is_no_node() => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Ends the servers when all of them have logged the same, within reason: what a slow one lacks,
    /// the others have. Their logs stay as they are from then on.
    pub fn end(&mut self) {
        drop(self.busy.take());
        let last = |member: &Server| {
            let answer = member.four_letter("srvr").unwrap_or_default();
            answer.lines().find_map(|line| line.strip_prefix("Zxid: ")).map(str::to_owned)
        };
        let deadline = Instant::now() + SETTLES_WITHIN;
        while Instant::now() < deadline {
            let zxids: Vec<_> = self.ensemble.members().iter().map(last).collect();
            if zxids[0].is_some() && zxids.windows(2).all(|two| two[0] == two[1]) {
                break;
            }
            std::thread::sleep(NAP);
        }
        self.ensemble.members().iter().for_each(Server::kill);
    }

    /// Where members have told that their tree is not the one of their leader: each line once.
    pub fn diverged(&self) -> Vec<String> {
        let members = self.ensemble.members().iter().enumerate();
        let of = |(number, member): (usize, &Server)| {
            let log = member.log().unwrap_or_default();
            let lines = log.lines().filter(|line| line.contains("digest mismatch"));
            lines.map(|line| format!("server {}: {line}", number + 1)).collect::<Vec<_>>()
        };
        members.flat_map(of).collect()
    }

    /// Where the members' transaction logs are.
    pub fn log_directories(&self) -> Vec<PathBuf> {
        let members = self.ensemble.members().iter();
        members.map(|member| member.data_dir().join("version-2")).collect()
    }
}
