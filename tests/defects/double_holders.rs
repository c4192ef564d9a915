//! Two who believe that they hold one lock.

use std::thread;

use test_support::{
    Bench, TIMEOUT, acquire_in_background, eventually, poll_until, session_id,
    wait_for_another_session,
};
use zklock_testing::wire::{CreateMode, Op, Ops};
use zklock_testing::{Action, Rule};

use crate::seeds::c_lock_test::{Neighbour, Poll};
use crate::seeds::c_recipe::{Order, RecipeMutex};
use crate::seeds::curator_locks::Simple;
use crate::seeds::java_children::Children;
use crate::seeds::peers::ProtectedLock;
use crate::seeds::textbook::Reentrant;
use crate::seeds::timed::{HeartbeatLock, TimedLock};

/// Ours makes its claim, and somebody deletes that before it has looked who is there.
fn ours_finds_its_claim_gone(bench: &mut Bench) {
    bench.next();
    let (client, other) = (bench.client(), bench.direct());
    // The first listing asks for the directory, the second follows the create.
    let gate = bench.proxy.hold(Rule::request(Ops::lists()).path(&bench.path).nth(2));
    let acquiring = acquire_in_background(&bench.lock(&client));
    gate.wait_reached(TIMEOUT).unwrap();
    eventually("its claim is there", || bench.children().len() == 1);
    bench.delete(&format!("{}/{}", bench.path, bench.children()[0]));
    let holds = bench.lock(&other).acquire().within(TIMEOUT).wait().unwrap();
    gate.release();
    eventually("it claims again", || bench.children().len() == 2);
    eventually("it waits", || {
        bench.watched_by(session_id(&client)).contains(&holds.claim_path().to_string())
    });
    assert!(!acquiring.is_finished());
    holds.release().wait().unwrap();
    acquiring.join().unwrap().unwrap().release().wait().unwrap();
    bench.expect_empty();
}

/// The same for a port, whose `lock` says that it holds, and then for another one beside it.
fn both_hold(bench: &Bench, lock: impl FnOnce() -> bool + Send, other: impl FnOnce() -> bool) {
    let gate = bench.proxy.hold(Rule::request(Ops::lists()).path(&bench.path).once());
    thread::scope(|scope| {
        let locking = scope.spawn(lock);
        gate.wait_reached(TIMEOUT).unwrap();
        eventually("its child is there", || bench.children().len() == 1);
        bench.delete(&format!("{}/{}", bench.path, bench.children()[0]));
        assert!(other(), "the lock is free");
        gate.release();
        assert!(locking.join().unwrap(), "it holds beside the other");
    });
    assert_eq!(bench.children().len(), 1);
}

#[test]
fn a_child_that_is_missing_from_the_list_is_not_the_first() {
    let mut bench = Bench::with_directory();
    let (client, other) = (bench.client(), bench.direct());
    both_hold(
        &bench,
        || Children::new(&client).lock_blockless(&bench.path).unwrap(),
        || Children::new(&other).lock_blockless(&bench.path).unwrap(),
    );
    ours_finds_its_claim_gone(&mut bench);
}

#[test]
fn a_child_that_is_missing_from_the_list_in_c_is_not_the_first() {
    let mut bench = Bench::with_directory();
    let (client, other) = (bench.client(), bench.direct());
    let seed = |zk| Neighbour { zk, node: bench.path.clone(), condition: Default::default() };
    both_hold(&bench, || seed(&client).lock().unwrap(), || seed(&other).lock().unwrap());
    ours_finds_its_claim_gone(&mut bench);
}

#[test]
fn a_position_of_minus_one_does_not_hold() {
    let mut bench = Bench::with_directory();
    let (client, other) = (bench.client(), bench.direct());
    let lock = |zk| {
        let mut seed = Reentrant::new(zk, &bench.path);
        seed.lock().unwrap();
        seed.has_lock()
    };
    both_hold(&bench, || lock(&client), || lock(&other));
    ours_finds_its_claim_gone(&mut bench);
}

