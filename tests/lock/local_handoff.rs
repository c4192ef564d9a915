//! Threads and tasks of one process that take turns with one claim.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use test_support::{TIMEOUT, acquire_in_background, eventually};
use zklock::{GuardState, LocalHandoff, LockError, LostReason, Strategy};
use zklock_testing::Rule;
use zklock_testing::wire::Ops;

use crate::bench::Bench;
use crate::place::{Place, each_queue, late};

const SOON: Duration = Duration::from_millis(200);

fn poll_once<F: Future + Unpin>(future: &mut F) -> bool {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

each_queue! {
    fn one_holds_at_a_time_and_their_turns_are_counted(place) {
        const THREADS: usize = 8;
        const ROUNDS: usize = 50;
        let lock = place.lock().local_handoff(LocalHandoff::new().turns(20));
        let held = Arc::new(Mutex::new(Vec::new()));
        let first = lock.acquire().wait().unwrap();
        let threads: Vec<_> = (0..THREADS).map(|_| {
            let (lock, held) = (lock.clone(), Arc::clone(&held));
            let mut waiting = Some(lock.acquire());
            thread::spawn(move || for _ in 0..ROUNDS {
                let waiting = waiting.take().unwrap_or_else(|| lock.acquire());
                let guard = waiting.within(TIMEOUT).wait().unwrap();
                assert_eq!(guard.state(), GuardState::Held);
                let mut held = held.try_lock().expect("nobody else holds it");
                held.push((guard.fencing_token(), guard.turn()));
                drop(held);
                guard.release().wait().unwrap();
            })
        }).collect();
        drop(first);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let held = held.lock();
        assert_eq!(held.len(), THREADS * ROUNDS);
        assert!(held.is_sorted_by(|a, b| a < b), "{held:?}");
        assert!(held.iter().any(|(_, turn)| *turn > 0));
        place.expect_free();
    }

    fn somebody_else_gets_his_turn_after_as_many_as_were_agreed(place) {
        const TURNS: u32 = 10;
        let lock = place.lock().local_handoff(LocalHandoff::new().turns(TURNS).time(TIMEOUT));
        let (ends, turns) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let threads: Vec<_> = (0..3).map(|_| {
            let (lock, ends, turns) = (lock.clone(), Arc::clone(&ends), Arc::clone(&turns));
            thread::spawn(move || {
                let mut next = lock.acquire();
                while !ends.load(Ordering::Relaxed) {
                    let guard = next.within(TIMEOUT).wait().unwrap();
                    turns.fetch_add(1, Ordering::Relaxed);
                    // Queued before the release: without a limit on turns, nobody else would ever get the lock.
                    next = lock.acquire();
                    drop(guard);
                }
            })
        }).collect();
        let other = place.lock();
        for _ in 0..5 {
            let waiting = acquire_in_background(&other);
            eventually("it waits", || other.contenders().wait().unwrap().len() > 1);
            let behind = turns.load(Ordering::Relaxed);
            let guard = waiting.join().unwrap().unwrap();
            let before = turns.load(Ordering::Relaxed);
            assert!(before - behind <= u64::from(TURNS) + 1, "{} turns", before - behind);
            thread::sleep(SOON / 10);
            assert_eq!(turns.load(Ordering::Relaxed), before, "nobody else holds it");
            drop(guard);
        }
        ends.store(true, Ordering::Relaxed);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        place.expect_free();
    }

    fn who_comes_first_is_served_first(place) {
        let lock = place.lock().local_handoff(LocalHandoff::new());
        let guard = lock.acquire().wait().unwrap();
        let mut waiting: Vec<_> = (0..5).map(|_| lock.acquire()).collect();
        // Who leaves is left out, whether its turn has come or not.
        drop(waiting.remove(3));
        drop(guard);
        drop(waiting.remove(0));
        for next in waiting {
            let guard = next.within(TIMEOUT).wait().unwrap();
            assert!(lock.try_acquire().wait().unwrap().is_none());
            drop(guard);
        }
        place.expect_free();
    }

    fn whoever_is_next_goes_on_with_the_claim_of_one_who_gives_up(place) {
        let others = place.lock().acquire().wait().unwrap();
        let looker = place.lock();
        let lock = place.lock().local_handoff(LocalHandoff::new());
        let (mut first, mut second) = (lock.acquire(), lock.acquire());
        let mut claim = None;
        eventually("the first is in the queue", || {
            assert!(!poll_once(&mut first) && !poll_once(&mut second));
            claim = looker.contenders().wait().unwrap().get(1).map(|claim| claim.token);
            claim.is_some()
        });
        drop(first);
        others.release().wait().unwrap();
        let guard = second.within(TIMEOUT).wait().unwrap();
        assert_eq!(Some(guard.fencing_token()), claim);
        guard.release().wait().unwrap();
        place.expect_free();
    }

    fn who_has_it_when_it_is_lost_knows_and_the_next_acquires_anew(place) {
        let lock = place.lock().local_handoff(LocalHandoff::new());
        drop(lock.acquire().wait().unwrap());
        let guard = lock.acquire().within(TIMEOUT).wait().unwrap();
        let token = guard.fencing_token();
        let next = acquire_in_background(&lock);
        place.lose();
        let reason = guard.lost().wait();
        assert!(place.is_its_loss(reason));
        assert!(guard.is_lost() && !next.is_finished());
        let signal = guard.lost();
        let LockError::Lost { .. } = guard.release().wait().unwrap_err() else { panic!("it was lost") };
        assert_eq!(signal.get(), Some(reason), "released by nobody");
        let guard = next.join().unwrap().unwrap();
        assert_eq!((guard.turn(), guard.state()), (0, GuardState::Held));
        assert!(guard.fencing_token() > token);
        drop(guard);
        place.expect_free();
    }

    fn an_attempt_that_fails_passes_its_turn_on(place) {
        let semaphore = place.semaphore(2);
        let lock = semaphore.permits(2).local_handoff(LocalHandoff::new());
        semaphore.set_limit(1).wait().unwrap();
        for _ in 0..2 {
            let error = lock.try_acquire().wait().unwrap_err();
            assert!(matches!(error, LockError::Unusable { .. }), "{error:?}");
            let error = lock.acquire().within(TIMEOUT).wait().unwrap_err();
            assert!(matches!(error, LockError::Unusable { .. }), "{error:?}");
        }
        semaphore.set_limit(2).wait().unwrap();
        let held = semaphore.permit().acquire().wait().unwrap();
        assert!(lock.try_acquire().wait().unwrap().is_none());
        held.release().wait().unwrap();
        lock.acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
        drop(lock.try_acquire().wait().unwrap().expect("it is free"));
        place.expect_free();
    }

    fn a_guard_that_has_handed_on_is_released_and_no_more(place) {
        let lock = place.lock().local_handoff(LocalHandoff::new());
        let guard = lock.acquire().wait().unwrap();
        let (lost, waiting) = (guard.lost(), lock.acquire());
        guard.release().wait().unwrap();
        let next = waiting.wait().unwrap();
        assert_eq!(next.turn(), 1);
        assert_eq!((lost.get(), lost.wait()), (Some(LostReason::Released), LostReason::Released));
        assert_eq!((next.state(), next.lost().get()), (GuardState::Held, None));
        next.release().wait().unwrap();
        place.expect_free();
    }

    fn a_limit_says_who_of_the_process_is_ahead(place) {
        let lock = place.lock().local_handoff(LocalHandoff::new());
        let guard = lock.acquire().wait().unwrap();
        let (_, ahead) = late(|limit| lock.acquire().within(limit).wait().unwrap_err());
        assert_eq!((ahead.path.as_str(), ahead.token), (&*guard.claim_path(), guard.fencing_token()));
        assert_eq!(ahead.pid, std::process::id());
        drop(guard);
        let others = place.lock().label("other").acquire().wait().unwrap();
        // As soon as it has been able to ask who that is.
        eventually("who is ahead is known", || {
            let error = lock.acquire().within(SOON).wait().unwrap_err();
            matches!(error, LockError::TimedOut { ahead: Some(ahead), .. } if ahead.label == "other")
        });
        drop(others);
        place.expect_free();
    }

    fn all_who_wait_hear_that_the_store_is_closed(place) {
        let lock = place.lock().local_handoff(LocalHandoff::new());
        let guard = lock.acquire().wait().unwrap();
        let waiting: Vec<_> = (0..4).map(|_| acquire_in_background(&lock)).collect();
        place.close();
        drop(guard);
        for waiting in waiting {
            let error = waiting.join().unwrap().unwrap_err();
            assert!(matches!(error, LockError::Closed { .. }), "{error:?}");
        }
    }
}

#[test]
fn threads_that_take_turns_ask_the_servers_for_one_claim() {
    let bench = Bench::shared();
    bench.prepare(Strategy::Queue);
    let client = bench.client();
    let lock =
        bench.lock(&client, Strategy::Queue).local_handoff(LocalHandoff::new().time(TIMEOUT));
    let first = lock.acquire().wait().unwrap();
    bench.proxy.clear_seen();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let lock = lock.clone();
            thread::spawn(move || {
                for _ in 0..100 {
                    lock.acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
                }
            })
        })
        .collect();
    drop(first);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let writes = bench.proxy.count(&Rule::request(Ops::any()).path_prefix(&bench.path));
    // They come and go; seldom is nobody there who waits.
    assert!(writes < 400, "{writes} requests for 400 acquires");
    bench.expect_free(Strategy::Queue);
}

