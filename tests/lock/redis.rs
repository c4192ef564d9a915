//! Locks on a server of Redis: what is lost with requests, replies, and the server's memory.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::Pid;
use tempfile::TempDir;
use test_support::{
    Link, Lost, Running, TIMEOUT, acquire_in_background, eventually, unless_it_stalls,
};
use zklock::{Code, GuardState, LockError, LostReason};
use zklock::{Store, StoreOptions};
use zklock_testing::Port;

use crate::endurance::{self, Fault, pause};
use crate::place::{Elsewhere, patient};
use crate::servers::{self, Server as _};

/// A server of a test's own.
pub struct Server {
    directory: TempDir,
    running: Mutex<Option<Running>>,
    port: Port,
    persistence: &'static [&'static str],
    pub session_timeout: Duration,
}

/// Nothing is written to the disk, or everything before it is answered.
const IN_MEMORY: &[&str] = &["--save", "", "--appendonly", "no"];
const ON_DISK: &[&str] = &["--save", "", "--appendonly", "yes", "--appendfsync", "always"];

impl Server {
    /// One that has been running for long.
    pub fn new() -> Server {
        let server = Server::fresh(IN_MEMORY, Duration::from_secs(10));
        server.settle();
        server
    }

    fn fresh(persistence: &'static [&'static str], session_timeout: Duration) -> Server {
        let directory = tempfile::tempdir().unwrap();
        let (running, port) = (Mutex::default(), Port::reserve().unwrap());
        let server = Server { directory, running, port, persistence, session_timeout };
        eventually("a server runs", || server.start());
        server
    }

    /// Starts it, or starts it again; gives whether it runs.
    fn start(&self) -> bool {
        let mut command = Command::new("redis-server");
        command.args(["--port", &self.port.number().to_string(), "--bind", "127.0.0.1", "--dir"]);
        command.arg(self.directory.path()).args(self.persistence);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut running = Running(command.spawn().expect("redis-server is installed"));
        let begun = Instant::now();
        while begun.elapsed() < TIMEOUT {
            if running.0.try_wait().unwrap().is_some() {
                return false;
            }
            let pong = self
                .client()
                .get_connection()
                .and_then(|mut connection| redis::cmd("PING").query::<String>(&mut connection));
            if pong.is_ok() {
                *self.running.lock() = Some(running);
                return true;
            }
            thread::sleep(Duration::from_millis(5));
        }
        false
    }

    fn kill(&self) {
        drop(self.running.lock().take());
    }

    fn client(&self) -> redis::Client {
        redis::Client::open(self.address()).unwrap()
    }

    fn ask<T: redis::FromRedisValue>(&self, command: &[&str]) -> T {
        let mut connection = self.client().get_connection().unwrap();
        let mut asked = redis::cmd(command[0]);
        asked.arg(&command[1..]);
        asked.query(&mut connection).unwrap()
    }

    /// As if its locks had been there since long before its start.
    fn settle(&self) {
        let info: String = self.ask(&["INFO", "server"]);
        let run = info.lines().find_map(|line| line.strip_prefix("run_id:")).unwrap();
        let _: () = self.ask(&["HSET", "zklock:state", "run", run.trim()]);
    }
}

impl Elsewhere for Server {
    fn address(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port.number())
    }

    fn session_timeout(&self) -> Duration {
        self.session_timeout
    }

    fn lose(&self, path: &str) {
        let holder: Vec<String> = self.ask(&["ZRANGE", &format!("zklock:queue:{path}"), "0", "0"]);
        let holder = format!("zklock:claim:{}", holder.first().expect("somebody holds it"));
        let session: String = self.ask(&["HGET", &holder, "session"]);
        // Its time has passed.
        let _: i64 = self.ask(&["ZADD", "zklock:sessions", "1", &session]);
    }
}

impl servers::Server for Server {
    fn addr(&self) -> SocketAddr {
        self.port.addr()
    }

