//! Owners who acquire again what they hold.

use std::pin::Pin;
use std::sync::{Arc, Barrier};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use test_support::{TIMEOUT, eventually, expect_blocked};
use zklock::zookeeper::CreateMode;
use zklock::{GuardState, LocalStore, LockError, LostReason, Owner, ReentrantLock, Strategy};
use zklock_testing::wire::{Op, Ops};
use zklock_testing::{Action, Rule};

use crate::bench::Bench;
use crate::place::{Place, each_queue, each_store};

const SOON: Duration = Duration::from_millis(200);

fn poll_once<F: Future + Unpin>(future: &mut F) -> bool {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

fn acquired_in_time(lock: &ReentrantLock, owner: &Owner) -> zklock::Guard {
    lock.acquire(owner).within(TIMEOUT).wait().unwrap()
}

/// Somebody else could not have it now.
fn expect_held(place: &Place, others: &zklock::Lock) {
    let tried = others.try_acquire().wait().unwrap();
    assert!(tried.is_none(), "{} is held by two", place.path);
}

each_store! {
    fn an_owner_enters_again_and_the_last_who_leaves_releases(place) {
        let (lock, others) = (place.lock().reentrant(), place.lock());
        let owner = Owner::new();
        let first = lock.acquire(&owner).wait().unwrap();
        let mut again = lock.acquire(&owner);
        assert!(poll_once(&mut again), "there is nothing to wait for");
        drop(again);
        let second = lock.acquire(&owner).wait().unwrap();
        let third = lock.try_acquire(&owner).wait().unwrap().expect("the owner holds");
        assert_eq!([&first, &second, &third].map(|guard| guard.holds()), [3; 3]);
        assert!([&first, &second, &third].iter().all(|guard| !guard.remaining().is_zero()));
        assert_eq!(first.fencing_token(), third.fencing_token());
        // In any order, by release or drop.
        first.release().wait().unwrap();
        assert_eq!((second.holds(), second.state()), (2, GuardState::Held));
        expect_held(place, &others);
        drop(second);
        assert_eq!((third.holds(), third.state()), (1, GuardState::Held));
        expect_held(place, &others);
        third.release().wait().unwrap();
        others.acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
        place.expect_free();
    }

    fn another_owner_of_the_process_is_kept_out(place) {
        let lock = place.lock().reentrant();
        let (one, other) = (Owner::new(), Owner::new());
        let guard = lock.acquire(&one).wait().unwrap();
        let inner = lock.acquire(&one).wait().unwrap();
        assert!(lock.try_acquire(&other).wait().unwrap().is_none());
        let late = lock.acquire(&other).within(SOON).wait().unwrap_err();
        assert!(matches!(late, LockError::TimedOut { .. }), "{late:?}");
        let next = thread::spawn({
            let lock = lock.clone();
            move || acquired_in_time(&lock, &other).fencing_token()
        });
        drop(inner);
        // One is still in.
        expect_blocked([&next]);
        let token = guard.fencing_token();
        guard.release().wait().unwrap();
        assert!(next.join().unwrap() > token);
        place.expect_free();
    }

    fn each_thread_is_an_owner(place) {
        const ROUNDS: usize = 20;
        let lock = place.lock().reentrant();
        let held = Arc::new(parking_lot::Mutex::new(()));
        let threads: Vec<_> = (0..4).map(|_| {
            let (lock, held) = (lock.clone(), Arc::clone(&held));
            thread::spawn(move || for _ in 0..ROUNDS {
                let outer = acquired_in_time(&lock, &Owner::this_thread());
                let alone = held.try_lock().expect("nobody else holds it");
                let inner = acquired_in_time(&lock, &Owner::this_thread());
                assert_eq!((outer.holds(), inner.fencing_token()), (2, outer.fencing_token()));
                drop(outer);
                assert_eq!((inner.holds(), inner.state()), (1, GuardState::Held));
                drop((alone, inner));
            })
        }).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        place.expect_free();
    }

    fn acquires_that_are_under_way_share_one_claim(place) {
        const THREADS: usize = 4;
        let (lock, others) = (place.lock().reentrant(), place.lock());
        let (owner, barrier) = (Owner::new(), Arc::new(Barrier::new(THREADS)));
        let ahead = others.acquire().wait().unwrap();
        let threads: Vec<_> = (0..THREADS).map(|_| {
            let (lock, owner, barrier) = (lock.clone(), owner.clone(), Arc::clone(&barrier));
            let waiting = lock.acquire(&owner);
            thread::spawn(move || {
                let guard = waiting.within(TIMEOUT).wait().unwrap();
                barrier.wait();
                let seen = (guard.holds(), guard.fencing_token());
                barrier.wait();
                guard.release().wait().unwrap();
                seen
            })
        }).collect();
        assert!(lock.try_acquire(&owner).wait().unwrap().is_none(), "it is under way");
        ahead.release().wait().unwrap();
        let seen: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(seen.iter().all(|one| *one == (THREADS, seen[0].1)), "{seen:?}");
        place.expect_free();
    }

    fn who_gives_up_takes_nothing_from_the_owners_others(place) {
        let (lock, others) = (place.lock().reentrant(), place.lock());
        let owner = Owner::new();
        let ahead = others.acquire().wait().unwrap();
        // The first, which has begun the claim, is never looked at again.
        let (first, kept, third) = (lock.acquire(&owner), lock.acquire(&owner), lock.acquire(&owner));
        let waiting = {
            let (lock, owner) = (lock.clone(), owner.clone());
            thread::spawn(move || acquired_in_time(&lock, &owner))
        };
        let late = third.within(SOON).wait().unwrap_err();
        assert!(matches!(late, LockError::TimedOut { .. }), "{late:?}");
        drop(first);
        ahead.release().wait().unwrap();
        let guard = waiting.join().unwrap();
        // One that nobody has looked at has its part as well.
        assert_eq!((guard.holds(), guard.state()), (2, GuardState::Held));
        drop(kept);
        assert_eq!((guard.holds(), guard.state()), (1, GuardState::Held));
        guard.release().wait().unwrap();
        place.expect_free();
    }

    fn the_last_who_gives_up_takes_the_claim_along(place) {
        let (lock, others) = (place.lock().reentrant(), place.lock());
        let owner = Owner::new();
        let ahead = others.acquire().wait().unwrap();
        let waiting = [(); 3].map(|()| lock.acquire(&owner));
        drop(waiting);
        ahead.release().wait().unwrap();
        place.expect_free();
        // And the owner begins anew.
        drop(acquired_in_time(&lock, &owner));
        place.expect_free();
    }

    fn a_lock_that_is_lost_is_not_entered_again_before_all_have_left(place) {
        let lock = place.lock().reentrant();
        let owner = Owner::new();
        let (first, second) = (acquired_in_time(&lock, &owner), acquired_in_time(&lock, &owner));
        place.lose();
        // Each of them hears of it.
        let lost = first.lost().wait();
        assert!(place.is_its_loss(lost));
        assert_eq!(second.lost().wait(), lost);
        let token = first.fencing_token();
        for left in [first, second] {
            for refused in [
                lock.acquire(&owner).within(TIMEOUT).wait().unwrap_err(),
                lock.try_acquire(&owner).within(TIMEOUT).wait().unwrap_err(),
            ] {
                let LockError::NotHeld { reason, .. } = refused else { panic!("{refused:?}") };
                assert_eq!(reason, lost);
            }
            let signal = left.lost();
            let LockError::Lost { .. } = left.release().wait().unwrap_err() else { panic!("it was lost") };
            assert_eq!(signal.get(), Some(lost), "released by nobody");
        }
        let guard = acquired_in_time(&lock, &owner);
        assert!(guard.fencing_token() > token);
        assert_eq!((guard.holds(), guard.state()), (1, GuardState::Held));
        drop(guard);
        place.expect_free();
    }

    fn all_who_wait_jointly_hear_that_the_store_is_closed(place) {
        let (lock, others) = (place.lock().reentrant(), place.lock());
        let owner = Owner::new();
        let ahead = others.acquire().wait().unwrap();
        let waiting: Vec<_> = (0..3).map(|_| {
            let (lock, owner) = (lock.clone(), owner.clone());
            thread::spawn(move || lock.acquire(&owner).within(TIMEOUT).wait().unwrap_err())
        }).collect();
        place.close();
        drop(ahead);
        for waiting in waiting {
            let error = waiting.join().unwrap();
            assert!(matches!(error, LockError::Closed { .. }), "{error:?}");
        }
    }
}

each_queue! {
    fn a_limit_says_who_is_ahead_of_the_owners_claim(place) {
        let (lock, others) = (place.lock().reentrant(), place.lock().label("other"));
        let owner = Owner::new();
        let ahead = others.acquire().wait().unwrap();
        let first = lock.acquire(&owner);
        eventually("who is ahead is known, also to one who shares the claim", || {
            let late = lock.acquire(&owner).within(SOON).wait().unwrap_err();
            matches!(late, LockError::TimedOut { ahead: Some(ahead), .. } if ahead.label == "other")
        });
        drop((first, ahead));
        place.expect_free();
    }

    fn an_owner_of_permits_takes_them_once(place) {
        let semaphore = place.semaphore(3);
        let lock = semaphore.permits(2).reentrant();
        let (one, other) = (Owner::new(), Owner::new());
        let both = (acquired_in_time(&lock, &one), acquired_in_time(&lock, &one));
        assert!(lock.try_acquire(&other).wait().unwrap().is_none());
        let third = semaphore.permit().try_acquire().wait().unwrap().expect("one is left");
        drop((both, third));
        place.expect_free();
    }
}

each_queue! {
    fn an_owner_whose_attempt_failed_acquires_anew(place) {
        let semaphore = place.semaphore(2);
        let (lock, owner) = (semaphore.permits(2).reentrant(), Owner::new());
        semaphore.set_limit(1).wait().unwrap();
        for _ in 0..2 {
            let error = lock.try_acquire(&owner).wait().unwrap_err();
            assert!(matches!(error, LockError::Unusable { .. }), "{error:?}");
            let error = lock.acquire(&owner).within(TIMEOUT).wait().unwrap_err();
            assert!(matches!(error, LockError::Unusable { .. }), "{error:?}");
        }
        semaphore.set_limit(2).wait().unwrap();
        let held = semaphore.permit().acquire().wait().unwrap();
        assert!(lock.try_acquire(&owner).wait().unwrap().is_none());
        held.release().wait().unwrap();
        acquired_in_time(&lock, &owner).release().wait().unwrap();
        place.expect_free();
    }
}

#[test]
fn an_owner_that_leaves_on_one_thread_while_it_enters_on_another_can_enter_again() {
    const ROUNDS: u32 = 50_000;
    let lock = LocalStore::new().lock("/reentrant").reentrant();
    let owner = Owner::new();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let outer = lock.acquire(&owner).wait().unwrap();
                    let inner = lock.try_acquire(&owner).wait().unwrap();
                    assert!(inner.is_some(), "it waits for itself");
                    drop((inner, outer));
                }
            });
        }
    });
}

