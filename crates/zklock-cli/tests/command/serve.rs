//! `serve`: its page and its metrics, and what it costs the servers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

use test_support::{Bench, Running, TIMEOUT, acquire_in_background};
use zklock::Client;
use zklock::zookeeper::{Acl, CreateMode, Permissions};
use zklock_testing::wire::Op;
use zklock_testing::{Rule, eventually};

use super::program::zklock;

pub struct Served {
    address: SocketAddr,
    running: Running,
}

impl Served {
    fn start(hosts: &str, args: &[&str]) -> Served {
        let args = [&["serve", "--hosts", hosts, "--listen", "127.0.0.1:0"], args].concat();
        let mut child = zklock(&args).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().strip_suffix('/').and_then(|line| line.split("//").nth(1));
        let address = address.expect(&line).parse().expect(&line);
        Served { address, running: Running(child) }
    }

    fn send(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let _ = stream.write_all(request.as_bytes());
        let mut reply = Vec::new();
        // What it refuses it does not read to its end, and then the reply may be cut off.
        let _ = stream.read_to_end(&mut reply);
        String::from_utf8(reply).expect("text")
    }

    fn get(&self, path: &str) -> String {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address))
    }

    fn metrics(&self) -> Vec<(String, f64)> {
        let reply = self.get("/metrics");
        let body = reply.split("\r\n\r\n").nth(1).expect(&reply);
        let lines = body.lines().filter(|line| !line.starts_with('#'));
        let split = |line: &str| {
            line.rsplit_once(' ')
                .map(|(name, value)| (name.to_owned(), value.parse().expect("a number")))
        };
        lines.map(|line| split(line).expect("a metric")).collect()
    }

    fn metric(&self, name: &str) -> f64 {
        let metrics = self.metrics();
        let found = metrics.iter().find(|(has, _)| has == name);
        found.unwrap_or_else(|| panic!("{name}: {metrics:?}")).1
    }

    fn expect(&self, name: &str, value: f64) {
        eventually(&format!("{name} is {value}"), || self.has(name, value));
    }

    fn has(&self, name: &str, value: f64) -> bool {
        self.metrics().iter().any(|(has, is)| has == name && (is - value).abs() < 0.5)
    }
}

fn status(reply: &str) -> &str {
    reply.split(' ').nth(1).unwrap_or("none")
}

