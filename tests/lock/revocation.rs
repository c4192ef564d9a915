//! Taking a lock from its holder: by asking for it, and by breaking it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use test_support::{Stranger, TIMEOUT, acquire_in_background, eventually, options, session_id};
use zklock::{Code, Contender, GuardState, Lock, LockError, LostReason, LostSignal, Strategy};
use zklock_testing::wire::{CreateMode, Op};
use zklock_testing::{Action, Rule};

use crate::bench::{Bench, each_strategy};
use crate::place::each_store;

/// A grace that does not end within a test.
const LONG: Duration = Duration::from_secs(3600);

fn holder(lock: &Lock) -> Contender {
    lock.holder().wait().unwrap().expect("somebody holds it")
}

each_store! {
    fn a_holder_that_is_asked_knows_why_and_keeps_the_lock_until_it_releases_it(place) {
        let (locks, other) = (place.locks(2), place.lock());
        let [guard, beside] = [0, 1].map(|at| locks[at].acquire().wait().unwrap());
        let mut requests = guard.release_requests();
        let who = holder(&other);
        assert!(other.request_release(&who, "deployment\nnow").wait().unwrap());
        assert_eq!(requests.wait().as_deref(), Some("deployment now"));
        assert!(other.request_release(&who, "really").wait().unwrap());
        assert_eq!(requests.wait().as_deref(), Some("really"));
        assert!(beside.release_requests().wait_timeout(Duration::ZERO).is_err(), "of another lock");
        assert_eq!(guard.state(), GuardState::Held);
        guard.release().wait().unwrap();
        assert_eq!(requests.wait(), None);
        beside.release().wait().unwrap();
        assert!(!other.request_release(&who, "again").wait().unwrap());
        place.expect_free();
    }

    fn a_hold_that_is_broken_is_lost_before_another_holds(place) {
        let (lock, other) = (place.lock(), place.lock());
        let guard = lock.acquire().wait().unwrap();
        let lost = guard.lost();
        let next = acquire_in_background(&other);
        let breaker = place.lock();
        assert!(breaker.break_hold(&holder(&breaker), "", Duration::ZERO).wait().unwrap());
        let next = next.join().unwrap().unwrap();
        assert_eq!(lost.get(), Some(LostReason::Broken));
        assert_eq!(guard.state(), GuardState::Lost);
        assert!(next.fencing_token() > guard.fencing_token());
    }

    fn a_hold_that_is_broken_with_an_endless_grace_is_lost_at_once_and_free_when_its_guard_goes(place) {
        let (lock, other) = (place.lock(), place.lock());
        let guard = lock.acquire().wait().unwrap();
        let who = holder(&other);
        let breaker = place.lock();
        let broken = thread::spawn(move || breaker.break_hold(&who, "", Duration::MAX).wait());
        assert_eq!(guard.lost().wait_timeout(TIMEOUT), Some(LostReason::Broken));
        assert!(other.try_acquire().wait().unwrap().is_none());
        drop(guard);
        assert!(broken.join().unwrap().unwrap());
        place.expect_free();
    }

    fn within_the_grace_a_broken_hold_passes_on_when_its_guard_goes(place) {
        let (lock, other) = (place.lock(), place.lock());
        let guard = lock.acquire().wait().unwrap();
        let who = holder(&other);
        let broken = thread::spawn({
            let breaker = place.lock();
            move || breaker.break_hold(&who, "", LONG).wait()
        });
        assert_eq!(guard.lost().wait(), LostReason::Broken);
        assert!(other.try_acquire().wait().unwrap().is_none(), "its program may be at work yet");
        drop(guard);
        assert!(broken.join().unwrap().unwrap());
        other.acquire().wait().unwrap().release().wait().unwrap();
        place.expect_free();
        // Which waits for nothing of the grace.
        place.close();
    }

    fn within_the_grace_of_a_broken_hold_others_of_its_client_are_asked(place) {
        let (locks, others) = (place.locks(2), place.locks(2));
        let [broken, asked] = [0, 1].map(|at| locks[at].acquire().wait().unwrap());
        let mut requests = asked.release_requests();
        let breaker = others[0].clone();
        let breaking = thread::spawn(move || breaker.break_hold(&holder(&breaker), "", LONG).wait());
        assert_eq!(broken.lost().wait_timeout(TIMEOUT), Some(LostReason::Broken));
        assert!(others[1].request_release(&holder(&others[1]), "please").wait().unwrap());
        assert_eq!(requests.wait_timeout(TIMEOUT), Ok(Some("please".to_owned())));
        drop(broken);
        assert!(breaking.join().unwrap().unwrap());
        asked.release().wait().unwrap();
    }

    fn a_break_whose_store_is_closed_before_the_hold_is_gone_is_of_unknown_outcome(place) {
        let breaker = place.lock();
        let guard = place.lock().acquire().wait().unwrap();
        let who = holder(&breaker);
        let broken = thread::spawn(move || breaker.break_hold(&who, "", LONG).wait());
        assert_eq!(guard.lost().wait(), LostReason::Broken);
        // The holder's store is closed as well, which its guard may keep waiting.
        let ended = thread::spawn(move || {
            let ended = broken.join().unwrap();
            drop(guard);
            ended
        });
        place.close();
        match ended.join().unwrap() {
            Ok(was_broken) => assert!(was_broken),
            Err(error) => assert!(error.is_outcome_unknown(), "{error:?}"),
        }
    }

    fn who_holds_no_more_is_not_broken_and_neither_is_the_next(place) {
        let (lock, other) = (place.lock(), place.lock());
        let guard = lock.acquire().wait().unwrap();
        let who = holder(&other);
        guard.release().wait().unwrap();
        let next = other.acquire().wait().unwrap();
        assert!(!lock.break_hold(&who, "", Duration::ZERO).wait().unwrap());
        assert_eq!(next.lost().wait_timeout(Duration::from_millis(300)), None);
        next.release().wait().unwrap();
    }

    fn a_broken_guard_is_no_danger_to_the_next_holder(place) {
        let (lock, other) = (place.lock(), place.lock());
        let guard = lock.acquire().wait().unwrap();
        assert!(other.break_hold(&holder(&other), "", Duration::ZERO).wait().unwrap());
        let next = other.acquire().wait().unwrap();
        let released = guard.release().wait();
        assert!(
            matches!(released, Err(LockError::Lost { reason: LostReason::Broken, .. })),
            "{released:?}"
        );
        assert_eq!(next.lost().wait_timeout(Duration::from_millis(300)), None);
        assert_eq!(holder(&lock).token, next.fencing_token());
        next.release().wait().unwrap();
        place.expect_free();
    }
}