#[test]
fn to_enter_again_costs_no_request() {
    let bench = Bench::shared();
    bench.prepare(Strategy::Queue);
    let client = bench.client();
    let (lock, owner) = (bench.lock(&client, Strategy::Queue).reentrant(), Owner::new());
    drop(acquired_in_time(&lock, &owner));
    bench.expect_free(Strategy::Queue);
    bench.proxy.clear_seen();
    let outer = acquired_in_time(&lock, &owner);
    // A hold of 100 ms is looked at.
    let asked = || bench.asked().into_iter().filter(|op| *op != Op::GetData).count();
    let one_acquire = asked();
    for _ in 0..100 {
        acquired_in_time(&lock, &owner).release().wait().unwrap();
    }
    assert_eq!(asked(), one_acquire);
    outer.release().wait().unwrap();
    assert_eq!(asked(), one_acquire + 1);
    bench.expect_free(Strategy::Queue);
}

#[test]
fn who_enters_while_the_reply_to_the_create_is_lost_shares_the_claim_that_is_found() {
    let bench = Bench::shared();
    bench.prepare(Strategy::Queue);
    let client = bench.client();
    let (lock, owner) = (bench.lock(&client, Strategy::Queue).reentrant(), Owner::new());
    let lost = bench.proxy.on(Rule::reply(Ops::creates()).path_prefix(&bench.path), Action::Reset);
    let (first, second) = (lock.acquire(&owner), lock.acquire(&owner));
    let second = second.within(TIMEOUT).wait().unwrap();
    let first = first.within(TIMEOUT).wait().unwrap();
    assert_eq!((first.fencing_token(), first.holds()), (second.fencing_token(), 2));
    lost.wait_hits(1, TIMEOUT).unwrap();
    assert_eq!(bench.claims(Strategy::Queue).len(), 1);
    drop((first, second));
    bench.expect_free(Strategy::Queue);
}