    fn address_at(&self, address: SocketAddr) -> String {
        format!("redis://{address}")
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.running.lock().as_ref().unwrap().0)
    }

    fn kill(&self) {
        Server::kill(self);
    }

    fn start_again(&self) {
        assert!(self.start());
    }
}

pub fn server_with(session_timeout: Duration) -> Server {
    Server { session_timeout, ..Server::new() }
}

const PATH: &str = "/locks/redis";
const SHORT: Duration = Duration::from_secs(3);

#[test]
fn a_server_that_has_lost_its_memory_lets_nobody_in_before_a_lease_has_passed() {
    let begun = Instant::now();
    let server = Server::fresh(IN_MEMORY, SHORT);
    let (store, other) = (server.connect(), server.connect());
    // A new server may be one that has forgotten.
    assert!(store.lock(PATH).try_acquire().wait().unwrap().is_none());
    let guard = store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap();
    // By the server's clock, which counts milliseconds.
    assert!(begun.elapsed() + Duration::from_millis(10) >= SHORT);
    let token = guard.fencing_token();
    let waiting = acquire_in_background(&other.lock(PATH));
    eventually("it waits", || store.lock(PATH).contenders().wait().unwrap().len() == 2);
    server.kill();
    assert!(server.start());
    let next = waiting.join().unwrap().unwrap();
    assert!(guard.is_lost(), "two hold");
    assert_eq!(guard.lost().get(), Some(LostReason::Session));
    // A store that compares tokens refuses what the other writes late.
    assert!(next.fencing_token() > token);
    assert!(guard.release().wait().unwrap_err().is_lost());
    assert_eq!(next.state(), GuardState::Held);
    next.release().wait().unwrap();
}

#[test]
fn who_is_not_let_in_by_a_server_that_may_have_lost_its_memory_is_told_why() {
    let server = Server::fresh(IN_MEMORY, Duration::from_secs(3_600));
    let store = server.connect();
    eventually("an acquire that is too late says why", || {
        let limit = Duration::from_millis(300);
        let late = store.lock(PATH).acquire().within(limit).wait().unwrap_err();
        late.is_timeout() && late.to_string().contains("restarted or promoted")
    });
}

#[test]
fn a_server_that_keeps_everything_is_started_again_and_costs_nothing() {
    let server = Server::fresh(ON_DISK, Duration::from_secs(6));
    server.settle();
    let (store, other) = (server.connect(), server.connect());
    let guard = store.lock(PATH).acquire().wait().unwrap();
    let waiting = acquire_in_background(&other.lock(PATH));
    eventually("it waits", || store.lock(PATH).contenders().wait().unwrap().len() == 2);
    server.kill();
    assert!(server.start());
    eventually("both are there", || {
        store.lock(PATH).contenders().wait().is_ok_and(|two| two.len() == 2)
    });
    assert_eq!((guard.state() == GuardState::Lost, waiting.is_finished()), (false, false));
    guard.release().wait().unwrap();
    waiting.join().unwrap().unwrap().release().wait().unwrap();
}

