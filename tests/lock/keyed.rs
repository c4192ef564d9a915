//! Locks by key: they exclude as all locks do, and nothing is left of them.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use test_support::{TIMEOUT, eventually, poll_unless};
use zklock::{Guard, LockError};
use zklock_testing::wire::{Op, Ops};
use zklock_testing::{Action, Rule};

use crate::bench::Bench;

/// Nothing is below the path.
fn expect_nothing(bench: &Bench) {
    eventually("nothing is left", || bench.children().is_empty());
}

/// No claim is below the path: a lock's znode may be there until the servers remove it.
fn expect_no_claim(bench: &Bench) {
    eventually("no claim is left", || {
        bench.children().iter().all(|key| {
            let path = format!("{}/{key}", bench.path);
            bench.ask(|raw| raw.children(&path)).map_or(true, |claims| claims.is_empty())
        })
    });
}

#[test]
fn a_key_of_any_bytes_has_a_lock_of_its_own() {
    let bench = Bench::shared();
    let (locks, others) = (bench.direct().locks(&bench.path), bench.direct().locks(&bench.path));
    let long = vec![b'/'; 10_000];
    let keys: [&[u8]; 9] =
        [b"", b".", b"..", b"a/b", b"a%2fb", b"\0", b"\xff\xfe", b"a b\n", &long];
    let guards: Vec<Guard> =
        keys.iter().map(|key| locks.lock(key).acquire().within(TIMEOUT).wait().unwrap()).collect();
    for key in keys {
        assert!(others.lock(key).try_acquire().wait().unwrap().is_none());
    }
    assert_eq!(bench.children().len(), keys.len());
    for guard in guards {
        guard.release().wait().unwrap();
    }
    expect_nothing(&bench);
    let guard = others.lock("a/b").try_acquire().wait().unwrap().expect("it is free");
    assert_eq!(guard.claim_path().rsplit_once('/').unwrap().0, format!("{}/key-a%2fb", bench.path));
    drop(guard);
    expect_nothing(&bench);
    let endless = locks.lock(vec![b'/'; 400_000]).acquire().wait().unwrap_err();
    assert!(matches!(endless, LockError::Unusable { .. }), "{endless}");
}

#[test]
fn those_who_contend_exclude_each_other_while_its_znode_comes_and_goes() {
    const ROUNDS: usize = 40;
    let bench = Bench::shared();
    let inside = [const { AtomicUsize::new(0) }; 3];
    let held = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            let locks = bench.direct().locks(&bench.path);
            let (inside, held) = (&inside, &held);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let key = key_of(round);
                    let lock = locks.lock(key.to_string());
                    let guard = if round % 4 == 3 {
                        match lock.try_acquire().wait().unwrap() {
                            Some(guard) => guard,
                            None => continue,
                        }
                    } else {
                        lock.acquire().within(TIMEOUT).wait().unwrap()
                    };
                    assert_eq!(inside[key].fetch_add(1, Ordering::SeqCst), 0, "two hold {key}");
                    held.fetch_add(1, Ordering::SeqCst);
                    thread::yield_now();
                    inside[key].fetch_sub(1, Ordering::SeqCst);
                    guard.release().wait().unwrap();
                }
            });
        }
    });
    assert!(held.load(Ordering::SeqCst) >= 4 * ROUNDS * 3 / 4);
    expect_nothing(&bench);
}

/// A key that differs from round to round.
fn key_of(round: usize) -> usize {
    (round * 7 + round / 3) % 3
}

#[test]
fn nothing_is_left_of_thousands_of_keys() {
    const KEYS: usize = 3_000;
    let bench = Bench::shared();
    let locks = bench.client().locks(&bench.path);
    for keys in (0..KEYS).collect::<Vec<_>>().chunks(250) {
        let acquiring = keys.iter().map(|key| locks.lock(key.to_be_bytes()).acquire());
        let acquiring: Vec<_> = acquiring.collect();
        let guards: Vec<_> =
            acquiring.into_iter().map(|one| one.within(TIMEOUT).wait().unwrap()).collect();
        // Some are released, some dropped.
        for (at, guard) in guards.into_iter().enumerate() {
            if at % 2 == 0 { drop(guard.release()) } else { drop(guard) }
        }
    }
    // Not by the servers, which remove a container that is empty after a while.
    let deletes = Rule::request(Op::Delete).path_prefix(&bench.path);
    eventually("all are deleted", || bench.proxy.count(&deletes) == 2 * KEYS);
    expect_nothing(&bench);
    let requests = bench.asked().len();
    println!("{} requests for each of {KEYS} keys", requests as f64 / KEYS as f64);
}