#[test]
fn a_session_that_expires_between_two_entries_is_an_error_and_no_second_claim() {
    let bench = Bench::shared();
    bench.prepare(Strategy::Queue);
    let client = bench.direct();
    let (lock, owner) = (bench.lock(&client, Strategy::Queue).reentrant(), Owner::new());
    let outer = acquired_in_time(&lock, &owner);
    let session = client.session();
    bench.expire(&client);
    assert_eq!(outer.lost().wait(), LostReason::Session);
    eventually("the client has another session", || {
        client.session().is_some() && client.session() != session
    });
    let refused = lock.acquire(&owner).wait().unwrap_err();
    assert!(refused.is_lost() && refused.to_string().contains("not held any more"), "{refused}");
    bench.expect_free(Strategy::Queue);
    drop(outer);
    drop(acquired_in_time(&lock, &owner));
    bench.expect_free(Strategy::Queue);
}

#[test]
fn writes_of_all_guards_are_guarded_by_the_one_claim() {
    let bench = Bench::shared();
    bench.prepare(Strategy::Queue);
    let client = bench.client();
    let (lock, owner) = (bench.lock(&client, Strategy::Queue).reentrant(), Owner::new());
    let outer = acquired_in_time(&lock, &owner);
    let inner = acquired_in_time(&lock, &owner);
    let data = format!("{}-data", bench.path);
    inner.create(&data, b"", CreateMode::Persistent).wait().unwrap();
    inner.release().wait().unwrap();
    outer.set(&data, b"outer", None).wait().unwrap();
    client.delete(&outer.claim_path(), None).wait().unwrap();
    let refused = outer.set(&data, b"late", None).wait().unwrap_err();
    assert!(matches!(refused, LockError::NotHeld { .. }), "{refused:?}");
    client.delete(&data, None).wait().unwrap();
    drop(outer);
    bench.expect_free(Strategy::Queue);
}
