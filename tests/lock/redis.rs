//! Locks on a server of Redis: what is lost with requests, replies, and the server's memory.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tempfile::TempDir;
use test_support::{Running, TIMEOUT, acquire_in_background, eventually};
use zklock::{Code, GuardState, LockError, LostReason};

use crate::place::Elsewhere;

/// A server of a test's own.
pub struct Server {
    directory: TempDir,
    running: Mutex<Option<Running>>,
    port: u16,
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
        let mut server =
            Server { directory, running: Mutex::default(), port: 0, persistence, session_timeout };
        eventually("a server runs", || {
            server.port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            server.start()
        });
        server
    }

    /// Starts it, or starts it again; gives whether it runs.
    fn start(&self) -> bool {
        let mut command = Command::new("redis-server");
        command.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--dir"]);
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
        let _: () = self.ask(&["SET", "zklock:run", run.trim()]);
    }
}

impl Elsewhere for Server {
    fn address(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
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

impl crate::servers::Server for Server {
    fn addr(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    fn address_at(&self, address: SocketAddr) -> String {
        format!("redis://{address}")
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
    let server = Server::fresh(IN_MEMORY, SHORT);
    let (store, other) = (server.connect(), server.connect());
    // A new server may be one that has forgotten.
    let begun = Instant::now();
    assert!(store.lock(PATH).try_acquire().wait().unwrap().is_none());
    let late = store.lock(PATH).acquire().within(SHORT / 6).wait().unwrap_err();
    assert!(late.is_timeout() && late.to_string().contains("restarted or promoted"), "{late}");
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
fn a_server_that_keeps_everything_is_started_again_and_costs_nothing() {
    let server = Server::fresh(ON_DISK, Duration::from_secs(20));
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
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
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
fn a_claim_that_the_server_has_back_from_before_its_release_is_deleted() {
    let server = server_with(SHORT);
    let store = server.connect();
    let beside = store.lock("/locks/beside").acquire().wait().unwrap();
    let session: Vec<String> = server.ask(&["ZRANGE", "zklock:sessions", "0", "0"]);
    // As after a start from a log whose end is lost.
    let id = "00000000-0000-0000-0000-000000000007";
    let _: i64 = server.ask(&["ZREM", &format!("zklock:queue:{PATH}"), "stray"]);
    let _: i64 = server.ask(&["ZADD", &format!("zklock:queue:{PATH}"), "7", id]);
    let claim = format!("zklock:claim:{id}");
    let _: i64 = server.ask(&[
        "HSET",
        &claim,
        "number",
        "7",
        "session",
        &session[0],
        "lock",
        PATH,
        "kind",
        "0",
        "permits",
        "0",
        "since",
        "0",
        "host",
        "",
        "pid",
        "1",
        "thread",
        "",
        "label",
        "",
        "held",
        "1",
    ]);
    let _: i64 = server.ask(&["SADD", &format!("zklock:claims:{}", session[0]), id]);
    store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
    assert_eq!(beside.state(), GuardState::Held);
    let _: Result<(), LockError> = beside.release().wait();
}

#[test]
fn a_claim_that_the_server_has_lost_while_its_session_lives_is_a_lock_that_is_lost() {
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
}
