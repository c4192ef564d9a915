//! What a client remembers of locks by key that nobody uses any more is bounded.

use dhat::{Alloc, HeapStats, Profiler};
use zklock::{Client, Locks};
use zklock_testing::Server;

#[global_allocator]
static ALLOC: Alloc = Alloc;

const KEYS: usize = 2_500;

/// Acquires and releases the locks of new keys; gives how much is allocated at most in between.
fn use_keys(locks: &Locks, from: usize) -> usize {
    let mut most = 0;
    for key in (from..from + KEYS).step_by(50) {
        let acquiring: Vec<_> =
            (key..key + 50).map(|key| locks.lock(key.to_string()).acquire()).collect();
        for acquire in acquiring {
            acquire.wait().unwrap().release().wait().unwrap();
        }
        most = most.max(HeapStats::get().curr_bytes);
    }
    most
}

#[test]
fn what_is_remembered_of_keys_that_nobody_uses_is_bounded() {
    let server = Server::start().unwrap();
    let client = Client::connect(&server.hosts()).wait().unwrap();
    let locks = client.locks("/orders");
    let profiler = Profiler::builder().testing().build();
    let most: Vec<usize> = (0..4).map(|phase| use_keys(&locks, phase * KEYS)).collect();
    drop(profiler);
    println!("bytes at most in each {KEYS} keys: {most:?}");
    assert!(most[3] <= most[0] + most[0] / 4, "{most:?}");
}
