//! Asks the hosts themselves how they are, all at the same time, while the C client waits for one.
//!
//! The C client stays with a host that accepts and says nothing for two thirds of the session timeout:
//! among many of those it does not come to the good one in time. And it does not say why none took
//! the session. A host is asked for `srvr`: that opens no session, and every server answers it,
//! if only with a refusal.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::farewell::{self, LeftBehind, Route};
use super::hosts::resolve;
use super::secure::{self, NoTls, Stream};
use crate::runtime::now;
use crate::scarcity;
use crate::session_key::SessionKey;
use crate::tls::Tls;

/// How long servers may take to say whether they know a session.
const KNOW: Duration = Duration::from_secs(2);
/// How many hosts are asked at a time.
const AT_A_TIME: usize = 16;
/// How many hosts are named in an error.
const NAMED: usize = 3;
/// How much of an answer is read: its first line tells.
const ANSWER: usize = 256;

/// The state of a host, as far as known.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Finding {
    Unresolved,
    Unresolvable(String),
    Connecting,
    Unreachable(String),
    Refuses,
    /// It accepted, and has not answered yet.
    Silent,
    Closes,
    Foreign,
    Idle,
    Serves,
    /// It is asked without TLS, and wants it.
    WantsTls,
    /// It is asked by TLS, and can't be.
    NoTls(String),
    Scarce(String),
}

impl Finding {
    fn describe(&self, host: &str) -> String {
        let name = || host.rsplit_once(':').map_or(host, |(name, _)| name);
        match self {
            Finding::Unresolved => format!("still resolving the name {}", name()),
            Finding::Unresolvable(why) => format!("cannot resolve host {}: {why}", name()),
            Finding::Connecting => format!("no connection to {host} yet"),
            Finding::Unreachable(why) => format!("cannot reach {host}: {why}"),
            Finding::Refuses => format!("cannot connect to {host}: connection refused"),
            Finding::Silent => {
                format!("{host} accepts but does not answer: is it a ZooKeeper server?")
            }
            Finding::Closes => format!(
                "{host} closes the connection without an answer: it may have as many clients as its \
                 maxClientCnxns allows, or be no ZooKeeper server"
            ),
            Finding::WantsTls => format!("{host} expects TLS, and is asked without"),
            Finding::NoTls(why) => format!("no TLS with {host}: {why}"),
            Finding::Foreign => format!("{host} answers, but not as a ZooKeeper server does"),
            Finding::Idle => {
                format!("{host} is a ZooKeeper server, but serves nobody now: has it a quorum?")
            }
            Finding::Serves => format!("{host} is a ZooKeeper server, but took no session in time"),
            Finding::Scarce(what) => what.clone(),
        }
    }
}

/// The hosts of a client, and what is known of them.
pub(super) struct Hosts {
    /// As the C client takes them, without the chroot.
    hosts: Vec<String>,
    tls: Option<Tls>,
    findings: Mutex<Vec<Option<Finding>>>,
    /// When one was last found to serve.
    served: Mutex<Option<Instant>>,
}

impl Hosts {
    /// Of a host string in the C client's form.
    pub(super) fn new(hosts: &str, tls: Option<Tls>) -> Hosts {
        let list = hosts.split('/').next().unwrap_or_default();
        let hosts: Vec<String> =
            list.split(',').filter(|host| !host.is_empty()).map(str::to_owned).collect();
        let findings = Mutex::new(vec![None; hosts.len()]);
        Hosts { hosts, tls, findings, served: Mutex::default() }
    }

    pub(super) fn are_several(&self) -> bool {
        self.hosts.len() > 1
    }

    /// Their known faults, for an error. `None`: no fault is known.
    pub(super) fn describe(&self) -> Option<String> {
        let findings = self.findings.lock();
        let known = self.hosts.iter().zip(&*findings);
        let known: Vec<String> = known
            .filter_map(|(host, finding)| finding.as_ref().map(|finding| finding.describe(host)))
            .collect();
        let named = known.get(..NAMED).unwrap_or(&known).join("; ");
        match known.len().saturating_sub(NAMED) {
            0 => (!known.is_empty()).then_some(named),
            more => Some(format!("{named}; and {more} more")),
        }
    }

    /// Those that serve, first; `None` where nobody does, or everybody.
    pub(super) fn in_order(&self) -> Option<Vec<String>> {
        let findings = self.findings.lock();
        let (serving, others): (Vec<_>, Vec<_>) = self
            .hosts
            .iter()
            .zip(&*findings)
            .partition(|(_, finding)| **finding == Some(Finding::Serves));
        let is_of_use = !serving.is_empty() && !others.is_empty();
        is_of_use.then(|| serving.iter().chain(&others).map(|(host, _)| (*host).clone()).collect())
    }