each_strategy! {
    fn a_guarded_write_of_a_broken_hold_is_refused(strategy) {
        let bench = Bench::shared();
        let (client, other) = (bench.direct(), bench.direct());
        let guard = bench.lock(&client, strategy).acquire().wait().unwrap();
        let data = format!("{}-data", bench.path);
        client.create(&data, b"", zklock::zookeeper::CreateMode::Persistent).wait().unwrap();
        guard.set(&data, b"held", None).wait().unwrap();
        let lock = bench.lock(&other, strategy);
        assert!(lock.break_hold(&holder(&lock), "", Duration::ZERO).wait().unwrap());
        let written = guard.set(&data, b"lost", None).wait();
        assert!(
            matches!(written, Err(LockError::NotHeld { reason: LostReason::Broken, .. })),
            "{written:?}"
        );
        assert_eq!(client.get(&data).wait().unwrap().data, b"held");
    }

    fn an_order_whose_reply_is_lost_is_given_once(strategy) {
        let bench = Bench::shared();
        let client = bench.direct();
        let guard = bench.lock(&client, strategy).acquire().wait().unwrap();
        let breaker = bench.client();
        let session = session_id(&breaker);
        let lock = bench.lock(&breaker, strategy);
        let who = holder(&lock);
        let lost = bench.proxy.on(Rule::reply(Op::SetData).once(), Action::Reset);
        assert!(lock.break_hold(&who, "", Duration::ZERO).wait().unwrap());
        lost.wait_hits(1, TIMEOUT).unwrap();
        assert_eq!(guard.lost().wait(), LostReason::Broken);
        assert_eq!(session_id(&breaker), session);
        bench.expect_free(strategy);
    }

    fn who_breaks_goes_on_with_the_next_session(strategy) {
        let bench = Bench::shared();
        let client = bench.direct();
        let guard = bench.lock(&client, strategy).acquire().wait().unwrap();
        let breaker = bench.direct();
        let lock = bench.lock(&breaker, strategy);
        let who = holder(&lock);
        let broken = thread::spawn(move || lock.break_hold(&who, "", LONG).wait());
        assert_eq!(guard.lost().wait(), LostReason::Broken);
        bench.expire(&breaker);
        drop(guard);
        assert!(broken.join().unwrap().unwrap());
        bench.expect_free(strategy);
    }

    fn a_holder_that_is_cut_off_loses_its_session_instead(strategy) {
        let bench = Bench::shared();
        let short = options().session_timeout(Duration::from_secs(4));
        let client = short.connect(&bench.proxy.hosts()).wait().unwrap();
        let guard = bench.lock(&client, strategy).acquire().wait().unwrap();
        let lock = bench.lock(&bench.direct(), strategy);
        let who = holder(&lock);
        bench.proxy.cut();
        assert!(lock.break_hold(&who, "", Duration::ZERO).wait().unwrap());
        assert_eq!(guard.lost().get(), Some(LostReason::Session));
        bench.proxy.heal();
        bench.expect_free(strategy);
    }
}