#[test]
fn who_is_no_server_or_takes_no_password_is_named_and_the_password_is_not() {
    let server = server_with(SHORT);
    let _: () = server.ask(&["CONFIG", "SET", "requirepass", "right"]);
    let connect = |address: &str| zklock::connect(address).within(TIMEOUT).wait();
    let with = |password: &str| server.address().replace("//", &format!("//:{password}@"));
    for refused in [connect(&server.address()), connect(&with("wrong-secret"))] {
        let error = refused.unwrap_err();
        assert_eq!(error.code(), Code::NO_AUTH, "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    drop(connect(&with("right")).unwrap());
    let port = Port::reserve().unwrap();
    let nobody = port.addr();
    let error = connect(&format!("redis://:secret@{nobody}")).unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[test]
fn a_user_without_a_right_that_locks_need_is_refused_with_the_rights_that_are() {
    const RIGHTS: &str =
        "+@connection +@scripting +@pubsub +@read +@write +info +time ~zklock:* &zklock:*";
    let server = server_with(SHORT);
    let connect = |rights: &str| {
        let set = ["ACL", "SETUSER", "app", "reset", "on", ">secret"];
        let _: () = server.ask(&set.into_iter().chain(rights.split(' ')).collect::<Vec<_>>());
        zklock::connect(&server.address().replace("//", "//app:secret@")).within(TIMEOUT).wait()
    };
    for (lacks, named) in [
        ("-info", "INFO"),
        ("-zadd", "ZADD"),
        ("-evalsha", "evalsha"),
        ("-script|load", "script"),
        ("resetchannels", "PUBLISH zklock:"),
        ("resetkeys ~other:*", "SET zklock:"),
    ] {
        let error = connect(&format!("{RIGHTS} {lacks}")).unwrap_err();
        assert_eq!(error.code(), Code::NO_AUTH, "{lacks}: {error}");
        let line = error.to_string();
        assert!(line.contains(named) && line.contains(RIGHTS), "{lacks}: {line}");
        // The server forgets the script, which the first user that was let in has loaded.
        let _: () = server.ask(&["SCRIPT", "FLUSH"]);
    }
    let (store, other) = (connect(RIGHTS).unwrap(), connect(RIGHTS).unwrap());
    let guard = store.lock(PATH).acquire().wait().unwrap();
    let waiting = acquire_in_background(&other.lock(PATH));
    eventually("it waits", || store.lock(PATH).contenders().wait().unwrap().len() == 2);
    guard.release().wait().unwrap();
    waiting.join().unwrap().unwrap().release().wait().unwrap();
}

#[test]
fn a_node_of_a_cluster_is_refused_by_that_name() {
    const CLUSTER: &[&str] = &["--save", "", "--cluster-enabled", "yes"];
    let server = Server::fresh(CLUSTER, SHORT);
    let error = zklock::connect(&server.address()).within(TIMEOUT).wait().unwrap_err();
    assert_eq!(error.code(), Code::BAD_ARGUMENTS, "{error}");
    assert!(error.to_string().contains("node of a cluster"), "{error}");
}

/// A claim on the lock, of the only session, as after a start from a log whose end is lost.
fn plant_a_claim(server: &Server) {
    let session: Vec<String> = server.ask(&["ZRANGE", "zklock:sessions", "0", "0"]);
    let id = "00000000-0000-0000-0000-000000000007";
    let _: i64 = server.ask(&["ZADD", &format!("zklock:queue:{PATH}"), "7", id]);
    let fields = format!("number 7 lock {PATH} kind 0 permits 0 since 0 pid 1 held 1");
    let claim = format!("zklock:claim:{id}");
    let mut set = vec!["HSET", &claim, "session", &session[0]];
    set.extend(fields.split(' '));
    set.extend(["host", "", "thread", "", "label", ""]);
    let _: i64 = server.ask(&set);
    let _: i64 = server.ask(&["SADD", &format!("zklock:claims:{}", session[0]), id]);
}

#[test]
fn a_claim_that_the_server_has_back_from_before_its_release_is_deleted() {
    unless_it_stalls(SHORT / 4, || {
        let server = server_with(SHORT);
        let store = server.connect();
        let beside = store.lock("/locks/beside").acquire().wait().unwrap();
        plant_a_claim(&server);
        store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
        assert_eq!(beside.state(), GuardState::Held);
        let _: Result<(), LockError> = beside.release().wait();
    });
}

#[test]
fn a_claim_that_the_server_has_back_does_not_keep_out_a_client_that_only_tries() {
    let server = server_with(SHORT);
    let lock = server.connect().lock(PATH);
    lock.acquire().wait().unwrap().release().wait().unwrap();
    plant_a_claim(&server);
    // Seldom enough for a busy machine, often enough for the session to go on.
    eventually("it is free", || {
        std::thread::sleep(SHORT / 10);
        lock.try_acquire().wait().unwrap().is_some()
    });
}

#[test]
fn a_waiting_claim_that_an_operator_has_deleted_hinders_nobody() {
    unless_it_stalls(SHORT / 4, || {
        let server = server_with(SHORT);
        let (store, other) = (server.connect(), server.connect());
        let lock = store.lock(PATH);
        let guard = lock.acquire().wait().unwrap();
        let [first, second] = [(); 2].map(|()| other.lock(PATH).acquire());
        eventually("both wait", || lock.contenders().wait().unwrap().len() == 3);
        let queue: Vec<String> =
            server.ask(&["ZRANGE", &format!("zklock:queue:{PATH}"), "0", "-1"]);
        let _: i64 = server.ask(&["DEL", &format!("zklock:claim:{}", queue[2])]);
        let connections = || {
            let stats: String = server.ask(&["INFO", "stats"]);
            let line =
                stats.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
            line.unwrap().trim().parse::<u32>().unwrap()
        };
        let before = connections();
        assert!(lock.contenders().wait().unwrap().len() >= 2);
        let third = server.connect().lock(PATH);
        assert!(third.try_acquire().wait().unwrap().is_none());
        let made = connections() - before;
        assert!(made <= 10, "{made} connections");
        guard.release().wait().unwrap();
        // The second claims again.
        for next in [first, second] {
            next.within(TIMEOUT).wait().unwrap().release().wait().unwrap();
        }
    });
}

#[test]
fn a_claim_that_the_server_has_lost_while_its_session_lives_is_a_lock_that_is_lost() {
    unless_it_stalls(SHORT / 4, || {
        let server = server_with(SHORT);
        let store = server.connect();
        let (guard, beside) = (store.lock(PATH).acquire(), store.lock("/locks/beside").acquire());
        let (guard, beside) = (guard.wait().unwrap(), beside.wait().unwrap());
        let queue = format!("zklock:queue:{PATH}");
        let id = server.ask::<Vec<String>>(&["ZRANGE", &queue, "0", "0"]).remove(0);
        let session: String = server.ask(&["HGET", &format!("zklock:claim:{id}"), "session"]);
        for lost in [
            ["ZREM", &queue, &id].as_slice(),
            &["SREM", &format!("zklock:claims:{session}"), &id],
            &["DEL", &format!("zklock:claim:{id}")],
        ] {
            assert_eq!(server.ask::<i64>(lost), 1);
        }
        assert_eq!(guard.lost().wait_timeout(TIMEOUT), Some(LostReason::Deleted));
        assert_eq!(beside.state(), GuardState::Held);
        beside.release().wait().unwrap();
    });
}

/// A lease for tests that wait for one to pass.
const BRIEF: Duration = Duration::from_secs(1);

impl Server {
    fn replicates(&self, master: &Server) {
        let _: () = self.ask(&["REPLICAOF", "127.0.0.1", &master.port.number().to_string()]);
        eventually("it is a copy", || {
            self.ask::<String>(&["INFO", "replication"]).contains("master_link_status:up")
        });
    }

    /// It takes no writes any more.
    fn replicates_nobody_reachable(&self) {
        let _: () = self.ask(&["REPLICAOF", "127.0.0.1", "1"]);
    }

    /// Ends the connections of all clients.
    fn disconnect(&self) {
        for kind in ["normal", "pubsub"] {
            let _: i64 = self.ask(&["CLIENT", "KILL", "TYPE", kind]);
        }
    }

    fn by(&self, link: &Link) -> Store {
        let options = patient(self.session_timeout);
        options.connect(&self.address_at(link.address)).wait().unwrap()
    }

    /// How many scripts it has run.
    fn steps(&self) -> u64 {
        let stats: String = self.ask(&["INFO", "commandstats"]);
        let calls = stats.split("cmdstat_evalsha:calls=").nth(1).unwrap();
        calls.split(',').next().unwrap().parse().unwrap()
    }

    /// A claim that somebody else has written, on a session that ends then, by the server's clock.
    fn plant(&self, id: &str, session_ends: Option<&str>) {
        let number = id.trim_start_matches('x');
        let claim = format!("zklock:claim:{id}");
        let _: i64 = self.ask(&["ZADD", &format!("zklock:queue:{PATH}"), number, id]);
        let _: i64 = self.ask(&["SADD", "zklock:claims:somebody:else", id]);
        let fields = ["number", number, "session", "somebody:else", "lock", PATH, "kind", "0"];
        let more = ["held", "1", "since", "1", "host", "h", "pid", "1", "thread", "t", "label", ""];
        let _: i64 = self.ask(&[["HSET", claim.as_str()].as_slice(), &fields, &more].concat());
        if let Some(ends) = session_ends {
            let _: i64 = self.ask(&["ZADD", "zklock:sessions", ends, "somebody:else"]);
        }
    }
}

#[test]
fn a_client_that_comes_back_from_a_promoted_replica_lets_nobody_in_before_a_lease_has_passed() {
    let (old, new) = (server_with(BRIEF), Server::fresh(IN_MEMORY, BRIEF));
    let (link, other_link) = (Link::to(old.addr()), Link::to(old.addr()));
    let (store, other) = (old.by(&link), old.by(&other_link));
    drop(store.lock("/locks/before").acquire().wait().unwrap());
    drop(other.lock("/locks/before").acquire().wait().unwrap());
    // The replica is promoted, and serves both; the old server goes on without them.
    new.replicates(&old);
    let _: () = new.ask(&["REPLICAOF", "NO", "ONE"]);
    link.lead_to(new.addr());
    other_link.lead_to(new.addr());
    old.disconnect();
    drop(other.lock("/locks/after").acquire().within(TIMEOUT).wait().unwrap());
    let guard = store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap();
    // One is led back, and the other is cut off.
    link.lead_to(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)));
    other_link.lead_to(old.addr());
    new.kill();
    let next = other.lock(PATH).acquire().within(TIMEOUT).wait().unwrap();
    assert!(guard.is_lost(), "two hold");
    assert!(next.fencing_token() > guard.fencing_token());
}

#[test]
fn a_server_in_the_place_of_another_waits_for_leases_longer_than_its_clients() {
    const LONGER: Duration = Duration::from_secs(5);
    let (old, new) = (server_with(BRIEF), Server::fresh(IN_MEMORY, BRIEF));
    let (link, other_link) = (Link::to(old.addr()), Link::to(old.addr()));
    let store = old.by(&link);
    let _kept = store.lock("/locks/kept").acquire().wait().unwrap();
    // Later, so it is a renewal that tells the first of it.
    let other = patient(LONGER).connect(&old.address_at(other_link.address)).wait().unwrap();
    let guard = other.lock(PATH).acquire().wait().unwrap();
    std::thread::sleep(BRIEF);
    other_link.lead_to(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)));
    link.lead_to(new.addr());
    old.kill();
    let next = store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap();
    assert!(guard.is_lost(), "two hold");
    next.release().wait().unwrap();
}