#[test]
fn holders_queues_and_what_became_of_them_are_shown_and_what_others_wrote_is_text() {
    let bench = Bench::untouched();
    let client = bench.direct();
    let path = "/locks/q\"uo<i>te";
    let label = "<script>alert('x')</script> & \u{1b}[2J";
    let held = client.lock(path).label(label).acquire().wait().unwrap();
    let served = Served::start(&bench.server.hosts(), &["/locks"]);
    served.expect("zklock_complete", 1.0);
    let other = bench.direct();
    let waiting = acquire_in_background(&other.lock(path).label("<b>behind</b>"));
    served.expect("zklock_waiters", 1.0);
    served.expect("zklock_locks_held", 1.0);
    // The path, with its quotation mark escaped once for people and all of it once more for Prometheus.
    served.expect(r#"zklock_lock_waiters{path="/locks/q\\\"uo<i>te"}"#, 1.0);

    let page = served.get("/");
    assert_eq!(status(&page), "200", "{page}");
    assert!(page.contains("&lt;script&gt;alert('x')&lt;/script&gt; &amp;  [2J"), "{page}");
    assert!(page.contains("&lt;b&gt;behind&lt;/b&gt;"), "{page}");
    assert!(page.contains("uo&lt;i&gt;te"), "{page}");
    assert!(
        !page.contains("<script>") && !page.contains("<b>behind") && !page.contains("<i>"),
        "{page}"
    );
    assert!(!page.contains('\u{1b}'), "{page}");
    assert!(page.contains("default-src 'none'"), "{page}");

    held.release().wait().unwrap();
    // It was not seen to begin, so it is in the timeline, but not in the histogram.
    served.expect("zklock_wait_seconds_count", 1.0);
    let second = waiting.join().unwrap().unwrap();
    assert_eq!(served.metric("zklock_hold_seconds_count"), 0.0);
    second.release().wait().unwrap();
    served.expect("zklock_hold_seconds_count", 1.0);
    served.expect("zklock_locks_held", 0.0);
    served.expect("zklock_claims_total", 1.0);
    let page = served.get("/now?minutes=5");
    assert_eq!(page.matches("<rect ").count(), 2, "{page}");
    assert!(page.contains("Nobody holds a lock there"), "{page}");
    // And no line of it is left behind.
    assert!(!served.get("/metrics").contains("zklock_lock_waiters{"));
}

#[test]
fn what_has_not_changed_is_not_sent_again() {
    let bench = Bench::untouched();
    let served = Served::start(&bench.server.hosts(), &[]);
    served.expect("zklock_complete", 1.0);
    eventually("two in a row are the same", || {
        let first = served.get("/now");
        let tag = first.lines().find_map(|line| line.strip_prefix("ETag: ")).expect("a version");
        let request = format!("GET /now HTTP/1.1\r\nIf-None-Match: {tag}\r\n\r\n");
        status(&served.send(&request)) == "304"
    });
}

#[test]
fn it_can_only_be_read_and_only_by_who_may() {
    let bench = Bench::shared();
    let served = Served::start(&bench.server.hosts(), &[]);
    assert_eq!(status(&served.send("POST / HTTP/1.1\r\n\r\n")), "405");
    assert_eq!(status(&served.send("nonsense\r\n\r\n")), "400");
    assert_eq!(status(&served.get("/etc/passwd")), "404");
    // The name of a site that leads here: its pages are not to read this one.
    assert_eq!(status(&served.send("GET / HTTP/1.1\r\nHost: site.example\r\n\r\n")), "421");
    let long = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(9_000));
    assert_eq!(status(&served.send(&long)), "431");
    let head = served.send("HEAD / HTTP/1.1\r\n\r\n");
    assert_eq!((status(&head), head.split("\r\n\r\n").nth(1)), ("200", Some("")));
    assert_eq!(status(&served.get("/page.js")), "200");
    assert_eq!(status(&served.get("/page.css")), "200");
}

#[test]
fn whoever_connects_and_says_nothing_keeps_nobody_out_and_costs_no_thread() {
    let bench = Bench::shared();
    let served = Served::start(&bench.server.hosts(), &[]);
    let threads =
        || std::fs::read_dir(format!("/proc/{}/task", served.running.0.id())).unwrap().count();
    let silent: Vec<TcpStream> =
        (0..200).map(|_| TcpStream::connect(served.address).unwrap()).collect();
    eventually("it answers", || status(&served.get("/healthz")) == "200");
    assert!(threads() < silent.len() / 4, "{}", threads());
    drop(silent);
}

#[test]
fn any_address_but_the_machines_own_is_warned_about() {
    let bench = Bench::shared();
    let mut command = zklock(&["serve", "--hosts", &bench.server.hosts(), "--listen", "0.0.0.0:0"]);
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let _running = Running(child);
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("0.0.0.0:") && line.contains("whoever can reach it"), "{line}");
}