#[test]
fn a_waiter_whose_neighbour_dies_does_not_hold_beside_the_holder() {
    let mut bench = Bench::with_directory();
    let client = bench.direct();
    let session = session_id(&client);
    let mut holder = bench.stranger("lock-");
    let mut between = bench.stranger("lock-");
    let seed = Simple { zk: &client, node: bench.path.clone() };
    thread::scope(|scope| {
        let acquiring = scope.spawn(|| seed.acquire(TIMEOUT).unwrap());
        eventually("it waits", || bench.watched_by(session) == [between.path.clone()]);
        between.leave();
        assert!(acquiring.join().unwrap(), "it holds");
    });
    assert!(bench.exists(&holder.path), "and so does the holder");
    holder.leave();

    bench.next();
    let mut holder = bench.stranger("lock-");
    let mut between = bench.stranger("lock-");
    let acquiring = acquire_in_background(&bench.lock(&client));
    eventually("it waits", || bench.watched_by(session) == [between.path.clone()]);
    between.leave();
    eventually("it waits for the holder", || bench.watched_by(session) == [holder.path.clone()]);
    assert!(!acquiring.is_finished());
    holder.leave();
    acquiring.join().unwrap().unwrap().release().wait().unwrap();
}

#[test]
fn a_change_to_the_holders_claim_is_not_its_end() {
    let mut bench = Bench::with_directory();
    let client = bench.client();
    let session = session_id(&client);
    let mut holder = bench.stranger("lock-");
    let seed = TimedLock { zk: &client, root: bench.path.clone() };
    thread::scope(|scope| {
        let locking = scope.spawn(|| seed.lock("name", TIMEOUT).unwrap());
        eventually("it waits", || bench.watched_by(session) == [holder.path.clone()]);
        holder.raw.set_data(&holder.path, b"a note").unwrap();
        assert!(locking.join().unwrap(), "it holds");
    });
    assert!(bench.exists(&holder.path), "and so does the holder");

    bench.next();
    let mut holder = bench.stranger("lock-");
    let looked = Rule::reply([Op::GetData, Op::Exists]).path(&holder.path);
    let acquiring = acquire_in_background(&bench.lock(&client));
    bench.proxy.wait_for(&looked, 1, TIMEOUT).unwrap();
    holder.raw.set_data(&holder.path, b"a note").unwrap();
    bench.proxy.wait_for(&looked, 2, TIMEOUT).unwrap();
    eventually("it waits again", || bench.watched_by(session) == [holder.path.clone()]);
    assert!(!acquiring.is_finished());
    holder.leave();
    acquiring.join().unwrap().unwrap().release().wait().unwrap();
}

#[test]
fn news_of_the_session_is_not_the_holders_end() {
    let mut bench = Bench::with_directory();
    let client = bench.direct();
    let session = session_id(&client);
    let mut holder = bench.stranger("lock-");
    let mut seed = HeartbeatLock::new(&client, &bench.path);
    thread::scope(|scope| {
        let locking = scope.spawn(move || seed.lock().unwrap() && seed.is_held());
        eventually("it waits", || bench.watched_by(session) == [holder.path.clone()]);
        bench.expire(&client);
        assert!(locking.join().unwrap(), "it holds, without a session and without a child");
    });
    assert_eq!(bench.children().len(), 1, "and so does the holder");
    holder.leave();
    wait_for_another_session(&client, session);

    bench.next();
    let session = session_id(&client);
    let mut holder = bench.stranger("lock-");
    let acquiring = acquire_in_background(&bench.lock(&client));
    eventually("it waits", || bench.watched_by(session) == [holder.path.clone()]);
    bench.expire(&client);
    wait_for_another_session(&client, session);
    eventually("it waits again", || bench.watched_by(session_id(&client)) == [holder.path.clone()]);
    assert!(!acquiring.is_finished());
    holder.leave();
    let guard = acquiring.join().unwrap().unwrap();
    assert_eq!(bench.owner(&guard.claim_path()), Some(session_id(&client)));
    guard.release().wait().unwrap();
}

#[test]
fn a_lock_is_held_while_the_work_is_done() {
    let mut bench = Bench::shared();
    let (client, other) = (bench.direct(), bench.direct());
    let seed = |zk| Poll { zk, node: bench.path.clone() };
    let mut beside = false;
    seed(&client).lock_and_work(|| beside = seed(&other).lock(1).unwrap()).unwrap();
    assert!(beside, "another has locked in the middle of the work");

    bench.next();
    let guard = bench.lock(&client).acquire().within(TIMEOUT).wait().unwrap();
    assert!(bench.lock(&other).try_acquire().wait().unwrap().is_none());
    guard.release().wait().unwrap();
}