#[test]
fn a_server_that_is_late_is_waited_for_as_long_as_the_program_says() {
    let server = Server::new();
    let link = Link::to(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)));
    let address = format!("redis://{}", link.address);
    let mut patient = StoreOptions::new().connect_timeout(TIMEOUT).connect(&address);
    let refused = zklock::connect(&address).wait().unwrap_err();
    assert_eq!(refused.code(), Code::API_ERROR, "{refused}");
    let tried = futures_lite::future::poll_once(&mut patient);
    assert!(futures_lite::future::block_on(tried).is_none(), "it has given up");
    link.lead_to(server.addr());
    drop(patient.wait().unwrap().lock(PATH).acquire().wait().unwrap());
}

#[test]
fn a_client_of_a_server_that_becomes_a_replica_connects_again() {
    let (old, new) = (server_with(BRIEF), Server::fresh(IN_MEMORY, BRIEF));
    let link = Link::to(old.addr());
    let store = old.by(&link);
    drop(store.lock(PATH).acquire().wait().unwrap());
    old.replicates(&new);
    link.lead_to(new.addr());
    let guard = store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap();
    assert!(!new.ask::<Vec<String>>(&["KEYS", &format!("zklock:queue:{PATH}")]).is_empty());
    guard.release().wait().unwrap();
}