#[test]
fn it_survives_a_lost_connection_and_an_expired_session() {
    let bench = Bench::own();
    let client = bench.direct();
    let held = bench.lock(&client).label("before").acquire().wait().unwrap();
    let served = Served::start(&bench.proxy.hosts(), &[]);
    eventually("it shows the holder", || served.get("/").contains("before ("));
    bench.proxy.cut();
    eventually("it says that it is not connected", || status(&served.get("/healthz")) == "503");
    assert!(served.get("/").contains("what is shown is old"));
    held.release().wait().unwrap();
    let held = bench.lock(&client).label("meanwhile").acquire().wait().unwrap();
    bench.proxy.heal();
    eventually("it shows who came meanwhile", || served.get("/now").contains("meanwhile ("));
    assert_eq!(status(&served.get("/healthz")), "200");
    assert!(served.metric("zklock_connection_losses_total") >= 1.0);

    let lost = served.metric("zklock_sessions_lost_total");
    bench.proxy.expire_sessions().unwrap();
    eventually("its session is lost", || served.metric("zklock_sessions_lost_total") > lost);
    held.release().wait().unwrap();
    let held = bench.lock(&client).label("after").acquire().wait().unwrap();
    eventually("it shows who came after that", || served.get("/now").contains("after ("));
    drop(held);
}

#[test]
fn the_end_of_a_session_is_told_from_a_release() {
    let bench = Bench::untouched();
    let (released, ended) = (bench.direct(), bench.direct());
    let hold = |client: &Client, path: &str| client.lock(path).acquire().wait().unwrap();
    let (a, b) = (hold(&released, "/locks/a"), hold(&released, "/locks/b"));
    let both = (hold(&ended, "/locks/c"), hold(&ended, "/locks/d"));
    let served = Served::start(&bench.server.hosts(), &[]);
    served.expect("zklock_locks_held", 4.0);
    a.release().wait().unwrap();
    b.release().wait().unwrap();
    served.expect("zklock_locks_held", 2.0);
    assert_eq!(served.metric("zklock_sessions_ended_total"), 0.0);
    bench.expire(&ended);
    served.expect("zklock_sessions_ended_total", 1.0);
    served.expect("zklock_locks_held", 0.0);
    drop(both);
}

const LOCKS: usize = 1_000;
const RATE: u64 = 500;

/// All that was asked of the server by way of the proxy, but for what keeps the session alive.
fn asked(bench: &Bench) -> u64 {
    use zklock_testing::Direction::Request;
    let counts = bench.proxy.counts();
    counts.iter().filter(|((way, op), _)| *way == Request && *op != Op::Ping).map(|(_, n)| n).sum()
}

#[test]
fn a_thousand_locks_cost_nothing_while_they_rest_and_no_more_than_the_rate_when_they_change() {
    let bench = Bench::own();
    let client = bench.direct();
    let all = |create: &dyn Fn(usize) -> zklock::Pending<zklock::zookeeper::Created>| {
        for some in (0..LOCKS).collect::<Vec<_>>().chunks(100) {
            let created: Vec<_> = some.iter().map(|number| create(*number)).collect();
            created.into_iter().for_each(|created| drop(created.wait().unwrap()));
        }
    };
    let directory = |number: usize| format!("{}/n{number}", bench.path);
    client.make_path(&bench.path).wait().unwrap();
    let claim = |number: usize| {
        let claim = format!("{}/x-0100002e67c5e000-", directory(number));
        client.create(&claim, b"somebody", CreateMode::EphemeralSequential)
    };
    all(&|number| client.create(&directory(number), b"", CreateMode::Persistent));
    all(&claim);

    let begin = Instant::now();
    let rate = RATE.to_string();
    let served = Served::start(&bench.proxy.hosts(), &["--rate", &rate]);
    served.expect("zklock_complete", 1.0);
    served.expect("zklock_locks_held", 1_000.0);
    // One listing of each znode, then one more of each lock and its claim.
    let first = asked(&bench);
    assert!(first <= 4 * LOCKS as u64, "{first}");

    // Until a change comes, there is nothing to ask for.
    claim(0).wait().unwrap();
    served.expect("zklock_waiters", 1.0);
    let rest = asked(&bench) - first;
    assert!(rest <= 8, "{rest} requests for one change");

    all(&claim);
    served.expect("zklock_waiters", 1_001.0);
    // What was saved up at the beginning, and what is on its way at once, come on top.
    let limit = RATE as f64 * (begin.elapsed() + Duration::from_secs(1)).as_secs_f64() + 256.0;
    let asked = asked(&bench);
    assert!((asked as f64) < limit, "{asked} requests, {limit} allowed");
    eprintln!(
        "{LOCKS} locks: {first} requests at first, {rest} for one change, {asked} in all in {:?}",
        begin.elapsed()
    );
}

