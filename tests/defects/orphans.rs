//! Claims that nobody knows of block everybody: after a lost reply, an error, a timeout, a crash.

use std::thread;
use std::time::{Duration, Instant};

use test_support::{Bench, TIMEOUT, acquire_in_background, eventually, session_id};
use zklock::Strategy;
use zklock::zookeeper::SessionState;
use zklock_testing::wire::{Op, Ops};
use zklock_testing::{Action, InstalledRule, Rule};

use crate::seeds::c_lock_test::Neighbour;
use crate::seeds::curator_locks::Simple;
use crate::seeds::java_children::Children;
use crate::seeds::java_node::NodeBlockless;
use crate::seeds::peers::Forgetful;
use crate::seeds::textbook::{Reentrant, UniqueName};

/// The server makes the next znode on the way, but its maker never hears of it.
fn lose_the_reply_to_a_create(bench: &Bench) -> InstalledRule {
    bench.proxy.on(Rule::reply(Ops::creates()).path_prefix(&bench.path).once(), Action::Drop)
}

#[test]
fn a_create_whose_reply_was_lost_is_not_called_a_refusal() {
    let mut bench = Bench::shared();
    let (client, other) = (bench.client(), bench.direct());
    lose_the_reply_to_a_create(&bench);
    let seed = NodeBlockless { zk: &client };
    assert!(!seed.lock(&bench.path, "a").unwrap());
    assert_eq!(bench.owner(&bench.path), Some(session_id(&client)), "it holds what it was refused");
    eventually("it is connected", || client.state() == SessionState::Connected);
    assert!(!seed.lock(&bench.path, "a").unwrap(), "it shuts itself out");
    assert!(!NodeBlockless { zk: &other }.lock(&bench.path, "b").unwrap(), "and everybody else");

    bench.path.push('2');
    bench.proxy.clear_rules();
    let lost = lose_the_reply_to_a_create(&bench);
    let lock = bench.lock(&client).strategy(Strategy::Watch);
    let guard = lock.try_acquire().wait().unwrap().expect("it was free, and is ours");
    assert_eq!(lost.hits(), 1);
    assert_eq!(bench.owner(&bench.path), Some(session_id(&client)));
    guard.release().wait().unwrap();
    assert!(!bench.exists(&bench.path));
}

#[test]
fn a_child_whose_reply_was_lost_blocks_nobody() {
    let mut bench = Bench::with_directory();
    let (client, other) = (bench.client(), bench.direct());
    lose_the_reply_to_a_create(&bench);
    let mut seed = Children::new(&client);
    assert!(seed.lock_blockless(&bench.path).unwrap_err().is_connection_loss());
    seed.release(&bench.path, "a").unwrap();
    assert_eq!(bench.children().len(), 1, "a child that nobody answers for");
    assert!(!Children::new(&other).lock_blockless(&bench.path).unwrap());

    bench.next();
    let lost = lose_the_reply_to_a_create(&bench);
    let guard = bench.lock(&client).acquire().within(TIMEOUT).wait().unwrap();
    assert_eq!(lost.hits(), 1);
    assert_eq!(bench.children().len(), 1);
    guard.release().wait().unwrap();
    bench.expect_free();
    bench.expect_empty();
}

#[test]
fn a_second_lock_by_the_same_owner_leaks_no_child() {
    let mut bench = Bench::with_directory();
    let (client, other) = (bench.direct(), bench.direct());
    let mut seed = Children::new(&client);
    assert!(seed.lock_by_number(&bench.path).unwrap());
    assert!(!seed.lock_by_number(&bench.path).unwrap());
    seed.release(&bench.path, "a").unwrap();
    seed.release(&bench.path, "a").unwrap();
    assert_eq!(bench.children().len(), 1, "released as often as locked, and still there");
    assert!(!Children::new(&other).lock_blockless(&bench.path).unwrap());

    bench.next();
    let lock = bench.lock(&client);
    let guard = lock.try_acquire().wait().unwrap().unwrap();
    assert!(lock.try_acquire().wait().unwrap().is_none());
    guard.release().wait().unwrap();
    assert!(bench.children().is_empty());
    bench.expect_free();
}