#[test]
fn a_clock_that_is_set_back_keeps_nobody_out_for_longer_than_a_lease() {
    const FAR: &str = "99999999999999";
    let server = server_with(BRIEF);
    let _: i64 = server.ask(&["HSET", "zklock:state", "quiet", FAR]);
    // Of a client that is gone.
    server.plant("x7", Some(FAR));
    let store = server.connect();
    store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
}

#[test]
fn what_an_operator_has_deleted_keeps_nobody_out() {
    let server = server_with(BRIEF);
    let store = server.connect();
    server.plant("x7", None);
    store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
    server.plant("x8", Some("99999999999999"));
    let _: i64 = server.ask(&["DEL", "zklock:claim:x8"]);
    store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
}

#[test]
fn a_session_that_a_clock_which_was_set_back_keeps_for_years_ends_though_nobody_waits_for_it() {
    let server = server_with(BRIEF);
    let store = server.connect();
    server.plant("x7", Some("99999999999999"));
    let lock = store.lock(PATH);
    assert!(lock.try_acquire().wait().unwrap().is_none());
    eventually("it is free", || lock.try_acquire().wait().unwrap().is_some());
}

#[test]
fn where_the_answer_to_a_write_is_lost_it_is_not_said_to_have_failed() {
    let server = server_with(Duration::from_secs(3_600));
    let link = Link::to(server.addr());
    let store = server.by(&link);
    let semaphore = store.semaphore(PATH, 1);
    let guard = semaphore.permits(1).acquire().wait().unwrap();
    let permit = semaphore.permit();
    let holder = permit.holder().wait().unwrap().unwrap();
    // The first answer to come may be one on the connection for messages.
    let is_unknown = |write: &mut dyn FnMut() -> Option<LockError>| {
        let error = (0..30).find_map(|_| {
            link.lose(Lost::Reply, 0);
            write()
        });
        assert!(matches!(error, Some(LockError::OutcomeUnknown { .. })), "{error:?}");
    };
    is_unknown(&mut || semaphore.set_limit(2).within(TIMEOUT).wait().err());
    assert_eq!(semaphore.limit().within(TIMEOUT).wait().unwrap(), 2);
    is_unknown(&mut || permit.request_release(&holder, "why").within(TIMEOUT).wait().err());
    let mut requests = guard.release_requests();
    assert_eq!(requests.wait_timeout(TIMEOUT).unwrap().as_deref(), Some("why"));
}

