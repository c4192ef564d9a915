//! The servers under test, started or given, and what they count: packets and watch events.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

use zklock::{Client, ClientOptions, Pending};
use zklock::{Store, StoreOptions};
use zklock_testing::{Ensemble, KeepBusy, Server, four_letter};

use crate::args::Args;
use crate::interrupt::Stop;
use crate::output::say;
use crate::trouble::Trouble;

/// How much, and how long, a server of ours is used before anything is measured: a cold Java
/// machine is several times slower.
const WARM_UP_CYCLES: u64 = 2_000;
const WARM_UP_TIME: Duration = Duration::from_secs(2);
const WARM_UP_PATH: &str = "/zklock/lock_test/warm-up";
/// What an ensemble's background client writes to: see [`Ensemble::keep_busy`].
const BUSY_NODE: &str = "/zklock-keep-busy";
/// How long a server may take to say what it has counted.
const ANSWER: Duration = Duration::from_secs(3);

/// The servers, or another store, and a client of the test's own that takes no part in it.
pub struct Servers {
    // The order is the order of drop.
    control: Store,
    address: String,
    addrs: Result<Vec<SocketAddr>, String>,
    _busy: Option<KeepBusy>,
    own: Own,
}

enum Own {
    None,
    One(Server),
    Three(Ensemble),
}

/// What the servers have counted since their start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    packets: u64,
    events: u64,
}

/// What they counted between two looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Packets received from clients.
    pub packets: u64,
    /// Watch events sent to clients.
    pub events: u64,
}

/// The session timeout of the client that looks at the servers.
const CONTROL_SESSION: Duration = Duration::from_secs(60);

impl Servers {
    /// Starts servers, or takes those given, and connects to them.
    pub fn get(args: &Args, stop: &Stop) -> Result<Servers, Trouble> {
        let (own, busy) = start(args)?;
        let of_hosts = |hosts: &str| format!("zookeeper://{hosts}");
        let (address, addrs) = match (&own, args.other_store()) {
            (Own::One(server), _) => (of_hosts(&server.hosts()), Ok(vec![server.addr()])),
            (Own::Three(ensemble), _) => (of_hosts(&ensemble.hosts()), Ok(ensemble.addrs())),
            (Own::None, Some(store)) => (store.to_owned(), Err("it is no server".to_owned())),
            (Own::None, None) => {
                let hosts = args.hosts().unwrap_or_default();
                (of_hosts(hosts), resolve(hosts))
            }
        };
        // It only looks, and its session keeps itself alive among the packets that are counted:
        // with a long timeout, seldom.
        let session = match args.other_store() {
            None => CONTROL_SESSION,
            Some(_) => args.session_timeout,
        };
        let pending = StoreOptions::new().session_timeout(session).connect(&address);
        let control = stop.or(pending).ok_or(Trouble::Interrupted)??;
        if args.other_store().is_some() {
            // One that was just started may let nobody in at first, which is not what is measured.
            let first = stop.or(control.lock(WARM_UP_PATH).acquire());
            first.ok_or(Trouble::Interrupted)??.release().wait()?;
        }
        let servers = Servers { control, address, addrs, _busy: busy, own };
        if servers.are_ours() {
            servers.warm_up(args, stop)?;
        }
        Ok(servers)
    }

    /// Another client of them.
    pub fn connect(&self, args: &Args) -> Pending<Store> {
        let zookeeper = Client::options().announced_releases(!args.unannounced);
        let options = StoreOptions::new().session_timeout(args.session_timeout);
        options.zookeeper(zookeeper).connect(&self.address)
    }

    pub fn control(&self) -> &Store {
        &self.control
    }

    pub fn are_ours(&self) -> bool {
        !matches!(self.own, Own::None)
    }