#[test]
fn a_retried_create_does_not_wait_for_its_own_first_child() {
    let mut bench = Bench::with_directory();
    let client = bench.client();
    lose_the_reply_to_a_create(&bench);
    let seed = Simple { zk: &client, node: bench.path.clone() };
    assert!(!seed.acquire(Duration::from_millis(50)).unwrap());
    let children = bench.children();
    assert_eq!(children.len(), 2, "both are its own");
    let first = format!("{}/{}", bench.path, children[0]);
    assert_eq!(bench.watched_by(session_id(&client)), [first], "it waited for itself");

    bench.next();
    let lost = lose_the_reply_to_a_create(&bench);
    let guard = bench.lock(&client).acquire().within(TIMEOUT).wait().unwrap();
    assert_eq!(lost.hits(), 1);
    assert_eq!(bench.children().len(), 1);
    guard.release().wait().unwrap();
    bench.expect_empty();
}

#[test]
fn a_retried_create_in_c_does_not_wait_for_its_own_first_child() {
    let mut bench = Bench::with_directory();
    let client = bench.client();
    let session = session_id(&client);
    lose_the_reply_to_a_create(&bench);
    let condition = std::sync::Arc::default();
    let seed = Neighbour { zk: &client, node: bench.path.clone(), condition };
    thread::scope(|scope| {
        let locking = scope.spawn(|| seed.lock().unwrap());
        eventually("it waits", || seed.condition.waiting() == 1);
        let children = bench.children();
        let first = format!("{}/{}", bench.path, children[0]);
        assert_eq!(children.len(), 2);
        assert_eq!(bench.owner(&first), Some(session), "what it waits for is its own");
        assert_eq!(bench.watched_by(session), [first]);
        seed.condition.close();
        assert!(!locking.join().unwrap());
    });

    bench.next();
    let lost = lose_the_reply_to_a_create(&bench);
    let lock = bench.lock(&client);
    lock.acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
    assert_eq!(lost.hits(), 1);
    bench.expect_empty();
}

#[test]
fn an_acquire_that_ends_by_its_timeout_takes_its_child_along() {
    let mut bench = Bench::with_directory();
    let client = bench.direct();
    let mut holder = bench.stranger("lock-");
    let seed = Simple { zk: &client, node: bench.path.clone() };
    assert!(!seed.acquire(Duration::from_millis(50)).unwrap());
    holder.leave();
    assert_eq!(bench.children().len(), 1, "nobody holds, nobody waits, and there it is");
    assert!(!seed.acquire(Duration::ZERO).unwrap(), "it blocks its own maker, too");

    bench.next();
    let mut holder = bench.stranger("lock-");
    let lock = bench.lock(&client);
    let error = lock.acquire().within(Duration::from_millis(50)).wait().unwrap_err();
    assert!(error.is_timeout(), "{error}");
    eventually("only the holder is left", || bench.children().len() == 1);
    holder.leave();
    bench.expect_free();
    bench.expect_empty();
}

#[test]
fn a_timeout_while_the_connection_is_lost_takes_its_child_along() {
    let mut bench = Bench::with_directory();
    let client = bench.client();
    let mut holder = bench.stranger("lock-");
    let mut seed = Forgetful { zk: &client, node: bench.path.clone(), own: None };
    assert!(!seed.try_acquire().unwrap());
    bench.proxy.on(Rule::request(Op::Delete).once(), Action::Drop);
    seed.give_up();
    holder.leave();
    eventually("it is connected again", || client.state() == SessionState::Connected);
    assert_eq!(bench.children().len(), 1, "its session lives, and so does its child");
    assert_eq!(seed.own, None, "which nobody knows");

    bench.next();
    let mut holder = bench.stranger("lock-");
    let lost = bench.proxy.on(Rule::request(Op::Delete).once(), Action::Drop);
    let lock = bench.lock(&client);
    let error = lock.acquire().within(Duration::from_millis(50)).wait().unwrap_err();
    assert!(error.is_timeout(), "{error}");
    lost.wait_hits(1, TIMEOUT).unwrap();
    holder.leave();
    bench.expect_free();
    bench.expect_empty();
}

