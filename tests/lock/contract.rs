//! What every store's locks promise: in the words of the face alone.

use std::pin::Pin;
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future::block_on;
use test_support::{TIMEOUT, acquire_in_background, eventually};
use zklock::zookeeper::{Acl, Permissions};
use zklock::{Code, GuardState, Interop, LostReason, Strategy};

use crate::place::{Place, each_store, late};

const SOON: Duration = Duration::from_millis(200);

each_store! {
    fn who_waits_holds_when_the_one_before_lets_go(place) {
        let guard = place.lock().acquire().wait().unwrap();
        assert_eq!((guard.state(), guard.is_lost()), (GuardState::Held, false));
        let waiting = acquire_in_background(&place.lock());
        let lost = guard.lost();
        assert_eq!((lost.get(), lost.wait_timeout(SOON)), (None, None));
        assert!(!waiting.is_finished());
        let token = guard.fencing_token();
        guard.release().wait().unwrap();
        assert_eq!((lost.get(), lost.wait()), (Some(LostReason::Released), LostReason::Released));
        let next = waiting.join().unwrap().unwrap();
        assert!(next.fencing_token() > token);
        next.release().wait().unwrap();
        place.expect_free();
    }

    fn a_guard_knows_how_long_it_was_waited_for_and_how_long_it_is_held(place) {
        let guard = place.lock().acquire().wait().unwrap();
        let asked = Instant::now();
        let next = place.lock().acquire();
        assert!(place.lock().acquire().within(SOON).wait().unwrap_err().is_timeout());
        assert!(guard.held_for() >= SOON, "{:?}", guard.held_for());
        guard.release().wait().unwrap();
        let next = next.within(TIMEOUT).wait().unwrap();
        assert!(next.waited() >= SOON, "{:?}", next.waited());
        assert!(next.waited() + next.held_for() <= asked.elapsed());
        next.release().wait().unwrap();
    }

    fn an_acl_is_set_or_refused_and_never_ignored(place) {
        let acl = [Acl::new(Permissions::ALL, "world", "anyone")];
        let acquired = place.lock().acl(acl).acquire().within(TIMEOUT).wait();
        if place.is_in_zookeeper() {
            return acquired.unwrap().release().wait().unwrap();
        }
        let error = acquired.unwrap_err();
        assert!(error.to_string().contains("leave the ACL out"), "{error}");
        assert_eq!((error.path(), error.code()), (&*place.path, Code::BAD_ARGUMENTS));
        let error = place.lock().interoperate(Interop::All).try_acquire().wait().unwrap_err();
        assert!(error.to_string().contains("leave out Interop::All"), "{error}");
        let held = place.lock().interoperate(Interop::Most).acquire().wait().unwrap();
        held.release().wait().unwrap();
    }

    fn a_signal_can_be_awaited_by_many_and_outlives_the_guard(place) {
        let guard = place.lock().acquire().wait().unwrap();
        let signals: Vec<_> = (0..3).map(|_| guard.lost()).collect();
        let waiting = signals.into_iter().map(|mut signal| std::thread::spawn(move || {
            let mut context = Context::from_waker(Waker::noop());
            let _ = std::future::Future::poll(Pin::new(&mut signal), &mut context);
            (signal.clone().wait(), signal.wait_timeout(TIMEOUT))
        }));
        let waiting: Vec<_> = waiting.collect();
        drop(guard);
        for one in waiting {
            assert_eq!(one.join().unwrap(), (LostReason::Released, Some(LostReason::Released)));
        }
    }

    fn a_taken_lock_is_not_acquired_by_a_try_nor_beyond_a_limit(place) {
        let guard = place.lock().label("night run").acquire().wait().unwrap();
        let lock = place.lock();
        assert!(lock.try_acquire().wait().unwrap().is_none());
        for (error, ahead) in [
            late(|limit| lock.acquire().within(limit).wait().unwrap_err()),
            late(|limit| block_on(lock.acquire().within(limit)).unwrap_err()),
        ] {
            assert!(error.is_timeout() && !error.is_outcome_unknown() && !error.is_lost());
            assert_eq!((error.path(), error.code()), (place.path.as_str(), Code::OPERATION_TIMEOUT));
            assert_eq!((ahead.path.as_str(), ahead.token), (&*guard.claim_path(), guard.fencing_token()));
            assert_eq!(ahead.label, "night run");
        }
        guard.release().within(TIMEOUT).wait().unwrap();
        lock.try_acquire().wait().unwrap().expect("it is free").release().wait().unwrap();
        place.expect_free();
    }

    fn of_several_limits_the_first_to_pass_counts(place) {
        let guard = place.lock().acquire().wait().unwrap();
        let begun = Instant::now();
        for limits in [[SOON, TIMEOUT], [TIMEOUT, SOON]] {
            let acquire = limits.into_iter().fold(place.lock().acquire(), |acquire, limit| acquire.within(limit));
            assert!(acquire.wait().unwrap_err().is_timeout());
        }
        assert!(begun.elapsed() < TIMEOUT);
        guard.release().within(TIMEOUT).wait().unwrap();
        place.lock().acquire().within(Duration::MAX).wait().unwrap().release().wait().unwrap();
        place.expect_free();
    }

    fn an_acquire_that_is_dropped_leaves_its_place(place) {
        let guard = place.lock().acquire().wait().unwrap();
        for polls in 0..4 {
            let mut acquiring = place.lock().acquire();
            for _ in 0..polls {
                let mut context = Context::from_waker(Waker::noop());
                assert!(std::future::Future::poll(Pin::new(&mut acquiring), &mut context).is_pending());
            }
        }
        eventually("only the holder is left", || place.lock().contenders().wait().unwrap().len() == 1);
        guard.release().wait().unwrap();
        place.expect_free();
    }

    fn holder_and_waiters_can_be_seen(place) {
        let looker = place.lock();
        assert!(!looker.is_locked().wait().unwrap());
        assert_eq!(looker.holder().wait().unwrap(), None);
        let guard = place.lock().label("first\nof two").acquire().wait().unwrap();
        let waiting = acquire_in_background(&place.lock().label("second"));
        let seen = if place.is_a_queue() { vec!["first of two", "second"] } else { vec!["first of two"] };
        eventually("they are seen", || {
            let contenders = looker.contenders().wait().unwrap();
            contenders.iter().map(|contender| contender.label.as_str()).eq(seen.iter().copied())
        });
        let contenders = looker.contenders().wait().unwrap();
        assert_eq!((contenders[0].path.as_str(), contenders[0].token), (&*guard.claim_path(), guard.fencing_token()));
        assert_eq!(contenders[0].pid, std::process::id());
        assert!(!contenders[0].host.is_empty() && !contenders[0].thread.is_empty());
        let held = contenders[0].held_since.unwrap();
        assert!(contenders[0].since <= held.latest && held.earliest <= held.latest);
        assert!(contenders[1..].iter().all(|waiter| waiter.held_since.is_none()));
        assert!(looker.is_locked().wait().unwrap());
        drop(guard);
        waiting.join().unwrap().unwrap().release().wait().unwrap();
        place.expect_free();
    }

    fn in_a_queue_the_first_who_comes_is_served_first(place) {
        if !place.is_a_queue() {
            return;
        }
        let guard = place.lock().acquire().wait().unwrap();
        let (send, served) = std::sync::mpsc::channel();
        let looker = place.lock();
        let waiters: Vec<_> = (0..8).map(|number| {
            let (lock, send) = (place.lock(), send.clone());
            let waiter = std::thread::spawn(move || {
                let guard = lock.acquire().within(TIMEOUT).wait().unwrap();
                send.send((number, guard.fencing_token())).unwrap();
                guard.release().wait().unwrap();
            });
            eventually("it is in line", || looker.contenders().wait().unwrap().len() == number + 2);
            waiter
        }).collect();
        drop(guard);
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
        let served: Vec<(usize, i64)> = served.try_iter().collect();
        assert!(served.iter().map(|(number, _)| *number).eq(0..8), "{served:?}");
        assert!(served.is_sorted_by(|a, b| a.1 < b.1), "{served:?}");
    }
}