    /// What this is, for the table's title.
    pub fn describe(&self) -> String {
        match &self.own {
            Own::None => match self.address.strip_prefix("zookeeper://") {
                Some(hosts) => format!("servers {hosts}"),
                // Of a server's address anything may be a password.
                None if self.address.contains("://") => {
                    format!("a server of {}", self.control.capabilities().store)
                }
                None => format!("the store {}", self.address),
            },
            Own::One(_) => "a server of its own".to_owned(),
            Own::Three(_) => "an ensemble of three servers of its own".to_owned(),
        }
    }

    fn warm_up(&self, args: &Args, stop: &Stop) -> Result<(), Trouble> {
        let addrs = self.addrs.as_deref().unwrap_or_default();
        let started = Instant::now();
        let cycles = |addr: &SocketAddr| -> Result<u64, Trouble> {
            let lock = options(args).connect(&addr.to_string()).wait()?.lock(WARM_UP_PATH);
            let mut cycles = 0;
            let is_cold = |cycles| cycles < WARM_UP_CYCLES && started.elapsed() < WARM_UP_TIME;
            while is_cold(cycles) && !stop.is_raised() {
                lock.acquire().wait()?.release().wait()?;
                cycles += 1;
            }
            Ok(cycles)
        };
        let cycles = std::thread::scope(|scope| {
            let threads: Vec<_> = addrs.iter().map(|addr| scope.spawn(|| cycles(addr))).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).sum::<Result<u64, _>>()
        });
        let cycles = cycles.map_err(|trouble| Trouble::of("warm-up", trouble))?;
        if args.verbose {
            let time = started.elapsed().as_secs_f64();
            say(format_args!("warm-up: {cycles} acquisitions in {time:.1} s, not counted"));
        }
        Ok(())
    }

    /// What the servers have counted: ask before the test and, with the answer, after it.
    ///
    /// # Errors
    /// Why they don't tell, in words.
    pub fn count(&self) -> Result<Counted, String> {
        let mut sum = Counted { packets: 0, events: 0 };
        for &addr in self.addrs.as_ref().map_err(String::clone)? {
            let answer = four_letter(addr, "mntr", ANSWER).map_err(|error| error.to_string())?;
            let counted = Counted::read(&answer).map_err(|why| format!("mntr at {addr}: {why}"))?;
            sum.packets += counted.packets;
            sum.events += counted.events;
        }
        Ok(sum)
    }

    /// What happened since an earlier look, without what the test's own looks added to it.
    ///
    /// # Errors
    /// As [`count`](Servers::count).
    pub fn traffic_since(&self, before: Counted) -> Result<Traffic, String> {
        let after = self.count()?;
        // A server counts the question itself as a packet that it received.
        let questions = self.addrs.as_ref().map_or(0, Vec::len) as u64;
        let packets = after.packets.checked_sub(before.packets + questions);
        let events = after.events.checked_sub(before.events);
        match (packets, events) {
            (Some(packets), Some(events)) => Ok(Traffic { packets, events }),
            _ => Err("a server has started to count anew".to_owned()),
        }
    }

    /// How often an ensemble's background client has written: each time is a packet that is not
    /// the test's.
    pub fn background_writes(&self) -> u64 {
        if !matches!(self.own, Own::Three(_)) {
            return 0;
        }
        let exists = self.control.client().map(|client| client.exists(BUSY_NODE).wait());
        let stat = exists.and_then(Result::ok).flatten();
        stat.map_or(0, |stat| u64::from(stat.version.unsigned_abs()))
    }
}

/// How a server is warmed up.
fn options(args: &Args) -> ClientOptions {
    Client::options().session_timeout(args.session_timeout)
}

fn start(args: &Args) -> Result<(Own, Option<KeepBusy>), Trouble> {
    let is_given = args.hosts().is_some() || args.other_store().is_some();
    let started = match (is_given.then_some(()), args.ensemble) {
        (Some(()), _) => Ok((Own::None, None)),
        (None, false) => Server::start().map(|server| (Own::One(server), None)),
        (None, true) => Ensemble::start(3).and_then(|ensemble| {
            let busy = ensemble.keep_busy()?;
            Ok((Own::Three(ensemble), Some(busy)))
        }),
    };
    started.map_err(|error| Trouble::Cannot(error.to_string()))
}

