//! The holders of a lock, as somebody sees them who does not contend.

use std::thread;
use std::time::Duration;

use test_support::{
    TIMEOUT, acquire_in_background, expect_blocked, session_id, wait_for_another_session,
};
use zklock::{Access, Contender, Holders, LockError};
use zklock_testing::Action;

use crate::bench::{Bench, each_strategy};
use crate::place::each_store;

fn next(holders: &mut Holders) -> Option<Contender> {
    holders.wait_timeout(TIMEOUT).expect("it is reported in time").expect("it goes on").unwrap()
}

/// Waits until that token is reported, or nobody; who comes between may be left out.
fn reach(holders: &mut Holders, token: Option<i64>) {
    while next(holders).map(|holder| holder.token) != token {}
}

fn is_silent(holders: &mut Holders) -> bool {
    holders.wait_timeout(Duration::from_millis(100)).is_err()
}

each_store! {
    fn each_new_holder_is_reported_once(place) {
        let mut holders = place.lock().watch_holder();
        assert_eq!(next(&mut holders), None, "nobody holds it");
        assert!(is_silent(&mut holders));
        let guard = place.lock().label("night run").acquire().wait().unwrap();
        let holder = next(&mut holders).unwrap();
        assert_eq!((holder.token, holder.label.as_str()), (guard.fencing_token(), "night run"));
        assert_eq!(holder.path, &*guard.claim_path());
        let waiting = acquire_in_background(&place.lock());
        assert!(is_silent(&mut holders), "who waits is no holder");
        guard.release().wait().unwrap();
        let second = waiting.join().unwrap().unwrap();
        reach(&mut holders, Some(second.fencing_token()));
        place.lose();
        reach(&mut holders, None);
        // Another's view begins with the present.
        assert_eq!(next(&mut place.lock().watch_holder()), None);
        place.close();
        let error = holders.wait_timeout(TIMEOUT).expect("it ends").unwrap().unwrap_err();
        assert!(matches!(error, LockError::Closed { .. }), "{error:?}");
        assert!(holders.wait().is_none(), "nothing follows an error");
    }

    fn who_waits_for_a_holder_hears_that_the_store_is_closed(place) {
        let mut holders = place.lock().watch_holder();
        assert_eq!(next(&mut holders), None);
        let waiting = thread::spawn(move || holders.wait());
        expect_blocked([&waiting]);
        place.close();
        let error = waiting.join().unwrap().unwrap().unwrap_err();
        assert!(matches!(error, LockError::Closed { .. }), "{error:?}");
    }
}

#[test]
fn a_hold_that_was_downgraded_is_watched_as_any_other() {
    let bench = Bench::shared();
    let (watcher, holder) = (bench.client(), bench.direct());
    let guard = holder.read_write(&bench.path).write().acquire().wait().unwrap();
    guard.downgrade(Access::Read).wait().unwrap();
    let mut holders = watcher.read_write(&bench.path).read().watch_holder();
    assert_eq!(next(&mut holders).map(|holder| holder.token), Some(guard.fencing_token()));
    bench.proxy.clear_seen();
    assert!(is_silent(&mut holders));
    let asked = bench.asked();
    assert!(asked.len() <= 6, "looked at once, then watched: {asked:?}");
    guard.release().wait().unwrap();
    assert_eq!(next(&mut holders), None);
}

each_strategy! {
    fn no_change_is_missed_by_a_session_that_ends(strategy) {
        let bench = Bench::shared();
        let (watcher, contender) = (bench.client(), bench.direct());
        let lock = bench.lock(&contender, strategy);
        let mut holders = bench.lock(&watcher, strategy).watch_holder();
        assert_eq!(next(&mut holders), None);
        assert!(is_silent(&mut holders));
        for round in 0..4 {
            // With the watch set, and behind its back.
            bench.proxy.refuse();
            let guard = lock.acquire().wait().unwrap();
            let session = session_id(&watcher);
            if round % 2 == 0 {
                bench.expire(&watcher);
            }
            bench.proxy.heal();
            reach(&mut holders, Some(guard.fencing_token()));
            if round % 2 == 0 {
                wait_for_another_session(&watcher, session);
            }
            bench.proxy.reset_all();
            guard.release().wait().unwrap();
            reach(&mut holders, None);
        }
        assert!(is_silent(&mut holders));
        bench.expect_free(strategy);
    }

    fn no_change_is_missed_whichever_reply_is_lost(strategy) {
        let mut hits = 0;
        for nth in 1..=8 {
            let bench = Bench::shared();
            let (watcher, contender) = (bench.client(), bench.direct());
            bench.prepare(strategy);
            let lost = bench.proxy.on(bench.replies().nth(nth), Action::Drop);
            let mut holders = bench.lock(&watcher, strategy).watch_holder();
            assert_eq!(next(&mut holders), None);
            // It goes on only while somebody asks.
            while !is_silent(&mut holders) {}
            let guard = bench.lock(&contender, strategy).acquire().wait().unwrap();
            reach(&mut holders, Some(guard.fencing_token()));
            assert!(is_silent(&mut holders));
            guard.release().wait().unwrap();
            reach(&mut holders, None);
            hits += lost.hits();
        }
        assert!(hits >= 5, "{hits} replies were lost");
    }

    fn a_path_that_is_no_such_lock_is_reported_as_that(strategy) {
        let bench = Bench::shared();
        bench.ask(|raw| raw.create(&bench.path, b"data")).unwrap();
        let client = bench.direct();
        if strategy != zklock::Strategy::Queue {
            let error = bench.lock(&client, strategy).watch_holder().wait().unwrap().unwrap_err();
            assert!(matches!(error, LockError::Unusable { .. }), "{error:?}");
        }
        let error = client.lock("no/path").strategy(strategy).watch_holder().wait().unwrap().unwrap_err();
        assert!(matches!(error, LockError::Unusable { .. }), "{error:?}");
    }
}
