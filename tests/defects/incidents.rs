//! Incidents that became known by name. Each is replayed on real servers, first with a port of what suffered it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use test_support::{
    Bench, LONGEST_SESSION, Link, Lost, Process, TIMEOUT, acquire_in_background, child_about,
    connect, eventually, options, say, scaled, session_id, wait_for_another_session,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use zklock::zookeeper::{CreateMode, Op};
use zklock::{Client, GuardState, LostReason};
use zklock_testing::wire::{self, RawClient};
use zklock_testing::{Ensemble, Server};

use crate::seeds::leaders::{Broker, Enactor, Latch};

const SHORT: Duration = Duration::from_secs(2);

/// The errors that this process has logged.
struct Errors(Mutex<Vec<String>>);

static ERRORS: LazyLock<&'static Errors> = LazyLock::new(|| {
    let errors: &'static Errors = Box::leak(Box::new(Errors(Mutex::default())));
    tracing::subscriber::set_global_default(errors).unwrap();
    errors
});

impl Visit for &Errors {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0.lock().push(format!("{value:?}"));
        }
    }
}

impl Subscriber for &'static Errors {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::ERROR
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut &**self);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn is_noticed() -> bool {
    ERRORS.0.lock().iter().any(|line| line.contains("older history"))
}

fn at(address: SocketAddr) -> Client {
    options().session_timeout(SHORT).connect(&address.to_string()).wait().unwrap()
}

#[test]
fn a_second_ensemble_behind_the_same_name_is_noticed() {
    LazyLock::force(&ERRORS);
    let [first, second] = [(); 2].map(|()| Server::start().unwrap());
    let mut raw = RawClient::connect(first.addr(), TIMEOUT).unwrap();
    (0..50).for_each(|n| drop(raw.create(&format!("/history-{n}"), b"").unwrap()));
    let link = Link::to(first.addr());
    let (stays, moves) = (connect(&first), at(link.address));
    let broker = |zk| Broker { zk, node: "/controller".to_owned() };
    assert!(broker(&stays).elect().unwrap() && !broker(&moves).elect().unwrap());
    let (lock, moved) = (stays.lock("/locks/a"), moves.lock("/locks/a"));
    moved.acquire().wait().unwrap().release().wait().unwrap();
    let guard = lock.acquire().wait().unwrap();

    let session = session_id(&moves);
    link.lead_to(second.addr());
    link.lose(Lost::Reply, 0);
    wait_for_another_session(&moves, session);
    assert!(!is_noticed());
    assert!(broker(&moves).elect().unwrap(), "two lead, and nobody is told");

    // Nothing that is asked of the one ensemble tells of the other. What it says gives it away.
    let other = moved.acquire().within(TIMEOUT).wait().unwrap();
    assert_eq!(guard.state(), GuardState::Held);
    assert!(
        other.fencing_token() < guard.fencing_token(),
        "a store that checks it refuses the write"
    );
    eventually("it is noticed", is_noticed);
    let lines = ERRORS.0.lock().iter().filter(|line| line.contains("older history")).count();
    assert_eq!(lines, 1, "once for each session");
}

/// How many transactions are left of each epoch.
const LEFT: u64 = 300;

