//! What a client remembers of locks by key that nobody uses any more is bounded.

use dhat::{Alloc, HeapStats, Profiler};
use test_support::scaled;
use zklock::{Client, KeyedLocks};
use zklock_testing::Server;

#[global_allocator]
static ALLOC: Alloc = Alloc;

/// Acquires and releases the locks of so many new keys; gives how much is allocated at most in between.
fn use_keys(locks: &KeyedLocks, from: usize, keys: usize) -> usize {
    let mut most = 0;
    for key in (from..from + keys).step_by(50) {
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
    let keys = scaled(500, 2_500);
    let most: Vec<usize> = (0..4).map(|phase| use_keys(&locks, phase * keys, keys)).collect();
    drop(profiler);
    println!("bytes at most in each {keys} keys: {most:?}");
    // What is not used any more goes in portions.
    let (early, late) = (most[0].max(most[1]), most[2].max(most[3]));
    assert!(late <= early + early / 4, "{most:?}");
}