#[test]
fn a_server_without_its_replicas_is_waited_for() {
    let server = server_with(SHORT);
    let store = server.connect();
    let guard = store.lock(PATH).acquire().wait().unwrap();
    let needs = |replicas| {
        let _: () = server.ask(&["CONFIG", "SET", "min-replicas-to-write", replicas]);
    };
    needs("1");
    let (waiting, releasing) =
        (acquire_in_background(&store.lock("/locks/beside")), guard.release());
    eventually("an acquire that is too late says why", || {
        let limit = Duration::from_millis(300);
        let late = store.lock(PATH).acquire().within(limit).wait().unwrap_err();
        late.is_timeout() && late.to_string().contains("NOREPLICAS")
    });
    assert!(!waiting.is_finished());
    needs("0");
    releasing.within(TIMEOUT).wait().unwrap();
    waiting.join().unwrap().unwrap().release().wait().unwrap();
}

#[test]
fn a_holder_whose_session_an_operator_has_deleted_is_told_before_another_acquires() {
    let server = server_with(BRIEF);
    let (store, other) = (server.connect(), server.connect());
    for _ in 0..3 {
        let guard = store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap();
        let _: i64 = server.ask(&["DEL", "zklock:sessions"]);
        let next = other.lock(PATH).acquire().within(BRIEF / 2).wait();
        assert!(next.is_err() || guard.is_lost(), "two hold");
        drop(guard);
        drop(next);
    }
}

