//! Paths that are missing, that vanish, and that are something else than a lock.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use test_support::{SESSION_TIMEOUT, TIMEOUT, eventually, options};
use zklock::{Code, Election, LocalHandoff, LockError, MultiLock, Strategy};
use zklock_testing::wire::{CreateMode, Ops, RawClient};
use zklock_testing::{Proxy, Rule, Server};

use crate::bench::{Bench, each_strategy};
use crate::place::each_store;

each_store! {
    fn a_bad_path_is_refused(place) {
        let huge = format!("/{}", "x".repeat(2 << 20));
        for path in ["", "lock", "/lock/", "/a//b", "/a/../b", "/a\0b", "/a\u{1}b", huge.as_str()] {
            let lock = place.lock_at(path);
            let error = lock.acquire().wait().unwrap_err();
            assert_eq!(error.code(), Code::BAD_ARGUMENTS, "{error}");
            assert!(matches!(error, LockError::Unusable { .. }), "{error:?}");
            assert!(!error.to_string().contains('\n') && error.to_string().len() < 2_000);
            assert_eq!(lock.try_acquire().wait().unwrap_err().code(), Code::BAD_ARGUMENTS);
            assert_eq!(lock.holder().wait().unwrap_err().code(), Code::BAD_ARGUMENTS);
        }
    }

    fn a_lock_with_a_name_of_zklocks_own_can_be_looked_at_and_not_acquired(place) {
        let path = format!("{}/zl-handover", place.path);
        let lock = place.lock_at(&path);
        let refused = [
            lock.acquire().wait().unwrap_err(),
            lock.try_acquire().wait().unwrap_err(),
            lock.clone().label("x").local_handoff(LocalHandoff::new()).acquire().wait().unwrap_err(),
            MultiLock::new([lock.clone()]).acquire().wait().unwrap_err(),
            Election::new(lock.clone()).campaign().wait().unwrap_err(),
        ];
        for error in refused {
            let LockError::Unusable { code: Code::BAD_ARGUMENTS, .. } = &error else { panic!("{error:?}") };
            let text = error.to_string();
            assert!(text.contains(&path) && text.contains("choose another name"), "{text}");
        }
        assert!(!lock.is_locked().wait().unwrap());
        drop(place.lock_at(&format!("{}/zlib", place.path)).acquire().wait().unwrap());
    }
}

#[test]
fn keys_and_permits_at_a_name_of_zklocks_own_are_refused() {
    let bench = Bench::shared();
    let client = bench.direct();
    let path = format!("{}/zl-open", bench.path);
    let key = client.locks(&path).lock("key").acquire().wait().unwrap_err();
    assert_eq!(key.code(), Code::BAD_ARGUMENTS, "{key}");
    let permits = client.semaphore(&path, 3);
    assert_eq!(permits.set_limit(4).wait().unwrap_err().code(), Code::BAD_ARGUMENTS);
    assert_eq!(permits.permit().acquire().wait().unwrap_err().code(), Code::BAD_ARGUMENTS);
    assert!(!bench.exists(&bench.path), "nothing was made");
}