#[test]
fn a_waiter_that_gave_up_never_owns_later() {
    let mut bench = Bench::with_directory();
    let client = bench.direct();
    let mut holder = bench.stranger("x-0000000000000000-");
    let seed = RecipeMutex::new(&client, &bench.path, Order::Number);
    seed.lock().unwrap();
    assert!(!seed.is_owner());
    seed.unlock().unwrap();
    assert_eq!(bench.children().len(), 1, "it has gone");
    holder.leave();
    eventually("its watch has fired", || seed.woken() == 1);
    assert!(seed.is_owner(), "it owns what nobody wants any more");
    assert_eq!(bench.children().len(), 1, "and nobody will release");

    bench.next();
    let mut holder = bench.stranger("x-0000000000000000-");
    let mut acquiring = bench.lock(&client).acquire();
    let session = session_id(&client);
    poll_until(&mut acquiring, || bench.watched_by(session) == [holder.path.clone()]);
    drop(acquiring);
    eventually("it has gone", || bench.children().len() == 1);
    holder.leave();
    eventually("its watch has fired", || bench.watched_by(session).is_empty());
    assert!(bench.children().is_empty());
    bench.expect_free();
}

#[test]
fn two_mutexes_of_one_session_exclude_each_other() {
    let mut bench = Bench::with_directory();
    let client = bench.direct();
    let mutexes = [0; 2].map(|_| RecipeMutex::new(&client, &bench.path, Order::Number));
    mutexes.iter().for_each(|mutex| mutex.lock().unwrap());
    assert!(mutexes.iter().all(RecipeMutex::is_owner));
    assert_eq!(bench.children().len(), 1, "both own one child");

    bench.next();
    let locks = [bench.lock(&client), bench.lock(&client)];
    let guard = locks[0].try_acquire().wait().unwrap().unwrap();
    assert!(locks[1].try_acquire().wait().unwrap().is_none());
    let waiting = acquire_in_background(&locks[1]);
    eventually("it waits", || {
        bench.watched_by(session_id(&client)).contains(&guard.claim_path().to_string())
    });
    assert!(!waiting.is_finished());
    guard.release().wait().unwrap();
    waiting.join().unwrap().unwrap().release().wait().unwrap();
}

#[test]
fn a_claim_of_a_session_that_is_dying_is_not_adopted() {
    let mut bench = Bench::with_directory();
    let (client, other) = (bench.client(), bench.direct());
    let reply = Rule::reply(Ops::creates()).path_prefix(&bench.path).once();
    bench.proxy.on(reply, Action::Drop);
    let seed =
        ProtectedLock { node: bench.path.clone(), id: "8a7ed3a3-3e4f-44c2-a8f0-3b6e6d0a9c11" };
    assert!(seed.create(&client).unwrap_err().is_connection_loss());
    // It goes on with a new session, while the servers still have the old one.
    let renewed = bench.client();
    assert!(seed.resume(&renewed).unwrap(), "it holds");
    bench.expire(&client);
    assert!(Children::new(&other).lock_blockless(&bench.path).unwrap(), "beside it");

    bench.next();
    let client = bench.client();
    let session = session_id(&client);
    let reply = Rule::reply(Ops::creates()).path_prefix(&bench.path).once();
    let lost = bench.proxy.on(reply, Action::Drop);
    let reconnection = bench.proxy.hold(Rule::request(Op::Connect).once());
    let acquiring = acquire_in_background(&bench.lock(&client));
    lost.wait_hits(1, TIMEOUT).unwrap();
    let claim = format!("{}/{}", bench.path, bench.children()[0]);
    let mut dying = bench.raw();
    let (data, _) = dying.get_data(&claim).unwrap();
    reconnection.wait_reached(TIMEOUT).unwrap();
    bench.expire(&client);
    // As a server shows it that is behind: the claim, word for word, of a session that is not ours now.
    let prefix = format!("{}/zl-2a-lock-", bench.path);
    let left = dying.create_with(&prefix, &data, CreateMode::EphemeralSequential).unwrap();
    reconnection.release();
    wait_for_another_session(&client, session);
    eventually("it claims anew", || bench.children().len() == 2);
    eventually("and waits", || bench.watched_by(session_id(&client)).contains(&left));
    assert!(!acquiring.is_finished());
    dying.delete(&left).unwrap();
    acquiring.join().unwrap().unwrap().release().wait().unwrap();
}
