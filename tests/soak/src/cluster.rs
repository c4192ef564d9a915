//! The servers of a soak, and the network before them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use zklock_testing::{Ensemble, KeepBusy, Proxy, Server};

use crate::shape::Shape;
use crate::trouble::Trouble;

pub const MEMBERS: usize = 3;
/// How long servers may take to serve again; the machine may be busy.
pub const RECOVERS_WITHIN: Duration = Duration::from_secs(120);
const SETTLES_WITHIN: Duration = Duration::from_secs(10);
const NAP: Duration = Duration::from_millis(20);

pub struct Cluster {
    // The order is the order of drop.
    busy: Option<KeepBusy>,
    /// For each client process, its ways to the members.
    ways: Vec<Vec<Proxy>>,
    shape: Shape,
    pub ensemble: Ensemble,
}

impl Cluster {
    /// Three members, and for each of `processes` a proxy before each of them.
    ///
    /// # Errors
    /// Why it can't be.
    pub fn start(shape: Shape, processes: usize) -> Result<Cluster, Trouble> {
        let ensemble = Server::builder()
            .start_timeout(RECOVERS_WITHIN)
            .first_id(shape.first_id)
            // With those no server may have the id 255.
            .property("extendedTypesEnabled", "false")
            .tick_time(shape.tick)
            .sync_limit(shape.sync_limit)
            // Members that were away get a snapshot, which they have on disk before they count as
            // up to date. Transaction by transaction, a member of 3.8.0 that is interrupted counts
            // as up to date without having them, wins the next election, and what was
            // acknowledged is lost: see docs/soak.md.
            .jvm_arg("-Dzookeeper.forceSnapshotSync=true")
            .jvm_arg("-Xmx384m")
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
        Ok(Cluster { busy: Some(busy), ways, shape, ensemble })
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

    /// The ways of all client processes to this member.
    pub fn ways_to(&self, member: usize) -> Vec<&Proxy> {
        self.ways.iter().filter_map(|ways| ways.get(member)).collect()
    }

    /// All ways of every second client process: `which` is 0 or 1.
    pub fn ways_of_half(&self, which: usize) -> Vec<&Proxy> {
        self.ways.iter().skip(which).step_by(2).flatten().collect()
    }

    /// How long until the servers' clocks, which count from the machine's start, are so far into a
    /// tick.
    pub fn until_after_tick(&self, after: Duration) -> Duration {
        let now = clock_gettime(ClockId::Monotonic);
        let now = now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs();
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (tick, after) = (nanos(self.shape.tick).max(1), nanos(after));
        Duration::from_nanos((tick + after % tick - now % tick) % tick)
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
        let members = (usize::from(self.shape.first_id)..).zip(self.ensemble.members());
        let of = |(id, member): (usize, &Server)| {
            let log = member.log().unwrap_or_default();
            let lines = log.lines().filter(|line| line.contains("digest mismatch"));
            lines.map(|line| format!("server {id}: {line}")).collect::<Vec<_>>()
        };
        members.flat_map(of).collect()
    }

    /// Where the members' transaction logs are.
    pub fn log_directories(&self) -> Vec<PathBuf> {
        let members = self.ensemble.members().iter();
        members.map(|member| member.data_dir().join("version-2")).collect()
    }
}