each_strategy! {
    fn what_is_missing_above_a_lock_is_made(strategy) {
        let bench = Bench::shared();
        let client = bench.direct();
        let path = format!("{}/a/b/c/d/e/lock", bench.path);
        let lock = client.lock(&path).strategy(strategy);
        let guard = lock.acquire().within(TIMEOUT).wait().unwrap();
        assert!(lock.is_locked().wait().unwrap());
        guard.release().wait().unwrap();
        assert!(lock.try_acquire().wait().unwrap().is_some());
    }

    fn a_path_that_somebody_keeps_deleting_is_made_again(strategy) {
        let bench = Bench::shared();
        let client = bench.direct();
        let path = format!("{}/a/b/lock", bench.path);
        let lock = client.lock(&path).strategy(strategy);
        let (stop, deleted) = (AtomicBool::new(false), AtomicU32::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut raw = RawClient::connect(bench.server.addr(), SESSION_TIMEOUT * 4).unwrap();
                while !stop.load(Ordering::SeqCst) {
                    for path in [path.as_str(), &path[..path.len() - 5], &path[..path.len() - 7]] {
                        // Not while it is a poll or watch lock that is held.
                        if path.ends_with("lock") && strategy != Strategy::Queue {
                            continue;
                        }
                        deleted.fetch_add(u32::from(raw.delete(path).is_ok()), Ordering::SeqCst);
                    }
                }
            });
            for _ in 0..1000 {
                if deleted.load(Ordering::SeqCst) > 30 {
                    break;
                }
                let guard = lock.acquire().within(TIMEOUT).wait();
                let released = guard.map(|guard| guard.release().wait());
                if !matches!(released, Ok(Ok(()))) {
                    stop.store(true, Ordering::SeqCst);
                    panic!("{released:?}");
                }
            }
            stop.store(true, Ordering::SeqCst);
        });
        assert!(deleted.into_inner() > 30);
    }

    fn a_path_that_vanishes_while_it_is_made_is_made_again(strategy) {
        let bench = Bench::shared();
        let client = bench.client();
        let path = format!("{}/a/b/lock", bench.path);
        // Its grandparent has just been made when it is deleted again.
        let below = format!("{}/a/b", bench.path);
        let gate = bench.proxy.hold(Rule::request(Ops::creates()).path(&below).nth(2));
        let lock = client.lock(&path).strategy(strategy);
        let acquiring = thread::spawn(move || lock.acquire().within(TIMEOUT).wait());
        gate.wait_reached(TIMEOUT).unwrap();
        let parent = format!("{}/a", bench.path);
        bench.ask(|raw| raw.delete(&parent)).unwrap();
        gate.release();
        acquiring.join().unwrap().unwrap().release().wait().unwrap();
    }

    fn a_chroot_that_does_not_exist_is_an_error_and_no_wait(strategy) {
        let bench = Bench::shared();
        let hosts = format!("{}/no-such-chroot", bench.server.hosts());
        let client = options().connect(&hosts).wait().unwrap();
        for path in ["/lock", "/a/b/lock"] {
            let lock = client.lock(path).strategy(strategy);
            let error = lock.acquire().within(TIMEOUT).wait().unwrap_err();
            assert_eq!(error.code(), Code::NO_NODE, "{error}");
            assert_eq!(error.path(), path);
            assert!(matches!(error, LockError::Unusable { .. }), "{error:?}");
            assert!(error.to_string().contains("chroot"), "{error}");
        }
    }

    fn a_lock_in_a_chroot_works_as_anywhere(strategy) {
        let bench = Bench::shared();
        let (parent, _) = bench.path.rsplit_once('/').unwrap();
        let client = options().connect(&format!("{}{parent}", bench.server.hosts())).wait().unwrap();
        let lock = client.lock("/lock").strategy(strategy);
        let guard = lock.acquire().within(TIMEOUT).wait().unwrap();
        assert_eq!(bench.claims(strategy)[0].czxid, guard.fencing_token());
        assert_eq!(lock.holder().wait().unwrap().unwrap().path, &*guard.claim_path());
        let proxy = Proxy::start(bench.server.addr()).unwrap();
        let other = options().connect(&format!("{}{parent}", proxy.hosts())).wait().unwrap();
        let waiting = other.lock("/lock").strategy(strategy).acquire().within(TIMEOUT);
        let waiting = thread::spawn(move || waiting.wait());
        proxy.wait_for(&Rule::request(Ops::creates()), 1, TIMEOUT).unwrap();
        guard.release().wait().unwrap();
        waiting.join().unwrap().unwrap().release().wait().unwrap();
    }
}