#[test]
fn nobody_holds_beside_the_holder_when_the_zxid_runs_out() {
    LazyLock::force(&ERRORS);
    let last = u64::from(u32::MAX) - LEFT;
    let builder = Server::builder().jvm_arg(format!("-Dzookeeper.testingonly.initialZxid={last}"));
    let ensemble: Ensemble = builder.start_ensemble(3).unwrap();
    let client = || options().connect(&ensemble.hosts()).wait().unwrap();
    let (zk, other, third) = (client(), client(), client());
    let make = |path: &str| {
        let created = zk.create(path, b"", CreateMode::Persistent).wait();
        let stat = created.map(|created| created.stat);
        stat.ok().map(|stat| stat.czxid >> 32)
    };
    let mut made = 0;
    // Writes until the next leader counts from the beginning.
    let mut run_out = || {
        let mut epoch = None;
        eventually("the next epoch", || {
            made += 1;
            let now = make(&format!("/made-{made}"));
            let before = *epoch.get_or_insert(now.unwrap_or(i64::MAX));
            now.is_some_and(|now| now > before)
        });
    };

    // The port gives up where a connection is lost, and an election loses all of them.
    let all_are_back = || {
        for zk in [&zk, &other] {
            eventually("it is back", || zk.exists("/").wait().is_ok());
        }
    };
    eventually("the port's directory", || make("/latch").is_some());
    all_are_back();
    let mut latches = [&zk, &other].map(|zk| Latch::new(zk, "/latch").unwrap());
    let [leader, follower] = &mut latches;
    leader.look().unwrap();
    run_out();
    all_are_back();
    // A reconnection resets both, and the follower's other thread has seen the leader's znode go.
    leader.begin_reset();
    follower.begin_reset();
    leader.end_reset().unwrap();
    follower.look().unwrap();
    follower.end_reset().unwrap();
    leader.look().unwrap();
    assert!(leader.leads && follower.leads, "two lead");

    let mut guard = zk.lock("/locks/a").acquire().wait().unwrap();
    let mut next = acquire_in_background(&other.lock("/locks/a"));
    for round in 0..scaled(2, 10) {
        run_out();
        let held = third.lock("/locks/a").try_acquire().within(TIMEOUT).wait();
        assert!(held.unwrap().is_none(), "{round}");
        // Suspended until its client is back, too.
        assert!(!guard.is_lost(), "{round}");
        eventually("it is held", || guard.state() == GuardState::Held);
        assert!(!next.is_finished(), "{round}");
        let token = guard.fencing_token();
        guard.release().wait().unwrap();
        guard = next.join().unwrap().unwrap();
        assert!(guard.fencing_token() > token, "{round}");
        let lock = if round % 2 == 0 { zk.lock("/locks/a") } else { other.lock("/locks/a") };
        next = acquire_in_background(&lock);
    }
    guard.release().wait().unwrap();
    next.join().unwrap().unwrap().release().wait().unwrap();
}

#[test]
fn an_old_plan_is_not_applied_after_a_newer_one() {
    let mut bench = Bench::with_directory();
    let (client, other) = (bench.direct(), bench.direct());
    let plans = |bench: &Bench| {
        let node = format!("{}-plan", bench.path);
        bench.ask(|raw| raw.create(&node, b"0")).unwrap();
        [&client, &other].map(|zk| Enactor { zk, node: node.clone() })
    };
    let [slow, fast] = plans(&bench);
    assert!(slow.is_newer(1).unwrap());
    assert!(fast.is_newer(2).unwrap());
    fast.apply(2).unwrap();
    // Long after its look.
    slow.apply(1).unwrap();
    assert_eq!(fast.in_place().unwrap(), 1, "the old plan is in place");

    bench.next();
    let [slow, fast] = plans(&bench);
    let guard = bench.lock(&client).acquire().wait().unwrap();
    assert!(slow.is_newer(1).unwrap());
    bench.expire(&client);
    let next = bench.lock(&other).acquire().within(TIMEOUT).wait().unwrap();
    assert!(fast.is_newer(2).unwrap());
    fast.zk.multi(&[next.check(), Op::set(&fast.node, "2")]).wait().unwrap();
    let late = slow.zk.multi(&[guard.check(), Op::set(&slow.node, "1")]).wait();
    // By its client, or by the end of the connection on which the session has ended.
    assert!(late.is_err());
    assert_eq!(fast.in_place().unwrap(), 2);
    next.release().wait().unwrap();
}

