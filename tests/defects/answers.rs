//! Wrong answers: an error for "taken", "taken" for a free lock, a crash over a name.

use std::thread;

use test_support::{Bench, TIMEOUT, acquire_in_background, eventually, poll_until, session_id};
use zklock::Strategy;
use zklock_testing::Rule;
use zklock_testing::wire::{CreateMode, Op, Ops};

use crate::seeds::curator_locks::Optimised;
use crate::seeds::java_children::Children;
use crate::seeds::java_node::NodeBlockless;
use crate::seeds::peers::{Cancellable, make_directory_then_child};

#[test]
fn of_two_that_see_a_free_lock_the_slower_is_told_that_it_is_taken() {
    let mut bench = Bench::shared();
    let (client, other) = (bench.client(), bench.direct());
    let creates = |path: &str| Rule::request(Ops::creates()).path_prefix(path);
    let gate = bench.proxy.hold(creates(&bench.path).once());
    thread::scope(|scope| {
        let slower = scope.spawn(|| NodeBlockless { zk: &client }.lock(&bench.path, "a"));
        gate.wait_reached(TIMEOUT).unwrap();
        assert!(NodeBlockless { zk: &other }.lock(&bench.path, "b").unwrap());
        gate.release();
        let error = slower.join().unwrap().unwrap_err();
        assert!(error.is_node_exists(), "an exception, not an answer: {error}");
    });

    for strategy in [Strategy::Poll, Strategy::Watch, Strategy::Queue] {
        bench.next();
        if strategy != Strategy::Queue {
            bench.delete(&bench.path);
        }
        let gate = bench.proxy.hold(creates(&bench.path).once());
        let lock = bench.lock(&client).strategy(strategy);
        let slower = thread::spawn(move || lock.try_acquire().wait());
        gate.wait_reached(TIMEOUT).unwrap();
        let lock = bench.lock(&other).strategy(strategy);
        let guard = lock.try_acquire().wait().unwrap().unwrap();
        gate.release();
        assert!(slower.join().unwrap().unwrap().is_none(), "{strategy}");
        guard.release().wait().unwrap();
    }
}

#[test]
fn a_lock_makes_the_path_that_it_needs() {
    let bench = Bench::shared();
    let client = bench.direct();
    let path = format!("{}/invoices/2026", bench.path);
    let error = NodeBlockless { zk: &client }.lock(&path, "a").unwrap_err();
    assert!(error.is_no_node(), "{error}");

    for strategy in [Strategy::Poll, Strategy::Watch, Strategy::Queue] {
        let lock = client.lock(&format!("{path}/{strategy}")).strategy(strategy);
        lock.acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
    }
}

#[test]
fn a_lock_of_children_makes_the_directory_that_it_needs() {
    let bench = Bench::shared();
    let client = bench.direct();
    let uuid = "8a7ed3a3-3e4f-44c2-a8f0-3b6e6d0a9c11";
    let seed = Optimised { zk: &client, node: bench.path.clone(), uuid };
    assert!(seed.try_acquire().unwrap_err().is_no_node());

    bench.lock(&client).try_acquire().wait().unwrap().unwrap().release().wait().unwrap();
}

#[test]
fn a_directory_that_is_reaped_before_the_first_claim_is_made_again() {
    let mut bench = Bench::shared();
    let client = bench.client();
    let child = |path: &str| Rule::request(Ops::creates()).path_prefix(format!("{path}/")).once();
    let gate = bench.proxy.hold(child(&bench.path));
    thread::scope(|scope| {
        let making = scope.spawn(|| make_directory_then_child(&client, &bench.path));
        gate.wait_reached(TIMEOUT).unwrap();
        bench.delete(&bench.path);
        gate.release();
        assert!(making.join().unwrap().unwrap_err().is_no_node());
    });

    bench.next();
    let gate = bench.proxy.hold(child(&bench.path));
    let acquiring = acquire_in_background(&bench.lock(&client));
    gate.wait_reached(TIMEOUT).unwrap();
    bench.delete(&bench.path);
    gate.release();
    acquiring.join().unwrap().unwrap().release().wait().unwrap();
}