impl Counted {
    fn read(answer: &str) -> Result<Counted, String> {
        let mut pairs = answer.lines().filter_map(|line| {
            let (key, value) = line.split_once('\t')?;
            // Some versions print whole numbers with a ".0".
            Some((key, value.split('.').next()?.parse::<u64>().ok()))
        });
        let (mut packets, mut events, mut knows_events) = (None, 0, false);
        for (key, value) in pairs.by_ref() {
            match key {
                "zk_packets_received" => packets = value,
                // A sum over all times that a node's watches fired, of how many there were.
                _ if key.starts_with("zk_sum_node_") && key.ends_with("_watch_count") => {
                    events += value.unwrap_or(0);
                    knows_events = true;
                }
                _ => {}
            }
        }
        match packets {
            Some(packets) if knows_events => Ok(Counted { packets, events }),
            Some(_) => Err("this server does not count watch events".to_owned()),
            None => Err(answer.lines().next().unwrap_or("no answer").to_owned()),
        }
    }
}

/// The addresses behind a host string, a server's only once. Clients connect to nothing else, so
/// these servers together see all of their packets.
fn resolve(hosts: &str) -> Result<Vec<SocketAddr>, String> {
    let mut addrs: Vec<SocketAddr> = Vec::new();
    let servers = hosts.split('/').next().unwrap_or_default();
    for host in servers.split(',').map(str::trim) {
        let has_port = host.rsplit_once(':').is_some_and(|(name, port)| {
            !port.is_empty()
                && port.bytes().all(|b| b.is_ascii_digit())
                && (name.ends_with(']') || !name.contains(':'))
        });
        let full = if has_port { host.to_owned() } else { format!("{host}:2181") };
        let found: Vec<SocketAddr> =
            full.to_socket_addrs().map_err(|error| format!("{host}: {error}"))?.collect();
        // A name's IPv4 and IPv6 addresses most likely are the same servers.
        let is_v4 = found.iter().any(SocketAddr::is_ipv4);
        for addr in found.into_iter().filter(|addr| addr.is_ipv4() == is_v4) {
            if !addrs.contains(&addr) {
                addrs.push(addr);
            }
        }
    }
    Ok(addrs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watch_events_are_summed_over_their_kinds() {
        let answer = "zk_packets_received\t12\nzk_sum_node_deleted_watch_count\t5\n\
                      zk_cnt_node_deleted_watch_count\t1\nzk_sum_node_changed_watch_count\t2.0\n";
        assert_eq!(Counted::read(answer), Ok(Counted { packets: 12, events: 7 }));
    }

    #[test]
    fn a_server_that_does_not_tell_says_why() {
        let refusal = "mntr is not executed because it is not in the whitelist.\n";
        assert_eq!(Counted::read(refusal), Err(refusal.trim().to_owned()));
        assert!(Counted::read("zk_packets_received\t12\n").unwrap_err().contains("watch events"));
        assert!(Counted::read("").is_err());
    }

    #[test]
    fn hosts_are_found_with_and_without_port_and_chroot() {
        let addr = |text: &str| text.parse::<SocketAddr>().expect(text);
        assert_eq!(resolve("127.0.0.1").unwrap(), [addr("127.0.0.1:2181")]);
        assert_eq!(
            resolve("127.0.0.1:1, 127.0.0.1:2,127.0.0.1:1/a/b").unwrap(),
            [addr("127.0.0.1:1"), addr("127.0.0.1:2")]
        );
        assert_eq!(resolve("[::1]:7,[::1]").unwrap(), [addr("[::1]:7"), addr("[::1]:2181")]);
    }
}