#[test]
fn a_free_key_costs_five_requests() {
    let bench = Bench::shared();
    let locks = bench.client().locks(&bench.path);
    locks.lock("first").acquire().wait().unwrap().release().wait().unwrap();
    expect_nothing(&bench);
    let next = AtomicUsize::new(0);
    let asked = bench.asked_by(|| {
        let key = format!("key-{}", next.fetch_add(1, Ordering::Relaxed));
        locks.lock(&key).acquire().wait().unwrap().release().wait().unwrap();
        expect_nothing(&bench);
    });
    let claimed = [Op::CreateContainer, Op::Create2, Op::GetChildren2];
    assert_eq!(asked[..3], claimed, "{asked:?}");
    assert_eq!(asked[3..], [Op::Delete, Op::Delete], "{asked:?}");
}

#[test]
fn who_gives_up_leaves_nothing() {
    let bench = Bench::shared();
    let client = bench.client();
    let locks = client.locks(&bench.path);
    locks.lock("first").acquire().wait().unwrap().release().wait().unwrap();
    // A free lock, dropped before and after each answer.
    for stop in 0..8 {
        let mut acquiring = locks.lock(format!("free {stop}")).acquire();
        let replies = bench.proxy.count(&bench.replies());
        poll_unless(&mut acquiring, || bench.proxy.count(&bench.replies()) >= replies + stop);
        drop(acquiring);
        expect_nothing(&bench);
    }
    // One that is taken, whose holder goes first.
    let guard = bench.direct().locks(&bench.path).lock("taken").acquire().wait().unwrap();
    let waiting = locks.lock("taken").acquire().within(Duration::from_millis(100)).wait();
    assert!(waiting.unwrap_err().is_timeout());
    assert!(locks.lock("taken").try_acquire().wait().unwrap().is_none());
    assert_eq!(bench.children(), ["key-taken"]);
    let mut waiting = locks.lock("taken").acquire();
    eventually("it waits", || {
        let mut nobody = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut waiting).poll(&mut nobody).is_pending());
        bench.ask(|raw| raw.children(&format!("{}/key-taken", bench.path))).unwrap().len() == 2
    });
    guard.release().wait().unwrap();
    assert_eq!(bench.children(), ["key-taken"], "one waits in it");
    drop(waiting);
    expect_nothing(&bench);
}

#[test]
fn whatever_frame_is_lost_the_lock_is_held_once_and_then_free() {
    let bench = Bench::shared();
    let locks = bench.client().locks(&bench.path);
    locks.lock("first").acquire().wait().unwrap().release().wait().unwrap();
    for ops in [Ops::creates(), Ops::lists(), Op::Delete.into()] {
        for way in [Rule::request, Rule::reply] {
            // An acquire lists once.
            for nth in if ops == Ops::lists() { 1..=1 } else { 1..=2 } {
                let rule = way(ops.clone()).path_prefix(&bench.path).nth(nth);
                let what = format!("{rule:?}");
                let lost = bench.proxy.on(rule, Action::Drop);
                let guard = locks.lock(&what).acquire().within(TIMEOUT).wait().unwrap();
                let other = bench.direct().locks(&bench.path).lock(&what);
                assert!(other.try_acquire().wait().unwrap().is_none(), "{what}");
                guard.release().wait().unwrap();
                drop(other.try_acquire().wait().unwrap().expect("it is free"));
                lost.wait_hits(1, TIMEOUT).unwrap();
                lost.remove();
                expect_no_claim(&bench);
            }
        }
    }
}