#[test]
fn a_request_does_not_write_over_an_order_that_comes_meanwhile() {
    let bench = Bench::shared();
    let (client, asker, breaker) = (bench.direct(), bench.client(), bench.direct());
    let guard = bench.lock(&client, Strategy::Watch).acquire().wait().unwrap();
    let lock = bench.lock(&asker, Strategy::Watch);
    let who = holder(&lock);
    let late = bench.proxy.hold(Rule::request(Op::SetData).path(&*guard.claim_path()).once());
    let asking = thread::spawn({
        let who = who.clone();
        move || lock.request_release(&who, "please").within(TIMEOUT).wait()
    });
    late.wait_reached(TIMEOUT).unwrap();
    let lock = bench.lock(&breaker, Strategy::Watch);
    let broken = thread::spawn(move || lock.break_hold(&who, "", LONG).within(TIMEOUT).wait());
    assert_eq!(guard.lost().wait_timeout(TIMEOUT), Some(LostReason::Broken));
    late.release();
    assert!(asking.join().unwrap().unwrap());
    let data = String::from_utf8(client.get(&guard.claim_path()).wait().unwrap().data).unwrap();
    assert!(data.contains("broken=") && data.contains("release-requested="), "{data}");
    drop(guard);
    assert!(broken.join().unwrap().unwrap());
}

#[test]
fn the_claim_of_another_library_is_not_written_to() {
    let bench = Bench::shared();
    let lock = bench.lock(&bench.direct(), Strategy::Queue);
    bench.prepare(Strategy::Queue);
    let prefix = format!("{}/0123456789abcdef0123456789abcdef__lock__", bench.path);
    let kazoo = Stranger::claims(bench.raw(), &prefix, CreateMode::EphemeralSequential);
    let who = holder(&lock);
    for done in [lock.request_release(&who, ""), lock.break_hold(&who, "", LONG)] {
        let error = done.wait().unwrap_err();
        assert_eq!(error.code(), Code::BAD_ARGUMENTS, "{error}");
        assert!(error.to_string().contains("another library's"), "{error}");
    }
    assert_eq!(bench.direct().get(&kazoo.path).wait().unwrap().data, b"stranger");
}

#[test]
fn a_line_for_an_earlier_holder_says_nothing_to_the_next() {
    let bench = Bench::shared();
    let (client, other) = (bench.direct(), bench.direct());
    let guard = bench.lock(&client, Strategy::Watch).acquire().wait().unwrap();
    let before = client.get(&guard.claim_path()).wait().unwrap().data;
    let data = [&before[..], format!("broken={:x} 0 late\n", guard.fencing_token() - 1).as_bytes()]
        .concat();
    other.set(&guard.claim_path(), &data, None).wait().unwrap();
    assert_eq!(guard.lost().wait_timeout(Duration::from_millis(300)), None);
    guard.release().wait().unwrap();
}

#[test]
fn a_grace_may_be_longer_than_the_operation_timeout_of_who_breaks() {
    let bench = Bench::shared();
    let (client, limit) = (bench.direct(), Duration::from_millis(500));
    let breaker = options().operation_timeout(limit).connect(&bench.server.hosts()).wait().unwrap();
    let guard = bench.lock(&client, Strategy::Queue).acquire().wait().unwrap();
    let lock = bench.lock(&breaker, Strategy::Queue);
    assert!(lock.break_hold(&holder(&lock), "", 3 * limit).wait().unwrap());
    assert_eq!(guard.lost().get(), Some(LostReason::Broken));
}

/// How many holds are broken under load: more by hand.
fn rounds() -> usize {
    std::env::var("ZKLOCK_ROUNDS").map_or(20, |rounds| rounds.parse().expect("a number"))
}

#[test]
fn under_load_no_two_hold_while_holds_are_broken() {
    let bench = Bench::shared();
    let (stop, broken) = (AtomicBool::new(false), AtomicUsize::new(0));
    let latest: Mutex<Option<LostSignal>> = Mutex::default();
    thread::scope(|scope| {
        for _ in 0..6 {
            let lock = bench.lock(&bench.direct(), Strategy::Queue);
            scope.spawn(|| {
                let lock = lock;
                while !stop.load(Ordering::Relaxed) {
                    let guard = lock.acquire().within(TIMEOUT).wait().unwrap();
                    let before = latest.lock().replace(guard.lost());
                    // Who held before it is lost, or has released it: as its own guard says.
                    assert!(before.is_none_or(|before| before.get().is_some()));
                    match guard.lost().wait_timeout(Duration::from_millis(400)) {
                        Some(LostReason::Broken) => {
                            let written = guard.multi(&[]).wait();
                            assert!(matches!(written, Err(LockError::NotHeld { .. })));
                            broken.fetch_add(1, Ordering::Relaxed);
                        }
                        Some(reason) => panic!("{reason:?}"),
                        None => drop(guard.release()),
                    }
                }
            });
        }
        let breaker = bench.lock(&bench.direct(), Strategy::Queue);
        eventually("so many were broken", || {
            if let Some(who) = breaker.holder().wait().unwrap() {
                breaker.break_hold(&who, "load", Duration::ZERO).wait().unwrap();
            }
            broken.load(Ordering::Relaxed) >= rounds()
        });
        stop.store(true, Ordering::Relaxed);
    });
    bench.expect_free(Strategy::Queue);
}
