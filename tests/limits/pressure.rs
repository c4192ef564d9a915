//! Requests without end beside a lock that is held.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use zklock::zookeeper::{CreateMode, SessionState};
use zklock::{Code, GuardState};
use zklock_testing::Server;

use crate::bench::{TIMEOUT, eventually, options, with_crowd};

/// Reads of that size, as many at once as there is room for, on the client that holds a lock.
fn hold_while_reading(size: usize) {
    let server = Server::start().unwrap();
    // Longer than a busy machine keeps a heartbeat waiting, shorter than all these reads take.
    let timeout = Duration::from_secs(15);
    let client = options().session_timeout(timeout).connect(&server.hosts()).wait().unwrap();
    client.create("/data", &vec![7; size], CreateMode::Persistent).wait().unwrap();
    let guard = client.lock("/locks/held").acquire().wait().unwrap();
    let mut states = client.states();
    let (over, reads) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    with_crowd(|crowd| {
        let readers: Vec<_> = (0..16_000)
            .map(|_| {
                let (client, over, reads) = (client.clone(), Arc::clone(&over), Arc::clone(&reads));
                crowd.spawn(async move {
                    while !over.load(Ordering::Relaxed) {
                        match client.get("/data").await {
                            Ok(_) => reads.fetch_add(1, Ordering::Relaxed),
                            Err(error) if error.code() == Code::THROTTLED_OP => 0,
                            Err(error) => panic!("{error}"),
                        };
                    }
                })
            })
            .collect();
        let end = Instant::now() + timeout * 3 / 2;
        while Instant::now() < end {
            assert_eq!(guard.state(), GuardState::Held, "after {reads:?} reads");
            std::thread::sleep(Duration::from_millis(20));
        }
        over.store(true, Ordering::Relaxed);
        // Behind what its owner had submitted before, but never refused.
        guard.release().wait().unwrap();
        readers.into_iter().for_each(futures_lite::future::block_on);
    });
    assert!(reads.load(Ordering::Relaxed) > 0);
    assert_eq!(states.wait_timeout(Duration::ZERO).unwrap(), Some(SessionState::Connected));
    assert!(states.wait_timeout(Duration::ZERO).is_err(), "no other state came and went");
}

#[test]
fn a_lock_is_kept_behind_thousands_of_small_reads() {
    hold_while_reading(10);
}

#[test]
fn a_lock_is_kept_behind_thousands_of_large_reads() {
    hold_while_reading(500_000);
}

/// As in [`hold_while_reading`], of writes: the bytes that wait are bounded too.
#[test]
fn a_lock_is_kept_beside_more_bytes_than_there_is_room_for() {
    let server = Server::start().unwrap();
    let client = options().connect(&server.hosts()).wait().unwrap();
    client.create("/data", b"", CreateMode::Persistent).wait().unwrap();
    let guard = client.lock("/locks/held").acquire().within(TIMEOUT).wait().unwrap();
    server.freeze().unwrap();
    // Of a version that it never has: the server need not keep so much data.
    let data = vec![7; 500_000];
    let sets: Vec<_> = (0..400).map(|_| client.set("/data", &data, Some(9))).collect();
    let release = guard.release();
    server.thaw().unwrap();
    let (mut done, mut refused) = (0, 0);
    for set in sets {
        match set.wait() {
            Err(error) if error.code() == Code::BAD_VERSION => done += 1,
            Err(error) if error.code() == Code::THROTTLED_OP => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(done >= 100 && refused >= 100, "{done} done, {refused} refused");
    release.wait().unwrap();
    let lock = client.lock("/locks/held");
    eventually("it is free", || lock.contenders().wait().unwrap().is_empty());
}
