//! Waiters that nobody will ever wake.
//!
//! That one waits for ever is shown without waiting for it: it stands at its condition, the lock is free
//! and it is the first in line, what was to wake it has been and gone, and no watch of its session is left
//! that the way things are could end.

use std::sync::Arc;
use std::thread;

use test_support::{
    Bench, TIMEOUT, acquire_in_background, eventually, session_id, wait_for_another_session,
};
use zklock::Client;
use zklock::zookeeper::SessionState;
use zklock_testing::Rule;
use zklock_testing::wire::{CreateMode, Op};

use crate::seeds::c_lock_test::{Neighbour, Watch};
use crate::seeds::java_children::{Children, ChildrenBlocking};
use crate::seeds::monitor::Monitor;
use crate::seeds::peers::sit_out_a_suspension;

/// Ours waits behind a stranger who goes while our look, or its answer, is on the way.
fn ours_is_woken_by_who_goes(bench: &Bench, meanwhile: impl FnOnce([Op; 2]) -> Rule) {
    let client = bench.client();
    let mut holder = bench.stranger("lock-");
    let look = meanwhile([Op::GetData, Op::Exists]).path(&holder.path);
    let gate = bench.proxy.hold(look.once());
    let waiting = acquire_in_background(&bench.lock(&client));
    gate.wait_reached(TIMEOUT).unwrap();
    holder.leave();
    gate.release();
    waiting.join().unwrap().unwrap().release().wait().unwrap();
    bench.expect_empty();
    assert!(bench.waits_for(session_id(&client)).is_empty());
}

#[test]
fn a_notification_before_the_wait_is_not_lost() {
    let mut bench = Bench::with_directory();
    let client = bench.direct();
    let mut holder = bench.stranger("lock-");
    let monitor = Arc::new(Monitor::default());
    thread::scope(|scope| {
        let locking = scope.spawn(|| {
            let base = Children::new(&client);
            let mut seed = ChildrenBlocking { base, monitor: Arc::clone(&monitor) };
            seed.lock(&bench.path, || {
                holder.leave();
                eventually("it is notified", || monitor.notifications() == 1);
            })
        });
        eventually("it waits", || monitor.waiting() == 1);
        assert_eq!(bench.children().len(), 1, "it is alone in the line");
        assert!(bench.watched_by(session_id(&client)).is_empty(), "and watches nothing");
        assert_eq!((monitor.notifications(), monitor.waits()), (1, 1));
        assert!(!locking.is_finished());
        monitor.close();
        assert!(!locking.join().unwrap().unwrap());
    });

    bench.next();
    ours_is_woken_by_who_goes(&bench, Rule::reply);
}

#[test]
fn a_signal_before_the_wait_in_c_is_not_lost() {
    let mut bench = Bench::shared();
    let client = bench.direct();
    let mut holder = bench.raw();
    holder.create_with(&bench.path, b"", CreateMode::Ephemeral).unwrap();
    let condition = Arc::new(Monitor::default());
    let seed = Watch { zk: &client, node: bench.path.clone(), condition: Arc::clone(&condition) };
    thread::scope(|scope| {
        let locking = scope.spawn(|| {
            seed.lock(|| {
                holder.delete(&bench.path).unwrap();
                eventually("it is signalled", || condition.notifications() == 1);
            })
        });
        eventually("it waits", || condition.waiting() == 1);
        assert!(!bench.exists(&bench.path), "the lock is free");
        assert!(bench.watched_by(session_id(&client)).is_empty(), "and nobody watches it");
        assert!(!locking.is_finished());
        condition.close();
        assert!(!locking.join().unwrap().unwrap());
    });

    // Ours, waiting in the same way.
    bench.path.push('2');
    holder.create_with(&bench.path, b"", CreateMode::Ephemeral).unwrap();
    let client = bench.client();
    let look = Rule::reply([Op::GetData, Op::Exists]).path(&bench.path);
    let gate = bench.proxy.hold(look.once());
    let lock = bench.lock(&client).strategy(zklock::Strategy::Watch);
    let waiting = acquire_in_background(&lock);
    gate.wait_reached(TIMEOUT).unwrap();
    holder.delete(&bench.path).unwrap();
    gate.release();
    waiting.join().unwrap().unwrap().release().wait().unwrap();
}