/// Where there is a queue, so that it can be seen, and the client knows what is at the path.
fn a_claim_is_in_the_queue_when_acquire_has_returned(place: &Place) {
    let lock = place.lock();
    let guard = lock.acquire().wait().unwrap();
    let [first, second] = ["first", "second"].map(|label| lock.clone().label(label).acquire());
    eventually("both are in the queue", || lock.contenders().wait().unwrap().len() == 3);
    let contenders = lock.contenders().wait().unwrap();
    let labels: Vec<_> = contenders.iter().map(|contender| contender.label.as_str()).collect();
    assert_eq!(labels, ["", "first", "second"]);
    guard.release().wait().unwrap();
    // In whatever order they are waited for.
    let second = thread::spawn(move || second.wait().unwrap());
    first.wait().unwrap().release().wait().unwrap();
    second.join().unwrap().release().wait().unwrap();
    place.expect_free();
}

#[test]
fn a_claim_is_in_the_queue_of_a_server_when_acquire_has_returned() {
    a_claim_is_in_the_queue_when_acquire_has_returned(&Place::in_zookeeper(Strategy::Queue));
}

#[test]
fn a_claim_is_in_the_queue_of_a_process_when_acquire_has_returned() {
    a_claim_is_in_the_queue_when_acquire_has_returned(&Place::local());
}
