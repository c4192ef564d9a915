//! A claim names the thread that called the acquire, whichever thread goes on with it.

use std::thread;

use test_support::{TIMEOUT, eventually, poll_until, unused_path};
use zklock::{Contender, Election, LocalHandoff, Lock, MultiLock, Strategy};

use crate::bench::Bench;
use crate::place::{each_queue, each_store};

const CALLER: &str = "the-caller";

/// What that gives, called by the thread of that name.
fn called<T: Send>(call: impl FnOnce() -> T + Send) -> T {
    let caller = thread::Builder::new().name(CALLER.to_owned());
    thread::scope(|scope| caller.spawn_scoped(scope, call).unwrap().join().unwrap())
}

/// The threads that are named by those who contend.
fn threads(lock: &Lock) -> Vec<String> {
    let contenders = lock.contenders().wait().unwrap();
    contenders.into_iter().map(|Contender { thread, .. }| thread).collect()
}

each_queue! {
    fn a_claim_that_is_made_again_names_the_caller_of_the_acquire(place) {
        let (lock, other) = (place.lock(), place.lock());
        let held = lock.acquire().wait().unwrap();
        let mut waiting = called(|| lock.acquire());
        poll_until(&mut waiting, || threads(&other).len() == 2);
        place.lose();
        eventually("its session is lost", || held.is_lost());
        if place.is_local() {
            // The local store ends one claim at a time, so end the waiter's too.
            eventually("it is next", || threads(&other) == [CALLER]);
            place.lose();
        }
        drop(held);
        let guard = waiting.within(TIMEOUT).wait().unwrap();
        assert_eq!(threads(&other), [CALLER]);
        drop(guard);
        place.expect_free();
    }

    fn a_clone_that_acquires_anew_in_its_turn_names_its_own_caller(place) {
        let lock = place.lock().local_handoff(LocalHandoff::new());
        let other = place.lock();
        let first = lock.acquire().wait().unwrap();
        let waiting = called(|| lock.acquire());
        place.lose();
        eventually("it is lost", || first.is_lost());
        drop(first);
        let guard = waiting.within(TIMEOUT).wait().unwrap();
        assert_eq!(threads(&other), [CALLER]);
        let late = lock.acquire().within(std::time::Duration::ZERO).wait().unwrap_err();
        assert!(late.to_string().contains(CALLER), "{late}");
        drop(guard);
    }

    fn a_participant_that_gives_way_names_its_caller_in_its_next_claim(place) {
        let participant = |name| Election::new(place.lock().label(name));
        let [a, b, c] = ["a", "b", "c"].map(participant);
        let labels = || -> Vec<String> {
            a.participants().wait().unwrap().into_iter().map(|it| it.label).collect()
        };
        let leader = a.campaign().wait().unwrap();
        let gives_way = called(|| b.campaign());
        let gives_way = thread::spawn(move || gives_way.within(TIMEOUT).wait());
        eventually("it waits", || labels() == ["a", "b"]);
        let chosen = thread::spawn(move || c.campaign().within(TIMEOUT).wait());
        eventually("the chosen one waits", || labels() == ["a", "b", "c"]);
        let to = a.participants().wait().unwrap().pop().unwrap();
        assert!(leader.hand_over(&to).within(TIMEOUT).wait().unwrap());
        let chosen = chosen.join().unwrap().unwrap();
        let mut last = None;
        eventually("it has given way", || {
            last = a.participants().wait().unwrap().pop();
            last.as_ref().is_some_and(|last| last.label == "b")
        });
        assert_eq!(last.unwrap().thread, CALLER);
        chosen.resign().wait().unwrap();
        gives_way.join().unwrap().unwrap().resign().wait().unwrap();
    }
}

each_store! {
    fn each_lock_of_several_names_the_caller_who_acquires_them(place) {
        let locks = place.locks(2);
        let first = place.again(&locks[0]);
        let guard = first.acquire().wait().unwrap();
        let several = MultiLock::new(locks.clone());
        let waiting = called(|| several.acquire());
        guard.release().wait().unwrap();
        let held = waiting.within(TIMEOUT).wait().unwrap();
        for lock in &locks {
            assert_eq!(threads(lock), [CALLER], "{}", lock.path());
        }
        drop(held);
        place.expect_all_free(&locks);
    }
}

#[test]
fn a_claim_that_is_deleted_while_it_waits_is_made_again_for_the_same_caller() {
    let bench = Bench::shared();
    bench.prepare(Strategy::Queue);
    let client = bench.direct();
    let mut first = bench.stranger(Strategy::Queue);
    let lock = bench.lock(&client, Strategy::Queue);
    let mut waiting = called(|| lock.acquire());
    let waits = || lock.contenders().wait().unwrap().into_iter().nth(1);
    poll_until(&mut waiting, || waits().is_some());
    let before = waits().unwrap();
    bench.delete(&before.path);
    first.leave();
    let guard = waiting.within(TIMEOUT).wait().unwrap();
    let again = lock.holder().wait().unwrap().unwrap();
    assert_ne!(again.path, before.path);
    assert_eq!((before.thread.as_str(), again.thread.as_str()), (CALLER, CALLER));
    guard.release().wait().unwrap();
}

#[test]
fn the_claim_on_an_element_names_the_caller_who_takes_it() {
    let bench = Bench::shared();
    let client = bench.direct();
    let queue = client.queue(&format!("{}{}", bench.path, unused_path()));
    let waiting = called(|| queue.take());
    queue.put("x").wait().unwrap();
    let delivery = waiting.within(TIMEOUT).wait().unwrap();
    let (above, name) = queue.path().rsplit_once('/').unwrap();
    let claims = format!("{above}/zl-claims-{name}");
    let claim = client.children(&claims).wait().unwrap().names.remove(0);
    let claim = client.lock(&format!("{claims}/{claim}")).strategy(Strategy::Watch);
    assert_eq!(claim.holder().wait().unwrap().unwrap().thread, CALLER);
    delivery.done().wait().unwrap();
}
