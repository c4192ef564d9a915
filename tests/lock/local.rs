//! What only the store within a process offers: locks that are lost when a test wants it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use futures_lite::future::block_on;
use parking_lot::Mutex;
use test_support::{TIMEOUT, acquire_in_background, eventually};
use zklock::zookeeper::Op;
use zklock::{
    Code, Election, GuardState, Leadership, LocalStore, LockError, LostReason, LostSignal, Owner,
    ReentrantLock, Strategy,
};

use crate::bench::Bench;

const PATH: &str = "/locks/local";

#[test]
fn work_that_begins_again_after_a_pause_needs_no_other_store() {
    let store = LocalStore::new();
    let work = store.lock(PATH).whenever_held(|_| std::future::ready(7));
    assert!(store.lose(PATH), "it is acquired at once");
    let done = std::thread::spawn(move || work.wait());
    eventually("it has begun again", || done.is_finished());
    assert_eq!(done.join().unwrap().unwrap(), 7);
}

#[test]
fn a_request_for_more_permits_than_there_are_sets_no_limit() {
    let store = LocalStore::new();
    let refused = store.semaphore(PATH, 1).permits(2).acquire().wait().unwrap_err();
    assert!(matches!(refused, LockError::Unusable { .. }), "{refused:?}");
    let guard = store.semaphore(PATH, 5).permits(3).acquire().wait().unwrap();
    assert_eq!(store.semaphore(PATH, 1).limit().wait().unwrap(), 5);
    guard.release().wait().unwrap();
}

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
fn the_store_of_the_process_stays_open_whoever_closes_it() {
    let [store, other] = [(); 2].map(|()| zklock::connect("local:").wait().unwrap());
    let guard = store.lock("/locks/of-the-process").acquire().wait().unwrap();
    other.close().wait().unwrap();
    assert_eq!(guard.state(), GuardState::Held);
    guard.release().wait().unwrap();
    let next = other.lock("/locks/of-the-process").acquire().within(TIMEOUT).wait();
    next.unwrap().release().wait().unwrap();
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

#[test]
fn a_break_ends_with_its_grace_and_no_sooner() {
    let store = LocalStore::new();
    let (lock, other) = (store.lock(PATH), store.lock(PATH));
    let guard = lock.acquire().wait().unwrap();
    let who = other.holder().wait().unwrap().unwrap();
    // Who breaks it need not wait for it.
    let (grace, begun) = (Duration::from_secs(2), Instant::now());
    let late = other.break_hold(&who, "", grace).within(Duration::from_millis(1)).wait();
    assert!(late.unwrap_err().is_outcome_unknown());
    assert!(guard.is_lost());
    assert!(other.try_acquire().wait().unwrap().is_none(), "its program may be at work yet");
    // And it ends though the guard stays.
    let next = other.acquire().within(TIMEOUT).wait().unwrap();
    assert!(begun.elapsed() >= grace);
    next.release().wait().unwrap();
    assert!(guard.is_lost());
}

#[test]
fn a_participant_that_resigns_and_leads_again_at_once_can_be_stopped() {
    let store = LocalStore::new();
    let rounds = AtomicUsize::new(0);
    let election = Election::new(store.lock(PATH));
    let service = election.lead(async |leads: Leadership| {
        rounds.fetch_add(1, Ordering::SeqCst);
        let _ = leads.resign().await;
    });
    let stop = std::future::poll_fn(|cx| {
        cx.waker().wake_by_ref();
        if rounds.load(Ordering::SeqCst) < 10 { Poll::Pending } else { Poll::Ready(()) }
    });
    assert!(block_on(service.until(stop)).unwrap().is_none());
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

/// Enters a re-entrant lock of the store that wakes it.
struct Entering {
    lock: ReentrantLock,
    entered: AtomicBool,
}

impl Wake for Entering {
    fn wake(self: Arc<Self>) {
        let tried = self.lock.try_acquire(&Owner::new()).wait().unwrap();
        self.entered.store(tried.is_none(), Ordering::SeqCst);
    }
}

#[test]
fn a_waker_may_enter_the_reentrant_lock_whose_acquire_wakes_it() {
    let store = LocalStore::new();
    let lock = store.lock(PATH).reentrant();
    let entering = Arc::new(Entering { lock: lock.clone(), entered: AtomicBool::new(false) });
    let waker = Waker::from(Arc::clone(&entering));
    let mut holders = store.lock(PATH).watch_holder();
    let mut context = Context::from_waker(&waker);
    assert!(holders.wait_timeout(TIMEOUT).unwrap().unwrap().unwrap().is_none());
    let mut next = Box::pin(async { futures_lite::StreamExt::next(&mut holders).await });
    assert!(next.as_mut().poll(&mut context).is_pending());
    let acquired = std::thread::spawn(move || lock.acquire(&Owner::new()).wait());
    eventually("it has entered, or not", || entering.entered.load(Ordering::SeqCst));
    drop(acquired.join().unwrap().unwrap());
}