#[test]
fn a_notification_reaches_the_waiter_of_its_own_lock() {
    let mut bench = Bench::with_directory();
    let elsewhere = format!("{}-elsewhere", bench.path);
    bench.raw().create(&elsewhere, b"").unwrap();
    let (first, second) = (bench.direct(), bench.direct());
    let _holds_on = bench.stranger("lock-");
    let mut raw = bench.raw();
    let prefix = format!("{elsewhere}/lock-");
    let goes = raw.create_with(&prefix, b"", CreateMode::EphemeralSequential).unwrap();
    let monitor = Arc::new(Monitor::default());
    thread::scope(|scope| {
        let wait_for = |client, node| {
            let base = Children::new(client);
            let mut seed = ChildrenBlocking { base, monitor: Arc::clone(&monitor) };
            move || seed.lock(node, || {}).unwrap()
        };
        let here = scope.spawn(wait_for(&first, bench.path.as_str()));
        eventually("the first waits", || monitor.waiting() == 1);
        let there = scope.spawn(wait_for(&second, elsewhere.as_str()));
        eventually("the second waits", || monitor.waiting() == 2);
        raw.delete(&goes).unwrap();
        eventually("the wrong one looks, and waits again", || monitor.waits() == 3);
        assert_eq!(monitor.waiting(), 2);
        assert_eq!(raw.children(&elsewhere).unwrap().len(), 1, "the second is alone in its line");
        assert!(bench.watched_by(session_id(&second)).is_empty(), "and watches nothing");
        assert!(!there.is_finished() && !here.is_finished());
        monitor.close();
        assert!(!there.join().unwrap() && !here.join().unwrap());
    });

    bench.next();
    let elsewhere = format!("{}-elsewhere", bench.path);
    let _holds_on = bench.stranger("lock-");
    let held = first.lock(&elsewhere).acquire().within(TIMEOUT).wait().unwrap();
    // Both of one client, as both of one process there.
    let here = acquire_in_background(&bench.lock(&second));
    let there = acquire_in_background(&second.lock(&elsewhere));
    eventually("both wait", || bench.watched_by(session_id(&second)).len() == 2);
    held.release().wait().unwrap();
    there.join().unwrap().unwrap().release().wait().unwrap();
    assert!(!here.is_finished());
    second.close().wait().unwrap();
    assert!(here.join().unwrap().is_err());
}

/// A neighbour that was found in the list is gone when it is to be watched: the seed watches a number that
/// never comes again, ours looks again.
fn the_neighbour_goes_before_it_is_watched(
    seed: impl FnOnce(&Client, &str, &Arc<Monitor>) -> bool + Send,
) {
    let mut bench = Bench::with_directory();
    let client = bench.client();
    let mut holder = bench.stranger("lock-");
    let monitor = Arc::new(Monitor::default());
    let gate = bench.proxy.hold(Rule::request(Op::Exists).path(&holder.path).once());
    thread::scope(|scope| {
        let locking = scope.spawn(|| seed(&client, &bench.path, &monitor));
        gate.wait_reached(TIMEOUT).unwrap();
        holder.leave();
        gate.release();
        eventually("it waits", || monitor.waiting() == 1);
        assert_eq!(bench.children().len(), 1, "it is alone in the line");
        let watched = bench.watched_by(session_id(&client));
        assert_eq!(watched, [holder.path.clone()], "it waits for a number that never comes again");
        assert_eq!(monitor.notifications(), 0);
        monitor.close();
        assert!(!locking.join().unwrap());
    });

    bench.next();
    ours_is_woken_by_who_goes(&bench, Rule::request);
}