    /// Whether a host was found to serve after that time, and none of the later findings says otherwise.
    pub(super) fn serve_since(&self, time: Instant) -> bool {
        self.served.lock().is_some_and(|served| served >= time)
            && self.findings.lock().contains(&Some(Finding::Serves))
    }

    /// The addresses of those that serve. Blocks for as long as names take to resolve.
    pub(super) fn serving(&self) -> Vec<SocketAddr> {
        let serving: Vec<&String> = {
            let findings = self.findings.lock();
            let known = self.hosts.iter().zip(&*findings);
            known.filter(|(_, it)| **it == Some(Finding::Serves)).map(|(host, _)| host).collect()
        };
        serving.into_iter().filter_map(|host| resolve(host).ok()).flatten().collect()
    }

    /// Whether the servers know a session with that timeout, if one answers soon. Blocks while that is wanted.
    pub(super) fn know(
        &self,
        session: &SessionKey,
        timeout: Duration,
        is_wanted: &dyn Fn() -> bool,
    ) -> Option<bool> {
        let deadline = now().checked_add(KNOW);
        let route = Route { hosts: &self.hosts, tls: self.tls.as_ref(), deadline };
        farewell::is_known(session, timeout, route, is_wanted)
    }

    /// Ends a session: see [`farewell::end_session`].
    pub(super) fn end_session(
        &self,
        left: &LeftBehind,
        deadline: Option<Instant>,
        confirm: bool,
    ) -> bool {
        let route = Route { hosts: &self.hosts, tls: self.tls.as_ref(), deadline };
        farewell::end_session(left, route, confirm)
    }

    /// Notes whether the C client is resolving names: all that is known before any host was asked.
    pub(super) fn resolving(&self, is_so: bool) {
        for (host, finding) in self.hosts.iter().zip(&mut *self.findings.lock()) {
            let is_name =
                host.rsplit_once(':').is_some_and(|(name, _)| name.parse::<IpAddr>().is_err());
            match finding {
                None if is_so && is_name => *finding = Some(Finding::Unresolved),
                Some(Finding::Unresolved) if !is_so => *finding = None,
                _ => {}
            }
        }
    }

    /// Asks all of them, each for no longer than `timeout` at each step. Blocks.
    pub(super) fn ask(&self, timeout: Duration) {
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(host) = self.hosts.get(at) else { return };
                let note = |finding| self.findings.lock()[at] = Some(finding);
                // What is known for certain stays until something else is.
                let meanwhile = |finding| {
                    let known = self.findings.lock()[at].clone();
                    if !matches!(known, Some(Finding::WantsTls | Finding::NoTls(_))) {
                        note(finding);
                    }
                };
                let finding = ask(host, timeout, self.tls.as_ref(), &meanwhile);
                if finding == Finding::Serves {
                    *self.served.lock() = Some(now());
                }
                note(finding);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.hosts.len().min(AT_A_TIME) {
                // With fewer threads it takes longer.
                let thread = std::thread::Builder::new().name("zklock-probe".into());
                let _ = thread.spawn_scoped(scope, work);
            }
            work();
        });
    }
}

/// Asks one host; `note` gets what is known meanwhile.
fn ask(host: &str, timeout: Duration, tls: Option<&Tls>, note: &impl Fn(Finding)) -> Finding {
    note(Finding::Unresolved);
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    match resolve(host) {
        Ok(addresses) => ask_each(name, &addresses, timeout, tls, note),
        Err(error) if scarcity::is_scarcity(&error) => Finding::Scarce(scarcity::describe(&error)),
        Err(error) => Finding::Unresolvable(error.to_string()),
    }
}

/// Asks the addresses of one host, until one serves.
fn ask_each(
    name: &str,
    addresses: &[SocketAddr],
    timeout: Duration,
    tls: Option<&Tls>,
    note: &impl Fn(Finding),
) -> Finding {
    let failed = |error: io::Error| {
        if scarcity::is_scarcity(&error) {
            return Finding::Scarce(scarcity::describe(&error));
        }
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Finding::Refuses,
            // It was there for a moment.
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Finding::Closes,
            _ => Finding::Unreachable(error.to_string()),
        }
    };
    let mut found = Finding::Unresolvable("the name has no address".to_owned());
    let connect = |address: &SocketAddr| {
        let stream = TcpStream::connect_timeout(address, timeout)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(stream)
    };
    for address in addresses {
        note(Finding::Connecting);
        found = match connect(address) {
            Ok(stream) => {
                note(Finding::Silent);
                match secure::dial(stream, name, tls) {
                    Ok(stream) => question(stream, tls),
                    Err(NoTls::Silent) => Finding::Silent,
                    Err(NoTls::Because(why)) => Finding::NoTls(why),
                }
            }
            Err(error) => failed(error),
        };
        let is_odd = matches!(found, Finding::Closes | Finding::Foreign | Finding::Silent);
        if is_odd && tls.is_none() && connect(address).is_ok_and(answers_tls) {
            found = Finding::WantsTls;
        }
        if found == Finding::Serves {
            break;
        }
    }
    found
}