#[test]
fn a_child_that_is_no_claim_is_no_error() {
    let mut bench = Bench::with_directory();
    let client = bench.direct();
    bench.raw().create(&format!("{}/readme", bench.path), b"").unwrap();
    let error = Children::new(&client).lock_by_number(&bench.path).unwrap_err();
    assert_eq!(error.to_string(), "readme has no number");

    bench.next();
    for name in ["readme", "-", "lock-", "x-12", "é-0000000000x"] {
        bench.raw().create(&format!("{}/{name}", bench.path), b"").unwrap();
    }
    bench.lock(&client).try_acquire().wait().unwrap().unwrap().release().wait().unwrap();
}

#[test]
fn a_child_that_is_no_claim_blocks_nobody() {
    let mut bench = Bench::with_directory();
    let client = bench.direct();
    bench.raw().create(&format!("{}/config", bench.path), b"").unwrap();
    assert!(!Children::new(&client).lock_blockless(&bench.path).unwrap(), "nobody holds");

    bench.next();
    let mut raw = bench.raw();
    raw.create(&format!("{}/config", bench.path), b"").unwrap();
    // Even with a claim's name: no claim is persistent.
    let prefix = format!("{}/zl-2a-lock-", bench.path);
    raw.create_with(&prefix, b"", CreateMode::PersistentSequential).unwrap();
    let lock = bench.lock(&client);
    assert!(!lock.is_locked().wait().unwrap());
    lock.try_acquire().wait().unwrap().unwrap().release().wait().unwrap();
    lock.acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
}

#[test]
fn a_child_that_is_no_claim_is_no_holder() {
    let mut bench = Bench::with_directory();
    let client = bench.direct();
    bench.raw().create(&format!("{}/config", bench.path), b"").unwrap();
    assert!(Children::new(&client).exists(&bench.path).unwrap(), "nobody holds");

    bench.next();
    bench.raw().create(&format!("{}/config", bench.path), b"").unwrap();
    let lock = bench.lock(&client);
    assert!(!lock.is_locked().wait().unwrap());
    let guard = lock.try_acquire().wait().unwrap().unwrap();
    assert!(lock.is_locked().wait().unwrap());
    guard.release().wait().unwrap();
    assert!(!lock.is_locked().wait().unwrap());
}

#[test]
fn one_who_was_refused_is_in_nobodys_way() {
    let mut bench = Bench::with_directory();
    let (client, other) = (bench.client(), bench.direct());
    let mut holder = bench.stranger("lock-");
    let gate = bench.proxy.hold(Rule::request(Op::Delete).path_prefix(&bench.path).once());
    thread::scope(|scope| {
        let refused = scope.spawn(|| Children::new(&client).lock_blockless(&bench.path).unwrap());
        gate.wait_reached(TIMEOUT).unwrap();
        holder.leave();
        let second = Children::new(&other).lock_blockless(&bench.path).unwrap();
        gate.release();
        assert!(!refused.join().unwrap() && !second, "two tried, nobody got it");
    });
    assert!(bench.children().is_empty(), "and it was free");

    bench.next();
    let mut holder = bench.stranger("lock-");
    let gate = bench.proxy.hold(Rule::request(Op::Delete).path_prefix(&bench.path).once());
    assert!(bench.lock(&client).try_acquire().wait().unwrap().is_none());
    assert!(!gate.is_reached(), "it came without a claim, and left none");
    holder.leave();
    let guard = bench.lock(&other).try_acquire().wait().unwrap().expect("it is free");
    guard.release().wait().unwrap();
}

#[test]
fn a_cancellation_while_nobody_waits_does_not_end_the_next_acquire() {
    let mut bench = Bench::with_directory();
    let client = bench.direct();
    let mut seed = Cancellable::default();
    seed.cancel();
    assert!(!seed.acquire(&client, &bench.path).unwrap(), "it was free");

    bench.next();
    let lock = bench.lock(&client);
    // Given up before it began, while it waited, and after it had acquired.
    drop(lock.acquire());
    let mut holder = bench.stranger("lock-");
    let mut waiting = lock.acquire();
    let session = session_id(&client);
    poll_until(&mut waiting, || bench.watched_by(session) == [holder.path.clone()]);
    drop(waiting);
    holder.leave();
    drop(lock.acquire().within(TIMEOUT).wait().unwrap());
    let guard = lock.acquire().within(TIMEOUT).wait().unwrap();
    guard.release().wait().unwrap();
    eventually("nothing is left", || bench.children().is_empty());
}
