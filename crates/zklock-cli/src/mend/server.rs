//! What one server says of itself, by its four-letter words.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use zklock_testing::{Error, four_letter};

use crate::text::one_line;

/// How long a server may take to answer.
const ANSWER: Duration = Duration::from_secs(3);

/// What a server has answered.
#[derive(Clone, Debug, Default)]
pub struct ServerSays {
    pub name: String,
    pub version: Option<String>,
    pub mode: Option<String>,
    /// Of `conf`, where that is allowed.
    pub tick: Option<Duration>,
    pub shortest_session: Option<Duration>,
    pub longest_session: Option<Duration>,
    pub has_tls: bool,
    /// Of `mntr`, where that is allowed.
    pub numbers: HashMap<String, f64>,
}

/// Why a server says nothing of itself, and what to do.
pub type Silence = (String, &'static str);

/// # Errors
/// Why it says nothing.
pub fn ask(name: &str, address: SocketAddr) -> Result<ServerSays, Silence> {
    let answer =
        four_letter(address, "srvr", ANSWER).map_err(|error| silence(name, kind(&error)))?;
    let mut says = read_srvr(name, &answer)?;
    let optional = |word| four_letter(address, word, ANSWER).unwrap_or_default();
    says.read_conf(&optional("conf"));
    says.read_mntr(&optional("mntr"));
    Ok(says)
}

fn kind(error: &Error) -> ErrorKind {
    match error {
        Error::Io { source, .. } => source.kind(),
        _ => ErrorKind::TimedOut,
    }
}

fn silence(name: &str, kind: ErrorKind) -> Silence {
    match kind {
        ErrorKind::ConnectionRefused => {
            (format!("cannot connect to {name}: connection refused"), "start the server")
        }
        ErrorKind::TimedOut | ErrorKind::WouldBlock => (
            format!("{name} does not answer"),
            "is it stopped or overloaded, or does a firewall drop what is sent to it?",
        ),
        ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof | ErrorKind::InvalidData => {
            (format!("{name} closes the connection without an answer"), "is this ZooKeeper?")
        }
        other => (format!("cannot connect to {name}: {other}"), "check the network"),
    }
}

fn read_srvr(name: &str, answer: &str) -> Result<ServerSays, Silence> {
    let field = |key: &str| {
        let line = answer.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim().to_owned())
    };
    if answer.contains("not in the whitelist") {
        return Ok(ServerSays { name: name.to_owned(), ..ServerSays::default() });
    }
    let Some(mode) = field("Mode:") else {
        return Err(match answer.lines().next().map(one_line) {
            Some(line) if line.contains("not currently serving") => {
                let remedy =
                    "it has no quorum: start the other servers, or mend the network between them";
                (format!("{name} serves nobody"), remedy)
            }
            Some(line) => (format!("{name} answers {line:?}"), "is this ZooKeeper?"),
            None => silence(name, ErrorKind::UnexpectedEof),
        });
    };
    let version = field("Zookeeper version:");
    let version = version.and_then(|text| Some(text.split(['-', ',']).next()?.to_owned()));
    Ok(ServerSays { name: name.to_owned(), version, mode: Some(mode), ..ServerSays::default() })
}

impl ServerSays {
    fn read_conf(&mut self, answer: &str) {
        let time = |key: &str| {
            let value = answer.lines().find_map(|line| line.strip_prefix(key))?;
            value.trim().parse().ok().map(Duration::from_millis)
        };
        self.tick = time("tickTime=");
        self.shortest_session = time("minSessionTimeout=");
        self.longest_session = time("maxSessionTimeout=");
        let tls_port = answer.lines().find_map(|line| line.strip_prefix("secureClientPort="));
        self.has_tls = tls_port.is_some_and(|port| port.trim().parse::<u16>().is_ok());
    }

    fn read_mntr(&mut self, answer: &str) {
        let pairs = answer.lines().filter_map(|line| line.split_once('\t'));
        let numbers =
            pairs.filter_map(|(key, value)| Some((key.to_owned(), value.trim().parse().ok()?)));
        self.numbers = numbers.collect();
    }

    /// The parts of its version: `3.8.0` is `[3, 8, 0]`.
    pub fn version_numbers(&self) -> Vec<u32> {
        let version = self.version.as_deref().unwrap_or_default();
        version.split('.').map_while(|part| part.parse().ok()).collect()
    }

    pub fn is(&self, mode: &str) -> bool {
        self.mode.as_deref() == Some(mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let answer = "Zookeeper version: 3.8.0-${mvngit.commit.id}, built on 2023\n\
                      Latency min/avg/max: 0/0.5/13\nMode: follower\n";
        let mut says = read_srvr("a", answer).unwrap();
        assert!(says.is("follower"));
        assert_eq!(says.version_numbers(), [3, 8, 0]);
        says.read_conf(
            "clientPort=1\nsecureClientPort=-1\ntickTime=2000\nminSessionTimeout=4000\n",
        );
        assert!(!says.has_tls);
        assert_eq!(says.tick, Some(Duration::from_secs(2)));
        assert_eq!(
            (says.shortest_session, says.longest_session),
            (Some(Duration::from_secs(4)), None)
        );
        says.read_conf("clientPort=1\nsecureClientPort=2182\n");
        assert!(says.has_tls);
        says.read_mntr("zk_watch_count\t7\nzk_server_state\tleader\nzk_avg_latency\t0.5\n");
        assert_eq!(says.numbers.get("zk_watch_count"), Some(&7.0));
    }

    #[test]
    fn a_server_that_serves_nobody_says_why() {
        let refusal = "This ZooKeeper instance is not currently serving requests\n";
        assert!(read_srvr("a", refusal).unwrap_err().1.contains("no quorum"));
        assert_eq!(read_srvr("a", "HTTP/1.1 400\n").unwrap_err().1, "is this ZooKeeper?");
        assert_eq!(read_srvr("a", "").unwrap_err().1, "is this ZooKeeper?");
        assert_eq!(
            read_srvr("a", "srvr is not executed because it is not in the whitelist.")
                .unwrap()
                .mode,
            None
        );
    }
}
