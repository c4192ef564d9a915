//! A server's answers to four-letter words, read into numbers and names.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::Result;
use crate::four_letter::four_letter;
use crate::server::{PROBE, Server};

/// How long a four-letter word may take at a server that is expected to answer.
const ANSWER: Duration = Duration::from_secs(5);

/// A server's counters, from `mntr`. Packets are counted since the server's start.
///
/// The server counts a four-letter word as a packet received: between two looks at the counters there is one more
/// than clients have sent, for the second look itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Requests received from clients, pings and connects among them, and four-letter words.
    pub packets_received: u64,
    /// Replies and watch events sent to clients, and the pieces of answers to four-letter words.
    pub packets_sent: u64,
    /// Clients connected.
    pub connections: u64,
    /// Requests received and not yet answered.
    pub outstanding: u64,
    /// Nodes, those of ZooKeeper itself among them.
    pub znodes: u64,
    /// Nodes that end with their session.
    pub ephemerals: u64,
    /// Watches set at this server: for data, existence or children.
    pub watches: u64,
    /// `standalone`, `leader` or `follower`.
    pub mode: String,
    /// Everything that `mntr` said, by key, without the `zk_` in front.
    pub all: BTreeMap<String, String>,
}

impl Stats {
    fn parse(answer: &str) -> Stats {
        let all: BTreeMap<String, String> = answer
            .lines()
            .filter_map(|line| line.strip_prefix("zk_")?.split_once('\t'))
            .map(|(key, value)| (key.to_owned(), value.trim().to_owned()))
            .collect();
        let number = |key: &str| {
            // Some versions print whole numbers with a ".0".
            let text = all.get(key).map_or("", String::as_str);
            text.split('.').next().unwrap_or_default().parse().unwrap_or(0)
        };
        Stats {
            packets_received: number("packets_received"),
            packets_sent: number("packets_sent"),
            connections: number("num_alive_connections"),
            outstanding: number("outstanding_requests"),
            znodes: number("znode_count"),
            ephemerals: number("ephemerals_count"),
            watches: number("watch_count"),
            mode: all.get("server_state").cloned().unwrap_or_default(),
            all,
        }
    }
}

/// How many nodes are watched at a server, from `wchs`. The server leaves out watches for children, which
/// [`Stats::watches`] counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchSummary {
    /// Connections that watch something.
    pub connections: u64,
    /// Paths that are watched.
    pub paths: u64,
    /// Watches for data or existence.
    pub watches: u64,
}

impl WatchSummary {
    fn parse(answer: &str) -> WatchSummary {
        let mut numbers =
            answer.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok());
        let mut next = || numbers.next().unwrap_or(0);
        WatchSummary { connections: next(), paths: next(), watches: next() }
    }
}

/// One client's connection, from `cons`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Connection {
    /// The client's address, as the server prints it.
    pub client: String,
    /// The client's session.
    pub session_id: i64,
    /// The timeout that was negotiated.
    pub timeout: Duration,
    /// Packets received on this connection.
    pub received: u64,
    /// Packets sent on this connection.
    pub sent: u64,
}

impl Connection {
    /// Connections without a session, such as the one that asks, are left out.
    fn parse_all(answer: &str) -> Vec<Connection> {
        answer.lines().filter_map(Connection::parse).collect()
    }

    fn parse(line: &str) -> Option<Connection> {
        let (client, rest) = line.trim().split_once('[')?;
        let (_, fields) = rest.split_once('(')?;
        let field = |key: &str| {
            let mut pairs = fields.trim_end_matches(')').split(',');
            pairs.find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
        };
        Some(Connection {
            client: client.trim_start_matches('/').to_owned(),
            session_id: parse_session(field("sid")?)?,
            timeout: Duration::from_millis(field("to")?.parse().ok()?),
            received: field("recved")?.parse().ok()?,
            sent: field("sent")?.parse().ok()?,
        })
    }
}

/// A map of lists, printed as a line for the key and an indented line for each item.
fn parse_lists(lines: &str) -> BTreeMap<String, Vec<String>> {
    let mut lists: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut key = String::new();
    for line in lines.lines() {
        match line.strip_prefix('\t') {
            Some(item) => lists.entry(key.clone()).or_default().push(item.to_owned()),
            None => key = line.trim_end_matches(':').to_owned(),
        }
    }
    lists
}

fn parse_session(text: &str) -> Option<i64> {
    let digits = text.trim().strip_prefix("0x")?;
    // The id is printed as an unsigned number.
    let bits = u64::from_str_radix(digits, 16).ok()?;
    Some(i64::from_be_bytes(bits.to_be_bytes()))
}