#[test]
fn a_neighbour_that_is_gone_by_the_time_of_the_watch_is_not_waited_for() {
    the_neighbour_goes_before_it_is_watched(|client, node, monitor| {
        let base = Children::new(client);
        ChildrenBlocking { base, monitor: Arc::clone(monitor) }.lock(node, || {}).unwrap()
    });
}

#[test]
fn a_neighbour_that_is_gone_by_the_time_of_the_watch_in_c_is_not_waited_for() {
    the_neighbour_goes_before_it_is_watched(|zk, node, condition| {
        let seed = Neighbour { zk, node: node.to_owned(), condition: Arc::clone(condition) };
        seed.lock().unwrap()
    });
}

#[test]
fn a_waiter_whose_session_expires_claims_again() {
    let mut bench = Bench::with_directory();
    let client = bench.direct();
    let session = session_id(&client);
    let mut holder = bench.stranger("lock-");
    let monitor = Arc::new(Monitor::default());
    thread::scope(|scope| {
        let base = Children::new(&client);
        let mut seed = ChildrenBlocking { base, monitor: Arc::clone(&monitor) };
        let node = bench.path.as_str();
        let locking = scope.spawn(move || seed.lock(node, || {}).unwrap());
        eventually("it waits", || monitor.waiting() == 1);
        bench.expire(&client);
        wait_for_another_session(&client, session);
        holder.leave();
        assert!(bench.children().is_empty(), "it has no place in the line any more");
        assert!(bench.watched_by(session_id(&client)).is_empty(), "and watches nothing");
        assert_eq!((monitor.waiting(), monitor.notifications()), (1, 0));
        assert!(!locking.is_finished());
        monitor.close();
        assert!(!locking.join().unwrap());
    });

    bench.next();
    let session = session_id(&client);
    let mut holder = bench.stranger("lock-");
    let waiting = acquire_in_background(&bench.lock(&client));
    eventually("it waits", || bench.watched_by(session).len() == 1);
    bench.expire(&client);
    wait_for_another_session(&client, session);
    eventually("it has claimed again", || bench.children().len() == 2);
    holder.leave();
    waiting.join().unwrap().unwrap().release().wait().unwrap();
    bench.expect_empty();
}

#[test]
fn a_waiter_sits_out_a_lost_connection() {
    let mut bench = Bench::with_directory();
    let client = bench.client();
    let told = Arc::new(Monitor::default());
    let back = bench.proxy.hold(Rule::request(Op::Connect).once());
    bench.proxy.reset_all();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            sit_out_a_suspension(&client, &told, || {
                back.release();
                eventually("it is told that it is connected", || told.notifications() == 1);
            })
        });
        eventually("it waits to be told", || told.waiting() == 1);
        assert_eq!(client.state(), SessionState::Connected);
        assert!(!waiting.is_finished());
        told.close();
        assert!(!waiting.join().unwrap());
    });

    bench.next();
    let client = bench.client();
    let session = session_id(&client);
    let mut holder = bench.stranger("lock-");
    let waiting = acquire_in_background(&bench.lock(&client));
    eventually("it waits", || bench.watched_by(session) == [holder.path.clone()]);
    for leaves_meanwhile in [false, true] {
        let back = bench.proxy.hold(Rule::request(Op::Connect).once());
        bench.proxy.reset_all();
        back.wait_reached(TIMEOUT).unwrap();
        if leaves_meanwhile {
            holder.leave();
        }
        back.release();
        if !leaves_meanwhile {
            eventually("it waits again", || bench.watched_by(session) == [holder.path.clone()]);
        }
    }
    let guard = waiting.join().unwrap().unwrap();
    assert_eq!(session_id(&client), session);
    guard.release().wait().unwrap();
}