#[test]
fn a_path_that_is_somebodys_data_is_an_error_and_no_wait() {
    for strategy in [Strategy::Poll, Strategy::Watch] {
        for mode in
            [CreateMode::Persistent, CreateMode::Container, CreateMode::Ttl(SESSION_TIMEOUT * 60)]
        {
            let bench = Bench::shared();
            match bench.ask(|raw| raw.create_with(&bench.path, b"data", mode)) {
                // A server whose id is 255 knows no time to live.
                Err(error) if error.code() == Some(Code::UNIMPLEMENTED.as_raw()) => continue,
                made => drop(made.unwrap()),
            }
            let client = bench.direct();
            let lock = bench.lock(&client, strategy);
            for error in [
                lock.acquire().within(TIMEOUT).wait().unwrap_err(),
                lock.try_acquire().wait().unwrap_err(),
            ] {
                assert_eq!(error.code(), Code::NODE_EXISTS, "{error}");
                assert!(matches!(error, LockError::Unusable { .. }), "{error:?}");
                assert!(error.to_string().contains("not ephemeral"), "{error}");
            }
            for error in [
                lock.is_locked().wait().unwrap_err(),
                lock.holder().wait().unwrap_err(),
                lock.contenders().wait().unwrap_err(),
            ] {
                assert_eq!(
                    error.code(),
                    Code::NODE_EXISTS,
                    "nobody can say that it is free: {error}"
                );
            }
        }
    }
}

#[test]
fn a_queue_under_somebodys_ephemeral_znode_is_an_error_and_no_wait() {
    let bench = Bench::shared();
    let holder = bench.direct();
    let _guard = bench.lock(&holder, Strategy::Watch).acquire().wait().unwrap();
    let client = bench.direct();
    for path in [bench.path.clone(), format!("{}/below", bench.path)] {
        let lock = client.lock(&path);
        for error in [
            lock.acquire().within(TIMEOUT).wait().unwrap_err(),
            lock.try_acquire().wait().unwrap_err(),
        ] {
            assert_eq!(error.code(), Code::NO_CHILDREN_FOR_EPHEMERALS, "{error}");
            assert_eq!(error.path(), path);
            assert!(matches!(error, LockError::Unusable { .. }), "{error:?}");
            assert!(error.to_string().contains("path"), "it says what would help: {error}");
        }
    }
    let error = client.lock(&bench.path).acquire().wait().unwrap_err();
    assert!(error.to_string().contains("perhaps a poll or watch lock"), "{error}");
    let error = client.lock(&bench.path).holder().wait().unwrap_err();
    assert_eq!(error.code(), Code::NO_CHILDREN_FOR_EPHEMERALS, "{error}");
}

#[test]
fn the_root_is_a_queue_and_no_lock_of_another_strategy() {
    let bench = Bench::own();
    let client = bench.direct();
    let lock = client.lock("/");
    let guard = lock.acquire().within(TIMEOUT).wait().unwrap();
    assert!(guard.claim_path().starts_with("/zl-"));
    let other = bench.direct();
    assert!(other.lock("/").try_acquire().wait().unwrap().is_none());
    guard.release().wait().unwrap();
    for strategy in [Strategy::Poll, Strategy::Watch] {
        let lock = client.lock("/").strategy(strategy);
        let acquired = lock.acquire().within(TIMEOUT).wait().map(drop);
        for refused in [acquired, lock.is_locked().wait().map(drop)] {
            let error = refused.unwrap_err();
            assert_eq!(error.code(), Code::BAD_ARGUMENTS, "{error}");
            assert!(error.to_string().contains("root"), "{error}");
        }
    }
}

#[test]
fn a_server_that_reaps_empty_containers_does_not_disturb() {
    let reaping = Server::builder().container_check_interval(Duration::from_millis(20));
    let bench = Bench::with(reaping);
    let client = bench.client();
    let deletions = |bench: &Bench| {
        let client = bench.client();
        client.exists(&bench.path).wait().unwrap().is_none()
    };
    let mut reaped = 0;
    eventually("some are reaped on the way", || {
        let lock = client.lock(&bench.path);
        lock.acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
        reaped += u32::from(deletions(&bench));
        reaped > 3
    });
    eventually("the last one is reaped, too", || deletions(&bench));
}