#[test]
fn a_write_is_guarded_by_whoever_has_its_turn() {
    let bench = Bench::shared();
    bench.prepare(Strategy::Queue);
    let client = bench.client();
    let lock = bench.lock(&client, Strategy::Queue).local_handoff(LocalHandoff::new());
    let waiting = lock.acquire();
    let guard = waiting.wait().unwrap();
    let data = format!("{}-data", bench.path);
    guard.create(&data, b"", zklock::zookeeper::CreateMode::Persistent).wait().unwrap();
    let next = lock.acquire();
    drop(guard);
    let guard = next.wait().unwrap();
    guard.set(&data, b"mine", None).wait().unwrap();
    bench.delete(&guard.claim_path());
    assert!(guard.set(&data, b"not mine", None).wait().is_err());
    assert_eq!(client.get(&data).wait().unwrap().data, b"mine");
}

#[test]
fn who_was_handed_a_claim_that_is_lost_before_it_looks_acquires_anew() {
    let place = Place::local();
    // Handed on without a look at who else waits, and with one.
    for time in [Duration::from_secs(3_600), Duration::ZERO] {
        let lock = place.lock().local_handoff(LocalHandoff::new().time(time));
        let guard = lock.acquire().wait().unwrap();
        let token = guard.fencing_token();
        let mut next = lock.acquire();
        assert!(!poll_once(&mut next));
        drop(guard);
        place.lose();
        let guard = next.within(TIMEOUT).wait().unwrap();
        assert_eq!((guard.turn(), guard.state()), (0, GuardState::Held));
        assert!(guard.fencing_token() > token);
    }
}

#[test]
fn a_round_of_no_turns_or_no_time_is_one_of_single_turns() {
    let place = Place::local();
    let (none, at_once) = (LocalHandoff::new().turns(0), LocalHandoff::new().time(Duration::ZERO));
    for handoff in [none, at_once] {
        let (lock, other) = (place.lock().local_handoff(handoff), place.lock());
        let guard = lock.acquire().within(TIMEOUT).wait().unwrap();
        let (mut next, mut others) = (lock.acquire(), other.acquire());
        assert!(!poll_once(&mut next) && !poll_once(&mut others));
        drop(guard);
        assert!(!poll_once(&mut next), "another client waits");
        others.within(TIMEOUT).wait().unwrap().release().wait().unwrap();
        next.within(TIMEOUT).wait().unwrap().release().wait().unwrap();
    }
}
