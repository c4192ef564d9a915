//! Work that is done while a lock is held: it ends before another holds.

use std::future::{Future, pending, ready};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future::{block_on, yield_now};
use parking_lot::Mutex;
use test_support::{TIMEOUT, eventually, options};
use zklock::{Guard, GuardState, LocalStore, LockError, LostReason, Timeout, WhileHeldError};

use crate::bench::{Bench, each_strategy};
use crate::place::{Place, each_store};

/// Goes up when it is dropped.
#[derive(Clone, Default)]
struct Flag(Arc<AtomicBool>);

impl Flag {
    fn is_up(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    fn raise(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

struct RaisedOnDrop(Flag);

impl Drop for RaisedOnDrop {
    fn drop(&mut self) {
        self.0.raise();
    }
}

/// Work that never ends by itself, and says when it has begun and when it is gone.
async fn endless(begun: Flag, gone: Flag) {
    let _gone = RaisedOnDrop(gone);
    begun.raise();
    pending().await
}

/// The lock was lost after the work had started; this is what the work has given.
fn lost<T: std::fmt::Debug>(place: &Place, ended: Result<T, WhileHeldError<T>>) -> Option<T> {
    match ended {
        Err(WhileHeldError::Lost { reason, result, .. }) if place.is_its_loss(reason) => result,
        other => panic!("{other:?}"),
    }
}

each_store! {
    fn work_is_done_while_held_and_gives_its_result(place) {
        let (lock, other) = (place.lock(), place.lock());
        let work = async |guard: Arc<Guard>| {
            assert!(other.try_acquire().await.unwrap().is_none());
            (guard.state(), guard.fencing_token())
        };
        let first = lock.while_held(&work).wait().unwrap();
        let second = lock.acquire().within(TIMEOUT).wait().unwrap().while_held(&work).wait().unwrap();
        let third = lock.while_held_blocking(|guard| {
            assert!(other.try_acquire().wait().unwrap().is_none());
            (guard.state(), guard.fencing_token())
        });
        let third = third.unwrap();
        assert_eq!([first.0, second.0, third.0], [GuardState::Held; 3]);
        assert!(first.1 < second.1 && second.1 < third.1);
        place.expect_free();
    }

    fn a_guard_that_the_work_keeps_holds_no_longer_than_the_work(place) {
        let lock = place.lock();
        let [dropped, kept] = [(); 2].map(|()| lock.while_held(ready).wait().unwrap());
        assert_eq!((kept.state(), kept.lost().get()), (GuardState::Lost, Some(LostReason::Released)));
        let next = place.lock().acquire().within(TIMEOUT).wait().unwrap();
        // Nor does it take the next one's lock with it, however it ends.
        drop(dropped);
        let _ = Arc::into_inner(kept).unwrap().release().wait();
        // By the same session, so after what that may have sent.
        assert_eq!(lock.holder().wait().unwrap().unwrap().token, next.fencing_token());
        assert_eq!(next.state(), GuardState::Held);
        next.release().wait().unwrap();
        place.expect_free();
    }

    fn work_is_dropped_when_the_lock_is_lost(place) {
        let (begun, gone) = (Flag::default(), Flag::default());
        let held = place.lock().while_held(|_| endless(begun.clone(), gone.clone()));
        thread::scope(|scope| {
            let held = scope.spawn(|| held.wait());
            eventually("it has begun", || begun.is_up());
            assert!(!gone.is_up());
            place.lose();
            assert!(lost(place, held.join().unwrap()).is_none());
        });
        assert!(gone.is_up());
        place.expect_free();
    }

    fn work_does_no_further_step_once_the_clock_says_that_the_lock_is_lost(place) {
        let steps = AtomicUsize::new(0);
        let kept = Mutex::new(None);
        let work = |guard| {
            *kept.lock() = Some(guard);
            async {
                loop {
                    steps.fetch_add(1, Ordering::SeqCst);
                    // Ready for another step each time it is polled.
                    yield_now().await;
                }
            }
        };
        let mut held = pin!(place.lock().acquire().wait().unwrap().while_held(work));
        let mut nobody = Context::from_waker(Waker::noop());
        for _ in 0..3 {
            assert!(held.as_mut().poll(&mut nobody).is_pending());
        }
        assert_eq!(steps.load(Ordering::SeqCst), 3);
        // As of a process that stood still: nobody has polled it since.
        place.lose();
        eventually("it is lost", || kept.lock().as_ref().is_some_and(|guard: &Arc<Guard>| guard.is_lost()));
        assert_eq!(lost(place, block_on(held)), None);
        assert_eq!(steps.load(Ordering::SeqCst), 3);
    }

    fn the_result_of_work_that_ends_after_the_loss_is_not_thrown_away(place) {
        let kept = Mutex::new(None);
        let late = place.lock().while_held(|guard: Arc<Guard>| async {
            place.lose();
            // Within one step: nobody can end the work before it ends.
            eventually("it is lost", || guard.is_lost());
            *kept.lock() = Some(guard);
            "done"
        });
        assert_eq!(lost(place, late.wait()), Some("done"));
        assert!(kept.lock().as_ref().is_some_and(|guard| guard.is_lost()));
        place.expect_free();
    }

    fn work_is_not_started_once_the_lock_is_lost(place) {
        let guard = place.lock().acquire().wait().unwrap();
        place.lose();
        eventually("it is lost", || guard.is_lost());
        let started = Flag::default();
        let ended = guard.while_held(|_| {
            started.raise();
            ready(())
        });
        let error = ended.wait().unwrap_err();
        assert!(matches!(error, WhileHeldError::NotStarted(LockError::NotHeld { .. })), "{error:?}");
        assert!(!started.is_up());
        place.expect_free();
    }

    fn work_that_blocks_is_told_and_its_late_result_is_not_thrown_away(place) {
        let ended = place.lock().while_held_blocking(|guard| {
            let mut states = guard.states();
            assert_eq!(states.wait(), Some(GuardState::Held));
            place.lose();
            while states.wait_timeout(TIMEOUT).expect("it is lost in time") != Some(GuardState::Lost) {}
            assert_eq!(states.wait(), None, "it ends with the loss");
            "done"
        });
        assert_eq!(lost(place, ended), Some("done"));
        place.expect_free();
    }

    fn who_drops_it_ends_the_work_and_releases_the_lock(place) {
        let (begun, gone) = (Flag::default(), Flag::default());
        let mut held = Box::pin(place.lock().while_held(|_| endless(begun.clone(), gone.clone())));
        let mut nobody = Context::from_waker(Waker::noop());
        eventually("it has begun", || {
            assert!(held.as_mut().poll(&mut nobody).is_pending());
            begun.is_up()
        });
        drop(held);
        assert!(gone.is_up());
        place.expect_free();
    }

    fn a_service_takes_the_lock_again_after_each_loss_until_it_is_stopped(place) {
        let starts = AtomicUsize::new(0);
        let lock = place.lock();
        let service = lock.whenever_held(|guard| {
            assert_eq!(guard.state(), GuardState::Held);
            starts.fetch_add(1, Ordering::SeqCst);
            pending::<()>()
        });
        // Ready when a lock within the process is free.
        let stops = LocalStore::new().lock("/stop");
        let goes_on = stops.acquire().wait().unwrap();
        let stop = async { drop(stops.acquire().await) };
        thread::scope(|scope| {
            let service = scope.spawn(|| block_on(service.until(stop)));
            for tenure in 1..=3 {
                eventually("it works", || starts.load(Ordering::SeqCst) == tenure);
                if tenure < 3 {
                    place.lose();
                }
            }
            drop(goes_on);
            assert_eq!(service.join().unwrap().unwrap(), None);
        });
        place.expect_free();
    }

    fn a_service_ends_with_its_work_or_with_an_error_that_stays(place) {
        let lock = place.lock();
        assert_eq!(lock.whenever_held(|_| ready("done")).wait().unwrap(), "done");
        let unusable = place.lock_at("no/path").whenever_held(|_| ready(())).wait();
        assert!(matches!(unusable, Err(LockError::Unusable { .. })), "{unusable:?}");
        place.close();
        let closed = lock.whenever_held(|_| ready(())).wait();
        assert!(matches!(closed, Err(LockError::Closed { .. })), "{closed:?}");
    }
}

each_strategy! {
    fn work_ends_before_another_holds_when_the_link_is_cut(strategy) {
        let bench = Bench::shared();
        let (holder, other) = (bench.client(), bench.direct());
        let (begun, gone) = (Flag::default(), Flag::default());
        let held = bench.lock(&holder, strategy).while_held(|_| endless(begun.clone(), gone.clone()));
        thread::scope(|scope| {
            let held = scope.spawn(|| held.wait());
            eventually("it has begun", || begun.is_up());
            bench.proxy.cut();
            let next = bench.lock(&other, strategy).acquire().wait().unwrap();
            assert!(gone.is_up(), "another holds, and the work goes on");
            let lost = held.join().unwrap().unwrap_err();
            assert!(matches!(lost, WhileHeldError::Lost { reason: LostReason::Session, result: None, .. }));
            next.release().wait().unwrap();
        });
    }

    fn a_service_stops_at_once_while_no_server_answers(strategy) {
        let bench = Bench::shared();
        let holder = options().connect(&bench.proxy.hosts()).wait().unwrap();
        let lock = bench.lock(&holder, strategy);
        for works in [true, false] {
            let other = (!works).then(|| lock.acquire().wait().unwrap());
            let begun = Flag::default();
            let mut service = lock.whenever_held(|_| endless(begun.clone(), Flag::default()));
            if works {
                let mut nobody = Context::from_waker(Waker::noop());
                eventually("it works", || {
                    assert!(std::pin::Pin::new(&mut service).poll(&mut nobody).is_pending());
                    begun.is_up()
                });
            }
            bench.proxy.cut();
            let asked = Instant::now();
            assert_eq!(block_on(service.until(ready(()))).unwrap(), None);
            assert!(asked.elapsed() < holder.session_timeout().unwrap() / 2, "{:?}", asked.elapsed());
            bench.proxy.heal();
            drop(other);
            bench.expect_free(strategy);
        }
    }

    fn the_states_of_a_guard_follow_its_connection(strategy) {
        let bench = Bench::shared();
        let holder = bench.client();
        let guard = bench.lock(&holder, strategy).acquire().wait().unwrap();
        let mut states = guard.states();
        assert_eq!(states.wait(), Some(GuardState::Held));
        assert_eq!(states.wait_timeout(Duration::ZERO), Err(Timeout), "nothing has changed");
        bench.proxy.refuse();
        assert_eq!(states.wait_timeout(TIMEOUT), Ok(Some(GuardState::Suspended)));
        bench.proxy.heal();
        assert_eq!(states.wait_timeout(TIMEOUT), Ok(Some(GuardState::Held)));
        guard.release().wait().unwrap();
        assert_eq!(states.wait_timeout(TIMEOUT), Ok(Some(GuardState::Lost)));
        assert_eq!((states.wait(), states.wait()), (None, None));
    }
}