#[test]
fn a_release_that_loses_its_connection_is_not_forgotten() {
    let mut bench = Bench::with_directory();
    let (client, other) = (bench.client(), bench.direct());
    let mut seed = Forgetful { zk: &client, node: bench.path.clone(), own: None };
    assert!(seed.try_acquire().unwrap());
    bench.proxy.on(Rule::request(Op::Delete).once(), Action::Drop);
    assert!(seed.release().unwrap_err().is_connection_loss());
    assert!(seed.release().is_ok(), "there is nothing left that it could release");
    assert_eq!(bench.children().len(), 1);
    assert!(!Children::new(&other).lock_blockless(&bench.path).unwrap());

    bench.next();
    let guard = bench.lock(&client).acquire().within(TIMEOUT).wait().unwrap();
    let lost = bench.proxy.on(Rule::request(Op::Delete).once(), Action::Drop);
    let waiting = acquire_in_background(&bench.lock(&other));
    guard.release().wait().unwrap();
    lost.wait_hits(1, TIMEOUT).unwrap();
    waiting.join().unwrap().unwrap().release().wait().unwrap();
    bench.expect_empty();
}

#[test]
fn an_error_in_the_middle_of_an_acquire_takes_its_child_along() {
    let mut bench = Bench::with_directory();
    let client = bench.client();
    bench.proxy.on(Rule::reply(Ops::lists()).path(&bench.path).once(), Action::Drop);
    let mut seed = Reentrant::new(&client, &bench.path);
    assert!(seed.lock().unwrap_err().is_connection_loss());
    assert!(!seed.has_lock());
    assert_eq!(bench.children().len(), 1, "the child of a lock that failed");

    bench.next();
    let lost = bench.proxy.on(Rule::reply(Ops::lists()).path(&bench.path).once(), Action::Drop);
    let guard = bench.lock(&client).acquire().within(TIMEOUT).wait().unwrap();
    lost.wait_hits(1, TIMEOUT).unwrap();
    assert_eq!(bench.children().len(), 1);
    guard.release().wait().unwrap();
    bench.expect_empty();
}

#[test]
fn a_holder_that_dies_does_not_lock_for_ever() {
    let bench = Bench::shared();
    let (client, other) = (bench.direct(), bench.direct());
    let seed = UniqueName { zk: &client, node: bench.path.clone() };
    assert!(seed.try_lock().unwrap());
    client.close().wait().unwrap();
    assert!(!UniqueName { zk: &other, node: bench.path.clone() }.try_lock().unwrap());
    assert_eq!(bench.owner(&bench.path), Some(0), "no session will ever end it");

    for (n, strategy) in [Strategy::Poll, Strategy::Watch, Strategy::Queue].into_iter().enumerate()
    {
        let dies = bench.direct();
        let path = format!("{}-{n}", bench.path);
        let guard = dies.lock(&path).strategy(strategy).acquire().within(TIMEOUT).wait().unwrap();
        dies.close().wait().unwrap();
        let next = other.lock(&path).strategy(strategy).acquire().within(TIMEOUT).wait().unwrap();
        assert!(guard.is_lost() && next.fencing_token() > guard.fencing_token());
    }
}

#[test]
fn a_waiter_that_begins_again_does_not_wait_for_its_own_first_child() {
    use crate::seeds::timed::TimedLock;
    let mut bench = Bench::with_directory();
    let client = bench.direct();
    let session = session_id(&client);
    let mut holder = bench.stranger("lock-");
    let seed = TimedLock { zk: &client, root: bench.path.clone() };
    thread::scope(|scope| {
        let locking = scope.spawn(|| seed.lock_again_when_woken(Instant::now() + TIMEOUT));
        eventually("it waits for the holder", || {
            bench.watched_by(session) == [holder.path.clone()]
        });
        holder.leave();
        eventually("it has two children", || bench.children().len() == 2);
        let first = format!("{}/{}", bench.path, bench.children()[0]);
        eventually("it waits for itself", || bench.watched_by(session) == [first.clone()]);
        assert!(!locking.is_finished());
        client.close().wait().unwrap();
        assert!(locking.join().unwrap().is_err());
    });

    bench.next();
    let client = bench.direct();
    let mut holder = bench.stranger("lock-");
    let waiting = acquire_in_background(&bench.lock(&client));
    eventually("it waits", || bench.watched_by(session_id(&client)) == [holder.path.clone()]);
    holder.leave();
    let guard = waiting.join().unwrap().unwrap();
    assert_eq!(bench.children().len(), 1);
    guard.release().wait().unwrap();
    bench.expect_empty();
}