/// The first record of a client of TLS 1.2: its version, 32 random bytes, no session, three suites, no compression. A
/// server with TLS goes on with it, or answers with an alert.
fn client_hello() -> Vec<u8> {
    let suites = [0xc0, 0x2b, 0xc0, 0x2f, 0x00, 0x2f];
    let hello = [&[3, 3][..], &[7; 32], &[0, 0, 6], &suites, &[1, 0]].concat();
    let [.., high, low] = (hello.len() + 4).to_be_bytes();
    let [.., inner_high, inner_low] = hello.len().to_be_bytes();
    [&[0x16, 3, 1, high, low, 1, 0, inner_high, inner_low][..], &hello].concat()
}

/// Whether TLS is spoken there: an alert or a handshake comes back.
fn answers_tls(mut stream: TcpStream) -> bool {
    let mut answer = [0; 2];
    let read = stream.write_all(&client_hello()).and_then(|()| stream.read_exact(&mut answer));
    read.is_ok() && matches!(answer, [0x15 | 0x16, 3])
}

fn question(mut stream: Box<dyn Stream>, tls: Option<&Tls>) -> Finding {
    let mut answer = [0; ANSWER];
    let read = stream.write_all(b"srvr").and_then(|()| stream.read(&mut answer));
    let is_silence = |error: &io::Error| {
        matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
    };
    match read {
        Err(error) if is_silence(&error) => Finding::Silent,
        Err(error) => secure::alert(&error, tls).map_or(Finding::Closes, Finding::NoTls),
        Ok(0) => Finding::Closes,
        Ok(read) => {
            let answer = String::from_utf8_lossy(&answer[..read]);
            if answer.starts_with("Zookeeper version") || answer.contains("not in the whitelist") {
                Finding::Serves
            } else if answer.contains("not currently serving") {
                Finding::Idle
            } else {
                Finding::Foreign
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};

    fn listener() -> TcpListener {
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
    }

    fn address(listener: &TcpListener) -> SocketAddr {
        listener.local_addr().unwrap()
    }

    /// A host that gives this answer once.
    fn answering(answer: &'static [u8]) -> SocketAddr {
        let listener = listener();
        let host = address(&listener);
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 4]).unwrap();
            stream.write_all(answer).unwrap();
        });
        host
    }

    #[test]
    fn a_host_serves_if_one_of_its_addresses_does() {
        for serves_at in 0..3 {
            let mut addresses = [(); 3].map(|()| address(&listener()));
            addresses[serves_at] = answering(b"Zookeeper version: 3.8.0");
            let found = ask_each("name", &addresses, Duration::from_secs(60), None, &|_| ());
            assert_eq!(found, Finding::Serves, "address {serves_at}");
        }
    }

    #[test]
    fn each_host_is_told_by_what_it_does() {
        let silent = listener();
        let hosts = [
            answering(b"Zookeeper version: 3.8.0"),
            answering(b"srvr is not executed because it is not in the whitelist."),
            answering(b"This ZooKeeper instance is not currently serving requests"),
            answering(b"HTTP/1.1 400 Bad Request"),
            answering(b""),
            address(&silent),
            address(&listener()),
        ];
        let hosts = hosts.iter().map(ToString::to_string);
        let hosts: Vec<_> = hosts.chain(["no-such-host.invalid:2181".to_owned()]).collect();
        let known = Hosts::new(&format!("{}/chroot", hosts.join(",")), None);
        known.ask(Duration::from_millis(300));
        let found = known.findings.lock().clone();
        let found: Vec<Finding> = found.into_iter().map(Option::unwrap).collect();
        let expected = [
            Finding::Serves,
            Finding::Serves,
            Finding::Idle,
            Finding::Foreign,
            Finding::Closes,
            Finding::Silent,
            Finding::Refuses,
        ];
        assert_eq!(found[..7], expected);
        assert!(matches!(found[7], Finding::Unresolvable(_)), "{:?}", found[7]);
        assert_eq!(known.serving().len(), 2);
        assert_eq!(known.in_order().unwrap()[..2], hosts[..2]);
        assert!(known.describe().unwrap().ends_with("; and 5 more"));
    }
}