#[test]
fn of_a_semaphore_that_nobody_uses_a_limit_is_kept_only_where_it_was_set() {
    let server = server_with(SHORT);
    let store = server.connect();
    let limits = || server.ask::<Vec<String>>(&["KEYS", &format!("zklock:*:{PATH}")]);
    let semaphore = store.semaphore(PATH, 3);
    let permits = [1, 2].map(|permits| semaphore.permits(permits).acquire().wait().unwrap());
    assert_eq!(store.semaphore(PATH, 5).limit().wait().unwrap(), 3);
    for permit in permits {
        permit.release().wait().unwrap();
    }
    assert!(limits().is_empty(), "{:?}", limits());
    semaphore.set_limit(4).wait().unwrap();
    semaphore.permits(1).acquire().wait().unwrap().release().wait().unwrap();
    assert_eq!(store.semaphore(PATH, 5).limit().wait().unwrap(), 4);
}

#[test]
fn holders_and_waiters_of_other_locks_are_not_told() {
    const BESIDE: usize = 20;
    const CYCLES: u64 = 200;
    let server = server_with(Duration::from_secs(60));
    let beside: Vec<_> = (0..BESIDE)
        .map(|at| {
            let (holder, waiter) = (server.connect(), server.connect());
            let guard = holder.lock(&format!("/beside/{at}")).acquire().wait().unwrap();
            let waiting = waiter.lock(&format!("/beside/{at}"));
            let waiting = acquire_in_background(&waiting);
            (holder, guard, waiting)
        })
        .collect();
    let store = server.connect();
    let lock = store.lock(PATH);
    eventually("all wait", || {
        let locks = (0..BESIDE).map(|at| store.lock(&format!("/beside/{at}")));
        locks.into_iter().all(|lock| lock.contenders().wait().unwrap().len() == 2)
    });
    let (before, begun) = (server.steps(), Instant::now());
    for _ in 0..CYCLES {
        lock.acquire().wait().unwrap().release().wait().unwrap();
    }
    let steps = server.steps() - before - 2 * CYCLES;
    // Each client looks by itself, twice a second at the most, and a few times more when it has just come.
    let clients = 2 * BESIDE as u64 + 1;
    let looks = clients * (2 * begun.elapsed().as_secs() + 10);
    assert!(looks < clients * CYCLES / 4, "too slow to tell");
    assert!(steps <= looks, "{steps} steps of others, {looks} looks");
    for (_holder, guard, waiting) in beside {
        guard.release().wait().unwrap();
        waiting.join().unwrap().unwrap().release().wait().unwrap();
    }
}

#[test]
fn a_hand_off_costs_no_look_at_other_locks() {
    const LOCKS: usize = 50;
    let server = server_with(Duration::from_secs(60));
    let (holder, waiter) = (server.connect(), server.connect());
    let lock = |store: &Store, at: usize| store.lock(&format!("{PATH}/{at}"));
    let guards: Vec<_> = (0..LOCKS).map(|at| lock(&holder, at).acquire().wait().unwrap()).collect();
    let waiting: Vec<_> = (0..LOCKS).map(|at| lock(&waiter, at).acquire()).collect();
    eventually("all wait", || {
        (0..LOCKS).all(|at| lock(&holder, at).contenders().wait().unwrap().len() == 2)
    });
    let (before, begun) = (server.steps(), Instant::now());
    for (guard, waiting) in guards.into_iter().zip(waiting) {
        guard.release().wait().unwrap();
        drop(waiting.within(TIMEOUT).wait().unwrap());
    }
    // A release, a look at that lock, and the release of the next; each client looks by itself twice a second.
    let steps = server.steps() - before;
    let most = 3 * LOCKS as u64 + 2 * LOCKS as u64 * (begun.elapsed().as_secs() + 1);
    assert!(steps <= most, "{steps} steps, at most {most}");
}