/// What a child process does; nothing in any other.
#[test]
fn in_a_child_process_a_leader_is_paused() {
    let Some(about) = child_about() else { return };
    let (hosts, path) = about.split_once(' ').unwrap();
    let client = options().session_timeout(SHORT).connect(hosts).wait().unwrap();
    let broker = Broker { zk: &client, node: format!("{path}-controller") };
    assert!(broker.elect().unwrap());
    let guard = client.lock(path).acquire().wait().unwrap();
    say(guard.fencing_token());
    // Decided while it led; here the pause begins.
    std::io::stdin().read_line(&mut String::new()).unwrap();
    eventually("its decision is written", || broker.write("stale").is_ok());
    let state = format!("{path}-state");
    say(client.multi(&[guard.check(), Op::set(&state, "stale")]).wait().is_err());
    say(guard.lost().get() == Some(LostReason::Session));
}

#[test]
fn a_leader_that_was_paused_writes_nothing_afterwards() {
    let bench = Bench::with_directory();
    let (controller, state) =
        (format!("{}-controller", bench.path), format!("{}-state", bench.path));
    for node in [&format!("{controller}-state"), &state] {
        bench.ask(|raw| raw.create(node, b"")).unwrap();
    }
    let about = format!("{} {}", bench.server.hosts(), bench.path);
    let mut child = Process::start_test("incidents::in_a_child_process_a_leader_is_paused", &about);
    let token: i64 = child.hear().unwrap().parse().unwrap();
    child.running.freeze();
    let client = bench.direct();
    let broker = Broker { zk: &client, node: controller };
    eventually("its session ends", || broker.elect().unwrap());
    broker.write("fresh").unwrap();
    let guard = bench.lock(&client).acquire().within(TIMEOUT).wait().unwrap();
    assert!(guard.fencing_token() > token);
    client.multi(&[guard.check(), Op::set(&state, "fresh")]).wait().unwrap();
    child.running.thaw();
    child.tell("");
    child.expect("true");
    child.expect("true");
    assert!(child.end().success());
    let read = |node: &str| client.get(node).wait().unwrap().data;
    assert_eq!(read(&format!("{}-state", broker.node)), b"stale", "the zombie's decision stands");
    assert_eq!(read(&state), b"fresh");
    guard.release().wait().unwrap();
}

/// Passes everything on, but for the session that a client asks for: it gets a new one.
fn that_resumes_no_session(server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Ends with the test's process.
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let Ok(mut server) = TcpStream::connect(server) else { continue };
            let mut length = [0; 4];
            client.read_exact(&mut length).unwrap();
            let mut hello = vec![0; u32::from_be_bytes(length) as usize];
            client.read_exact(&mut hello).unwrap();
            // Version, last zxid, timeout; the session and, behind its length, the password.
            hello[16..24].fill(0);
            hello[28..44].fill(0);
            server.write_all(&length).and_then(|()| server.write_all(&hello)).unwrap();
            let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || {
                drop(std::io::copy(&mut from, &mut to));
                drop(to.shutdown(std::net::Shutdown::Both));
            });
            thread::spawn(move || {
                drop(std::io::copy(&mut client, &mut server));
                drop(server.shutdown(std::net::Shutdown::Both));
            });
        }
    });
    address
}

#[test]
fn a_server_that_gives_another_session_than_the_one_asked_for_costs_the_lock() {
    let mut bench = Bench::shared();
    let address = that_resumes_no_session(bench.server.addr());
    let link = Link::to(address);
    let (ours, other) = (at(link.address), bench.direct());
    // A client that does not compare the session that it gets.
    let mut raw = RawClient::connect(address, SHORT).unwrap();
    let (session, password) = (raw.session_id(), raw.password());
    let leads = |raw: &mut RawClient, path: &str| {
        raw.create_with(path, b"", wire::CreateMode::Ephemeral).is_ok()
    };
    let parent = bench.path.rsplit_once('/').unwrap().0.to_owned();
    let node = format!("{parent}/controller");
    assert!(leads(&mut raw, &node));
    drop(raw);
    let raw = RawClient::attach(address, SHORT, session, &password).unwrap();
    assert_ne!(raw.session_id(), session, "and goes on");
    let broker = Broker { zk: &other, node };
    eventually("two lead", || broker.elect().unwrap());

    bench.next();
    let guard = bench.lock(&ours).acquire().within(TIMEOUT).wait().unwrap();
    link.lose(Lost::Reply, 0);
    assert_eq!(guard.lost().wait_timeout(TIMEOUT), Some(LostReason::Session));
    let next = bench.lock(&other).acquire().within(TIMEOUT).wait().unwrap();
    assert!(next.fencing_token() > guard.fencing_token());
    next.release().wait().unwrap();
}