#[test]
fn it_goes_on_though_it_may_not_read_more_locks_than_it_reads_at_once() {
    const AT_ONCE: usize = 64;
    let bench = Bench::own();
    let client = bench.direct();
    let unreadable = [Acl::new(Permissions::CREATE | Permissions::DELETE, "world", "anyone")];
    for number in 0..AT_ONCE + 6 {
        let lock = format!("{}/n{number}", bench.path);
        client.make_path(&lock).wait().unwrap();
        let (claim, mode) =
            (format!("{lock}/x-0100002e67c5e000-"), CreateMode::EphemeralSequential);
        client.create_with_acl(&claim, b"somebody", mode, &unreadable).wait().unwrap();
    }
    let served = Served::start(&bench.proxy.hosts(), &["--rate", "500"]);
    let reads = Rule::reply(Op::GetData).path_prefix(bench.path.as_str());
    bench.proxy.wait_for(&reads, AT_ONCE, TIMEOUT).unwrap();
    let visible = client.lock(&format!("{}/visible", bench.path)).label("visible");
    let held = visible.acquire().wait().unwrap();
    eventually("the next is shown", || served.get("/now").contains("visible ("));
    drop(held);
}

#[test]
fn a_path_that_does_not_exist_yet_is_shown_when_it_appears_and_when_it_comes_again() {
    let bench = Bench::shared();
    let client = bench.direct();
    let served = Served::start(&bench.server.hosts(), &[&bench.path]);
    served.expect("zklock_complete", 1.0);
    assert_eq!(served.metric("zklock_errors_total"), 0.0);
    for label in ["the first", "the second"] {
        let requests = served.metric("zklock_requests_total");
        let held = bench.lock(&client).label(label).acquire().wait().unwrap();
        eventually("it is shown", || served.get("/now").contains(label));
        held.release().wait().unwrap();
        served.expect("zklock_locks_held", 0.0);
        client.delete(&bench.path, None).wait().unwrap();
        assert!(served.metric("zklock_requests_total") < requests + 20.0);
    }
    assert_eq!(served.metric("zklock_errors_total"), 0.0);
}

#[test]
fn a_filter_shows_some_locks_and_each_leads_to_its_timeline() {
    let bench = Bench::shared();
    let client = bench.direct();
    let hold = |name: &str| {
        let lock = client.lock(&format!("{}/{name}", bench.path)).label(name);
        lock.acquire().wait().unwrap()
    };
    let held = [hold("one & only"), hold("other")];
    let second = bench.direct();
    let lock = second.lock(&format!("{}/other", bench.path));
    let waiting = acquire_in_background(&lock);
    let served = Served::start(&bench.server.hosts(), &[&bench.path]);
    eventually("it shows both", || {
        let page = served.get("/now");
        page.contains("one &amp; only (") && page.contains("1 waiting")
    });
    let page = served.get("/");
    let (_, link) = page.split_once("href=\"?minutes=15&amp;filter=").expect(&page);
    assert!(link.contains("#holds\""), "{link}");
    for target in ["/", "/now"] {
        let page = served.get(&format!("{target}?minutes=5&filter={}/one%20%26", bench.path));
        assert!(page.contains("one &amp; only (") && !page.contains("other ("), "{page}");
        assert_eq!(page.matches("<rect ").count(), 1, "{page}");
        assert_eq!(page.matches(">exclusive<").count(), 1, "{page}");
    }
    assert!(served.get("/now?filter=nothing").contains("No such lock"));
    drop(held);
    drop(waiting.join().unwrap());
}