#[test]
fn a_message_that_is_lost_delays_a_waiter_and_no_more() {
    let server = server_with(Duration::from_secs(3_600));
    let (store, other) = (server.connect(), server.connect());
    for _ in 0..4 {
        let guard = store.lock(PATH).acquire().wait().unwrap();
        let waiting = acquire_in_background(&other.lock(PATH));
        eventually("it waits", || store.lock(PATH).contenders().wait().unwrap().len() == 2);
        let _: i64 = server.ask(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        guard.release().wait().unwrap();
        waiting.join().unwrap().unwrap().release().wait().unwrap();
    }
}

#[test]
fn thousands_hold_one_lock() {
    let server = server_with(Duration::from_secs(10));
    let many = "local function add(n) redis.call('ZADD', 'zklock:queue:'..ARGV[1], n, 'x'..n)
          redis.call('HSET', 'zklock:claim:x'..n, 'number', n, 'session', 's:1', 'lock', ARGV[1], 'kind', '2',
            'permits', '0', 'held', '1', 'since', '1', 'host', 'h', 'pid', '1', 'thread', 't', 'label', '') end
        redis.call('ZADD', 'zklock:sessions', '99999999999999', 's:1') for n = 1, 9000 do add(n) end";
    let _: () = server.ask(&["EVAL", many, "0", PATH]);
    let store = server.connect();
    let lock = store.read_write(PATH);
    let guard = lock.read().acquire().within(TIMEOUT).wait().unwrap();
    let writing = lock.write().try_acquire().wait().unwrap();
    assert!(writing.is_none());
    let waiting = acquire_in_background(&lock.write());
    // On a busy machine so many take longer than a lease.
    eventually("it waits", || {
        lock.write().contenders().wait().is_ok_and(|contenders| contenders.len() == 9_002)
    });
    guard.release().wait().unwrap();
    let _: () = server.ask(&["EVAL", "redis.call('DEL', 'zklock:queue:'..ARGV[1])", "0", PATH]);
    // Its claim is gone too, and made again.
    waiting.join().unwrap().unwrap().release().wait().unwrap();
}

#[test]
fn nobody_holds_beside_another_whatever_fails() {
    let (server, other) =
        (server_with(endurance::LEASE), Server::fresh(IN_MEMORY, endurance::LEASE));
    let links = servers::links(&server);
    let lead_to = |target: &Server| {
        links.iter().for_each(|link| link.lead_to(target.addr()));
    };
    let failed_over = Fault::new("failed over and back", |dice| {
        other.replicates(&server);
        lead_to(&other);
        server.disconnect();
        let _: () = other.ask(&["REPLICAOF", "NO", "ONE"]);
        thread::sleep(pause(dice, 200));
        lead_to(&server);
        other.disconnect();
    });
    let demoted = Fault::new("demoted and promoted", |dice| {
        other.replicates(&server);
        server.replicates_nobody_reachable();
        let _: () = other.ask(&["REPLICAOF", "NO", "ONE"]);
        lead_to(&other);
        thread::sleep(pause(dice, 200));
        server.replicates(&other);
        other.replicates_nobody_reachable();
        let _: () = server.ask(&["REPLICAOF", "NO", "ONE"]);
        lead_to(&server);
        other.disconnect();
    });
    let set_back = Fault::new("clock set back", |dice| {
        let script = "for _, session in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
            redis.call('ZINCRBY', KEYS[1], ARGV[1], session) end";
        let millis = pause(dice, 100).as_millis().to_string();
        let _: () = server.ask(&["EVAL", script, "1", "zklock:sessions", &millis]);
    });
    servers::try_server("redis", &server, &links, [failed_over, demoted, set_back]);
}