#[test]
fn clients_of_a_server_that_is_away_do_not_storm_it() {
    let server = Server::start().unwrap();
    let (ours, theirs) = (Link::to(server.addr()), Link::to(server.addr()));
    // Its session outlives the outage, however busy the machine is.
    let patient = options().session_timeout(LONGEST_SESSION);
    let clients: Vec<Client> = (0..scaled(20, 60))
        .map(|_| patient.connect(&ours.address.to_string()).wait().unwrap())
        .collect();
    let sessions: Vec<i64> = clients.iter().map(session_id).collect();
    let guards: Vec<_> = clients
        .iter()
        .enumerate()
        .map(|(n, client)| client.lock(&format!("/locks/{n}")).acquire().wait().unwrap())
        .collect();
    server.stop().unwrap();
    let before = ours.connections();
    // One client that tries again as soon as it fails, until ours have tried.
    let mut tries = 0;
    eventually("each of ours has tried", || {
        tries += 1;
        assert!(RawClient::connect(theirs.address, SHORT).is_err());
        ours.connections() - before >= 2 * clients.len()
    });
    let ours_each = (ours.connections() - before) / clients.len();
    assert!(ours_each * 10 < tries, "{ours_each} times each, while it tried {tries} times");
    server.start_again().unwrap();
    for (n, client) in clients.iter().enumerate() {
        eventually("it is back", || client.exists("/").wait().is_ok());
        assert_eq!(session_id(client), sessions[n], "no session is opened anew");
        eventually("and holds", || guards[n].state() == GuardState::Held);
    }
}

/// What a child process does, where the hosts file is its own; nothing in any other.
#[test]
fn in_a_child_process_servers_move_to_other_addresses() {
    let Some(about) = child_about() else { return };
    let (server, file) = about.split_once(' ').unwrap();
    let server: SocketAddr = server.parse().unwrap();
    let resolves_to = |ip: &str| std::fs::write(file, format!("{ip} zookeeper.test\n")).unwrap();
    resolves_to("127.0.0.1");
    let mounted = std::process::Command::new("mount").args(["--bind", file, "/etc/hosts"]).status();
    assert!(mounted.unwrap().success());
    let link = Link::to(server);
    let port = link.address.port();
    let client = options().connect(&format!("zookeeper.test:{port}")).wait().unwrap();
    let guard = client.lock("/locks/moved").acquire().wait().unwrap();
    let session = session_id(&client);
    // A port which refuses.
    link.lead_to("127.0.0.3:1".parse().unwrap());
    link.lose(Lost::Reply, 0);
    let there = Link::between(SocketAddr::new("127.0.0.2".parse().unwrap(), port), server);
    // A client that keeps the address of its first resolution would never come back.
    assert!(RawClient::connect(link.address, SHORT).is_err());
    resolves_to("127.0.0.2");
    eventually("it is there", || there.connections() > 0 && client.exists("/").wait().is_ok());
    assert_eq!(session_id(&client), session);
    eventually("and holds", || guard.state() == GuardState::Held);
    guard.release().wait().unwrap();
    say("done");
}

#[test]
fn a_session_survives_when_its_servers_return_with_other_addresses() {
    let bench = Bench::shared();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("hosts");
    let about = format!("{} {}", bench.server.addr(), file.display());
    let test = "incidents::in_a_child_process_servers_move_to_other_addresses";
    std::fs::write(&file, "").unwrap();
    let Some(mut child) = Process::start_test_with_own_mounts(test, &about) else { return };
    child.expect("\"done\"");
    assert!(child.end().success());
}
