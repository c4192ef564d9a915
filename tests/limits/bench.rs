//! What the scenarios work on, how many they are, and what they measure.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_executor::Executor;
use futures_lite::future;
use zklock::{Client, ClientOptions};
pub use zklock_testing::eventually;
use zklock_testing::{Server, Stats};

/// How long anything may take that is certain to come: no crowd here takes as long on any machine.
pub const TIMEOUT: Duration = Duration::from_secs(600);
/// The session timeout where it does not matter.
pub const SESSION: Duration = Duration::from_secs(30);

pub fn options() -> ClientOptions {
    Client::options().session_timeout(SESSION).operation_timeout(TIMEOUT).connect_timeout(TIMEOUT)
}

pub fn client(server: &Server) -> Client {
    options().connect(&server.hosts()).wait().unwrap()
}

/// Whether the figures of `docs/limits.md` are wanted.
pub fn is_long() -> bool {
    std::env::var_os("ZKLOCK_LIMITS").is_some()
}

/// How many there are: `few` in the test suite, `many` for the tables.
pub fn number(few: usize, many: usize) -> usize {
    if is_long() { many } else { few }
}

/// A line of a table.
pub fn report(line: &str) {
    if is_long() {
        println!("| {line} |");
    }
}

/// What this process takes of memory, in bytes, as the kernel counts it.
pub fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kibibytes: usize = line.split_whitespace().next().unwrap().parse().unwrap();
    kibibytes << 10
}

/// Asks a server how it is, and leaves out of what it has received that it was asked.
pub struct Meter<'a> {
    server: &'a Server,
    asked: AtomicU64,
}

impl<'a> Meter<'a> {
    pub fn new(server: &'a Server) -> Meter<'a> {
        Meter { server, asked: AtomicU64::new(0) }
    }

    pub fn stats(&self) -> Stats {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.server.stats().unwrap()
    }

    /// Requests that the server has got, pings and heartbeats among them: only differences mean anything.
    pub fn requests(&self) -> u64 {
        let asked = self.asked.load(Ordering::Relaxed);
        self.stats().packets_received.saturating_sub(asked)
    }
}

/// How many pings and heartbeats there are at the most in that time, from so many clients.
pub fn background(clients: usize, time: Duration) -> f64 {
    clients as f64 * (1.0 + 10.0 * time.as_secs_f64() / SESSION.as_secs_f64())
}

/// Runs `body` while a thread of its own runs the tasks of a crowd.
pub fn with_crowd<T>(body: impl FnOnce(&Executor<'static>) -> T) -> T {
    let crowd = Executor::new();
    let (done, ended) = oneshot::async_channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(|| future::block_on(crowd.run(async { ended.await.unwrap_or_default() })));
        let outcome = body(&crowd);
        drop(done);
        outcome
    })
}
