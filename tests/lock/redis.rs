//! Locks on a server of Redis: what is lost with requests, replies, and the server's memory.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tempfile::TempDir;
use test_support::{Running, TIMEOUT, acquire_in_background, eventually};
use zklock::stores::StoreOptions;
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
fn a_server_that_is_gone_costs_the_lock_in_time_and_is_waited_for() {
    let server = server_with(SHORT);
    let store = server.connect();
    let guard = store.lock(PATH).acquire().wait().unwrap();
    let mut states = guard.states();
    assert_eq!(states.wait(), Some(GuardState::Held));
    server.kill();
    assert_eq!(states.wait_timeout(TIMEOUT), Some(Some(GuardState::Suspended)));
    assert_eq!(states.wait_timeout(TIMEOUT), Some(Some(GuardState::Lost)));
    let waiting = acquire_in_background(&store.lock(PATH));
    assert!(guard.release().wait().unwrap_err().is_lost());
    assert!(server.start());
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

/// What is lost between a client and its server, which knows nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    Request,
    Reply,
}

/// Passes everything on, but for what is to be lost next: with it its connection is lost.
struct Link {
    address: SocketAddr,
    /// After so many more frames.
    next: Arc<Mutex<Option<(Lost, u32)>>>,
}

impl Link {
    fn to(port: u16) -> Link {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, next) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(None)));
        let plan = Arc::clone(&next);
        // Ends with the test's process.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                for (from, to, lost) in
                    [(&client, &server, Lost::Request), (&server, &client, Lost::Reply)]
                {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let plan = Arc::clone(&plan);
                    thread::spawn(move || pass(from, to, lost, &plan));
                }
            }
        });
        Link { address, next }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, what: Lost, plan: &Mutex<Option<(Lost, u32)>>) {
    let mut bytes = [0; 65_536];
    loop {
        let length = from.read(&mut bytes).unwrap_or(0);
        let is_lost = {
            let mut plan = plan.lock();
            match &mut *plan {
                Some((lost, 0)) if *lost == what => plan.take().is_some(),
                Some((lost, left)) if *lost == what => {
                    *left -= 1;
                    false
                }
                _ => false,
            }
        };
        if length == 0 || is_lost || to.write_all(&bytes[..length]).is_err() {
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
            return;
        }
    }
}

#[test]
fn whatever_frame_is_lost_one_holds_at_a_time_and_nothing_is_left() {
    let server = server_with(Duration::from_secs(20));
    let link = Link::to(server.port);
    let options = StoreOptions::new().session_timeout(server.session_timeout);
    let store = options.connect(&format!("redis://{}", link.address)).wait().unwrap();
    let other = server.connect();
    let mut last = 0;
    for lost in [Lost::Request, Lost::Reply] {
        for frame in 0..6 {
            *link.next.lock() = Some((lost, frame));
            let guard = store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap();
            assert!(other.lock(PATH).try_acquire().wait().unwrap().is_none(), "{lost:?} {frame}");
            // Also where the row is gone when the release is repeated: it was this one's.
            guard.release().wait().unwrap();
            let next = other.lock(PATH).acquire().within(TIMEOUT).wait().unwrap();
            assert!(next.fencing_token() > last);
            last = next.fencing_token();
            next.release().wait().unwrap();
        }
    }
    drop(store);
    eventually("nothing is left", || {
        server.ask::<Vec<String>>(&["KEYS", "zklock:claim:*"]).is_empty()
    });
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