impl Server {
    /// `standalone`, `leader` or `follower`, by its own word; `None` when the server does not serve: it is stopped or
    /// frozen, still starting, or without a quorum.
    pub fn mode(&self) -> Option<String> {
        let answer = four_letter(self.addr(), "srvr", PROBE).ok()?;
        let mode = answer.lines().find_map(|line| line.strip_prefix("Mode: "))?;
        Some(mode.trim().to_owned())
    }

    /// Asks the server a four-letter word, all of which are allowed.
    ///
    /// # Errors
    /// As [`four_letter`]; a frozen server times out after five seconds.
    pub fn four_letter(&self, word: &str) -> Result<String> {
        four_letter(self.addr(), word, ANSWER)
    }

    /// The server's counters.
    ///
    /// # Errors
    /// As [`Server::four_letter`].
    pub fn stats(&self) -> Result<Stats> {
        Ok(Stats::parse(&self.four_letter("mntr")?))
    }

    /// How many watches for data or existence are set at this server.
    ///
    /// # Errors
    /// As [`Server::four_letter`].
    pub fn watch_summary(&self) -> Result<WatchSummary> {
        Ok(WatchSummary::parse(&self.four_letter("wchs")?))
    }

    /// The sessions that watch each path at this server for data or existence. The server does not tell who watches
    /// for children.
    ///
    /// # Errors
    /// As [`Server::four_letter`].
    pub fn watches(&self) -> Result<BTreeMap<String, Vec<i64>>> {
        let lists = parse_lists(&self.four_letter("wchp")?);
        let sessions =
            |names: Vec<String>| names.iter().filter_map(|name| parse_session(name)).collect();
        Ok(lists.into_iter().map(|(path, names)| (path, sessions(names))).collect())
    }

    /// The clients connected to this server.
    ///
    /// # Errors
    /// As [`Server::four_letter`].
    pub fn connections(&self) -> Result<Vec<Connection>> {
        Ok(Connection::parse_all(&self.four_letter("cons")?))
    }

    /// The ephemeral nodes of each session that has any, connected or not.
    ///
    /// # Errors
    /// As [`Server::four_letter`].
    pub fn ephemerals(&self) -> Result<BTreeMap<i64, Vec<String>>> {
        let answer = self.four_letter("dump")?;
        let start = answer.find("Sessions with Ephemerals").unwrap_or(answer.len());
        let end = answer.find("Connections dump").unwrap_or(answer.len());
        let lists = parse_lists(answer.get(start..end).unwrap_or_default());
        Ok(lists
            .into_iter()
            .filter_map(|(session, paths)| Some((parse_session(&session)?, paths)))
            .collect())
    }

    /// The sessions that this server, alone or as the leader, still counts as alive, connected or not.
    ///
    /// # Errors
    /// As [`Server::four_letter`].
    pub fn sessions(&self) -> Result<Vec<i64>> {
        let answer = self.four_letter("dump")?;
        let end = answer.find("ephemeral nodes dump").unwrap_or(answer.len());
        let tracked = answer.get(..end).unwrap_or_default();
        Ok(tracked
            .lines()
            .filter(|line| line.starts_with('\t'))
            .filter_map(parse_session)
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_whole_and_fractional() {
        let stats = Stats::parse(
            "zk_version\t3.8.0\nzk_packets_received\t12\nzk_watch_count\t3.0\nzk_server_state\tleader\n",
        );
        assert_eq!((stats.packets_received, stats.watches), (12, 3));
        assert_eq!(stats.mode, "leader");
        assert_eq!(stats.all["version"], "3.8.0");
    }

    #[test]
    fn the_connection_that_asks_is_no_client() {
        let answer = " /127.0.0.1:5000[1](queued=0,recved=3,sent=4,sid=0x1000,lop=PING,est=1,to=400,lcxid=0x1)\n \
                      /127.0.0.1:5001[0](queued=0,recved=1,sent=0)\n";
        let connections = Connection::parse_all(answer);
        assert_eq!(connections.len(), 1);
        assert_eq!(connections[0].client, "127.0.0.1:5000");
        assert_eq!(connections[0].session_id, 0x1000);
        assert_eq!(connections[0].timeout, Duration::from_millis(400));
    }

    #[test]
    fn watches_and_sessions_above_the_sign_bit_are_read() {
        let lists = parse_lists("/a\n\t0x1\n\t0xffffffffffffffff\n/b\n\t0x2\n");
        assert_eq!(lists["/a"].len(), 2);
        assert_eq!(parse_session("0xffffffffffffffff"), Some(-1));
        let summary = WatchSummary::parse("2 connections watching 3 paths\nTotal watches:4\n");
        assert_eq!((summary.connections, summary.paths, summary.watches), (2, 3, 4));
    }
}
