//! What the scenarios work on, how many they are, and what they measure.

use std::time::{Duration, Instant};

use async_executor::Executor;
use futures_lite::future;
use zklock::{Client, ClientOptions};
use zklock_testing::Server;

/// How long anything may take that is certain to come: no crowd here takes as long on any machine.
pub const PATIENCE: Duration = Duration::from_secs(600);
/// The session timeout where it does not matter.
pub const SESSION: Duration = Duration::from_secs(30);

pub fn options() -> ClientOptions {
    Client::options().session_timeout(SESSION).operation_timeout(PATIENCE).connect_timeout(PATIENCE)
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

/// Requests that the server has got, pings among them.
pub fn requests(server: &Server) -> u64 {
    server.stats().unwrap().packets_received
}

/// Looks again and again until it holds.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
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
