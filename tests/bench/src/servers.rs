//! The servers that contestants are measured on, and what these count.

use std::time::Duration;

use zklock::Client;
use zklock_testing::{Builder, Ensemble, KeepBusy, Server};

use crate::Trouble;

/// A cold Java machine is several times slower.
const WARM_UP_OPERATIONS: usize = 10_000;
/// So many of them are under way at the same time.
const AT_ONCE: usize = 100;
/// What an ensemble's background client writes to: see [`Ensemble::keep_busy`].
const BUSY_NODE: &str = "/zklock-keep-busy";
/// The session of the client that prepares paths: with a long timeout it is heard of seldom.
const SESSION: Duration = Duration::from_secs(40);

enum Own {
    One(Server),
    Three(Ensemble, #[expect(dead_code, reason = "works until it is dropped")] KeepBusy),
}

pub struct Servers {
    // The order is the order of drop.
    control: Client,
    own: Own,
}

/// What the servers have counted since their start.
#[derive(Clone, Copy, Debug)]
pub struct Counters {
    packets: u64,
    events: u64,
}

fn text(error: impl std::fmt::Display) -> Trouble {
    error.to_string()
}

/// A server that compiles its code as one does that runs for long.
pub fn builder() -> Builder {
    Server::builder().jvm_arg("-XX:TieredStopAtLevel=4")
}

impl Servers {
    /// They serve, and are warm, when this returns.
    pub fn start(ensemble: bool) -> Result<Servers, Trouble> {
        let own = if ensemble {
            let ensemble = builder().start_ensemble(3).map_err(text)?;
            let busy = ensemble.keep_busy().map_err(text)?;
            Own::Three(ensemble, busy)
        } else {
            Own::One(builder().start().map_err(text)?)
        };
        let hosts = own.hosts();
        let control = Client::options().session_timeout(SESSION).connect(&hosts).wait();
        let servers = Servers { control: control.map_err(text)?, own };
        for member in servers.members() {
            warm_up(member).map_err(|error| format!("warm-up: {error}"))?;
        }
        Ok(servers)
    }

    fn members(&self) -> &[Server] {
        match &self.own {
            Own::One(server) => std::slice::from_ref(server),
            Own::Three(ensemble, _) => ensemble.members(),
        }
    }

    pub fn hosts(&self) -> String {
        self.own.hosts()
    }

    /// Their version, as they say it.
    pub fn version(&self) -> String {
        let answer = self.members()[0].four_letter("srvr").unwrap_or_default();
        let line = answer.lines().find_map(|line| line.strip_prefix("Zookeeper version: "));
        line.and_then(|line| line.split(['-', ',']).next()).unwrap_or("unknown").to_owned()
    }

    /// A znode without children for a contestant.
    pub fn make_path(&self, path: &str) -> Result<(), Trouble> {
        self.control.make_path(path).wait().map(drop).map_err(text)
    }

    /// Deletes what a contestant has left there.
    pub fn remove(&self, path: &str) -> Result<(), Trouble> {
        self.control.delete_all(path).wait().map(drop).map_err(text)
    }

    /// # Errors
    /// A server does not answer.
    pub fn counters(&self) -> Result<Counters, Trouble> {
        // The background client's writes are packets, but not the contestant's.
        let busy = match &self.own {
            Own::One(_) => 0,
            Own::Three(..) => {
                let stat = self.control.exists(BUSY_NODE).wait().map_err(text)?;
                stat.map_or(0, |stat| u64::from(stat.version.unsigned_abs()))
            }
        };
        let mut sum = Counters { packets: 0, events: 0 };
        for member in self.members() {
            let stats = member.stats().map_err(text)?;
            sum.packets += stats.packets_received;
            // For each kind of change a sum over all times that watches fired, of how many there were.
            let is_sum = |key: &str| key.starts_with("sum_node_") && key.ends_with("_watch_count");
            let sums = stats.all.iter().filter(|(key, _)| is_sum(key));
            sum.events +=
                sums.filter_map(|(_, value)| value.parse::<f64>().ok()).sum::<f64>() as u64;
        }
        sum.packets = sum.packets.saturating_sub(busy);
        Ok(sum)
    }

    /// What came in between two looks, without the second look's own packets.
    pub fn between(&self, before: Counters, after: Counters) -> (u64, u64) {
        let looks = match &self.own {
            Own::One(_) => 1,
            Own::Three(ensemble, _) => ensemble.members().len() as u64 + 1,
        };
        let packets = after.packets.saturating_sub(before.packets + looks);
        (packets, after.events.saturating_sub(before.events))
    }
}

impl Own {
    fn hosts(&self) -> String {
        match self {
            Own::One(server) => server.hosts(),
            Own::Three(ensemble, _) => ensemble.hosts(),
        }
    }
}

fn warm_up(member: &Server) -> zklock::Result<()> {
    let client = Client::connect(&member.hosts()).wait()?;
    for _ in 0..WARM_UP_OPERATIONS / 2 / AT_ONCE {
        let create = |n| {
            client.create(&format!("/warm-up-{n}"), b"", zklock::zookeeper::CreateMode::Ephemeral)
        };
        let created: Vec<_> = (0..AT_ONCE).map(create).collect();
        for created in created {
            created.wait()?;
        }
        let deleted: Vec<_> =
            (0..AT_ONCE).map(|n| client.delete(&format!("/warm-up-{n}"), None)).collect();
        for deleted in deleted {
            deleted.wait()?;
        }
    }
    client.close().wait()
}
