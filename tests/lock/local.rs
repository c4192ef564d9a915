//! What only the store within a process offers: locks that are lost when a test wants it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use test_support::{TIMEOUT, acquire_in_background, eventually};
use zklock::zookeeper::Op;
use zklock::{Code, GuardState, LocalStore, LockError, LostReason, LostSignal, Strategy};

use crate::bench::Bench;

const PATH: &str = "/locks/local";

#[test]
fn a_lock_that_is_taken_away_is_lost_and_the_next_one_holds_it() {
    let store = LocalStore::new();
    assert!(!store.lose(PATH), "nobody holds it");
    let guard = store.lock(PATH).acquire().wait().unwrap();
    let waiting = acquire_in_background(&store.lock(PATH));
    eventually("it waits", || store.lock(PATH).contenders().wait().unwrap().len() == 2);
    assert_eq!(guard.remaining(), Duration::MAX);
    assert!(store.lose(PATH));
    assert_eq!(guard.remaining(), Duration::ZERO);
    assert_eq!((guard.state(), guard.lost().wait()), (GuardState::Lost, LostReason::Session));
    let next = waiting.join().unwrap().unwrap();
    let error = guard.release().wait().unwrap_err();
    assert!(matches!(error, LockError::Lost { reason: LostReason::Session, .. }), "{error:?}");
    assert_eq!(next.state(), GuardState::Held, "it is not the loser's to release");
    next.release().wait().unwrap();
}

#[test]
fn what_is_under_way_ends_when_the_store_is_closed() {
    let store = LocalStore::new();
    let guard = store.lock(PATH).acquire().wait().unwrap();
    let waiting = acquire_in_background(&store.lock(PATH));
    eventually("it waits", || store.lock(PATH).contenders().wait().unwrap().len() == 2);
    store.clone().close();
    let closed = |error: LockError| assert!(matches!(error, LockError::Closed { .. }), "{error:?}");
    closed(waiting.join().unwrap().unwrap_err());
    closed(store.lock(PATH).try_acquire().wait().unwrap_err());
    closed(store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap_err());
    closed(store.lock(PATH).holder().wait().unwrap_err());
    assert_eq!(guard.lost().wait_timeout(TIMEOUT), Some(LostReason::Session));
}

#[test]
fn stores_know_nothing_of_each_other_and_paths_nothing_of_other_paths() {
    let (one, other) = (LocalStore::new(), LocalStore::new());
    let guards = [one.lock("/a"), one.lock("/a/b"), other.lock("/a")]
        .map(|lock| lock.strategy(Strategy::Watch).try_acquire().wait().unwrap());
    assert!(guards.iter().all(Option::is_some));
    assert!(one.clone().lock("/a").try_acquire().wait().unwrap().is_none());
}

#[test]
fn what_only_zookeeper_offers_is_refused() {
    let store = LocalStore::new();
    let guard = store.lock(PATH).acquire().wait().unwrap();
    let error = guard.multi(&[]).wait().unwrap_err();
    assert!(matches!(error, LockError::Store { .. }) && error.code() == Code::BAD_ARGUMENTS);
    let bench = Bench::shared();
    let client = bench.direct();
    let error = client.multi(&[guard.check(), Op::delete("/a")]).wait().unwrap_err();
    assert_eq!((error.code(), error.failed_op_index()), (Code::BAD_ARGUMENTS, Some(0)), "{error}");
}

#[test]
fn a_thousand_waiters_take_their_turns() {
    const WAITERS: usize = 1_000;
    let store = LocalStore::new();
    let guard = store.lock(PATH).acquire().wait().unwrap();
    let mut waiters: Vec<_> = (0..WAITERS).map(|_| store.lock(PATH).acquire()).collect();
    for waiter in &mut waiters {
        let mut context = Context::from_waker(Waker::noop());
        assert!(Future::poll(Pin::new(waiter), &mut context).is_pending());
    }
    let late = store.lock(PATH).acquire().within(Duration::from_millis(1)).wait();
    assert!(late.unwrap_err().is_timeout());
    drop(guard);
    let mut last = 0;
    for waiter in waiters {
        let guard = waiter.within(TIMEOUT).wait().unwrap();
        assert!(guard.fencing_token() > last);
        last = guard.fencing_token();
    }
    assert!(store.lock(PATH).holder().wait().unwrap().is_none());
}

/// Acquires another lock of the store when it is woken, on the thread that wakes it.
struct Nosy {
    store: LocalStore,
    woken: AtomicBool,
}

impl Wake for Nosy {
    fn wake(self: Arc<Self>) {
        let holder = self.store.lock(PATH).holder().wait().unwrap();
        let beside = self.store.lock("/locks/beside").try_acquire().wait().unwrap();
        self.woken.store(holder.is_some() && beside.is_some(), Ordering::SeqCst);
    }
}

#[test]
fn a_waker_may_use_the_store_that_wakes_it() {
    let store = LocalStore::new();
    let guard = store.lock(PATH).acquire().wait().unwrap();
    let nosy = Arc::new(Nosy { store: store.clone(), woken: AtomicBool::new(false) });
    let waker = Waker::from(Arc::clone(&nosy));
    let mut waiting = store.lock(PATH).acquire();
    assert!(Pin::new(&mut waiting).poll(&mut Context::from_waker(&waker)).is_pending());
    std::thread::spawn(move || drop(guard));
    eventually("it is woken, and did what it wanted", || nosy.woken.load(Ordering::SeqCst));
    let guard = waiting.wait().unwrap();
    assert_eq!(guard.state(), GuardState::Held);
}

#[test]
fn who_holds_next_does_so_when_the_one_before_knows_of_its_end() {
    let store = LocalStore::new();
    let before = Mutex::new(None::<LostSignal>);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for round in 0..500 {
                    let guard = store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap();
                    let mut before = before.lock();
                    // It may have been taken away by now, and another hold.
                    if guard.state() == GuardState::Held {
                        let before = before.replace(guard.lost());
                        assert!(before.is_none_or(|before| before.get().is_some()), "two hold");
                    }
                    drop(before);
                    match round % 3 {
                        0 => drop(guard),
                        // It may have been taken away.
                        _ => drop(guard.release().wait()),
                    }
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..2_000 {
                store.lose(PATH);
                std::thread::yield_now();
            }
        });
    });
    assert!(!store.lock(PATH).is_locked().wait().unwrap());
}
