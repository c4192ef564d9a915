//! A queue's order: first come, first served, whoever stands in it and whoever leaves it.

use test_support::{SESSION_TIMEOUT, TIMEOUT, acquire_in_background, eventually, session_id};
use zklock::Strategy;
use zklock::zookeeper::{Acl, CreateMode, Permissions};
use zklock_testing::wire::{self, Op, Ops, RawClient};
use zklock_testing::{Action, Rule};

use crate::bench::{Bench, each_strategy};

const QUEUE: Strategy = Strategy::Queue;

#[test]
fn waiters_are_served_in_the_order_of_their_coming() {
    const WAITERS: usize = 10;
    let bench = Bench::shared();
    let clients: Vec<_> = (0..WAITERS).map(|_| bench.direct()).collect();
    bench.prepare(QUEUE);
    let mut stranger = bench.stranger(QUEUE);
    let (send, served) = std::sync::mpsc::channel();
    let mut waiters = Vec::new();
    for (number, client) in clients.iter().enumerate() {
        let (lock, send) = (bench.lock(client, QUEUE), send.clone());
        waiters.push(std::thread::spawn(move || {
            let guard = lock.acquire().within(TIMEOUT).wait().unwrap();
            send.send((number, guard.fencing_token())).unwrap();
            guard.release().wait().unwrap();
        }));
        eventually("it is in line", || bench.claims(QUEUE).len() == number + 2);
    }
    stranger.leave();
    for waiter in waiters {
        waiter.join().unwrap();
    }
    let served: Vec<(usize, i64)> = served.try_iter().collect();
    let order: Vec<usize> = served.iter().map(|(number, _)| *number).collect();
    assert_eq!(order, (0..WAITERS).collect::<Vec<_>>());
    assert!(served.is_sorted_by(|a, b| a.1 < b.1));
}

#[test]
fn a_predecessor_that_goes_between_list_and_watch_is_not_waited_for() {
    let bench = Bench::shared();
    bench.prepare(QUEUE);
    for direct in [false, true] {
        let mut first = bench.stranger(QUEUE);
        let mut second = bench.stranger(QUEUE);
        let client = bench.client();
        let session = session_id(&client);
        let gate = bench.proxy.hold(Rule::request(Op::GetData).path(&second.path).once());
        let waiting = acquire_in_background(&bench.lock(&client, QUEUE));
        gate.wait_reached(TIMEOUT).unwrap();
        if direct {
            first.leave();
        }
        second.leave();
        gate.release();
        if !direct {
            eventually("it watches the one before", || {
                let watches = bench.server.watches().unwrap();
                watches.get(&first.path).is_some_and(|sessions| sessions.contains(&session))
            });
            assert!(!waiting.is_finished());
            first.leave();
        }
        waiting.join().unwrap().unwrap().release().wait().unwrap();
        eventually("no watch is left", || bench.watches_of(session) == 0);
    }
}

#[test]
fn a_waiter_whose_claim_is_deleted_claims_again() {
    let bench = Bench::shared();
    bench.prepare(QUEUE);
    let mut stranger = bench.stranger(QUEUE);
    let client = bench.direct();
    let session = session_id(&client);
    let waiting = acquire_in_background(&bench.lock(&client, QUEUE));
    eventually("it watches, its own claim too", || bench.watches_of(session) == 2);
    let claim = bench.claims(QUEUE).pop().unwrap();
    bench.ask(|raw| raw.delete(&claim.path)).unwrap();
    // Somebody comes in between, and is ahead now.
    let mut other = bench.stranger(QUEUE);
    stranger.leave();
    eventually("it has claimed again", || bench.claims(QUEUE).len() == 2);
    assert!(!waiting.is_finished());
    other.leave();
    let guard = waiting.join().unwrap().unwrap();
    assert_ne!(&*guard.claim_path(), claim.path);
    guard.release().wait().unwrap();
    bench.expect_free(QUEUE);
}

#[test]
fn a_waiter_whose_directory_is_deleted_claims_again_and_leaves_the_new_claims_alone() {
    let bench = Bench::shared();
    bench.prepare(QUEUE);
    let mut stranger = bench.stranger(QUEUE);
    let client = bench.client();
    let session = session_id(&client);
    let waiting = acquire_in_background(&bench.lock(&client, QUEUE));
    eventually("it watches, its own claim too", || bench.watches_of(session) == 2);
    let claim = bench.claims(QUEUE).pop().unwrap();
    let listing = bench.proxy.hold(Rule::request(Ops::lists()).once());
    let ops = [Op::Delete, Op::GetData];
    let giving_up = bench.proxy.hold(Rule::request(ops).path(&claim.path).once());
    bench.ask(|raw| raw.delete(&claim.path)).unwrap();
    stranger.leave();
    listing.wait_reached(TIMEOUT).unwrap();
    bench.ask(|raw| raw.delete(&bench.path)).unwrap();
    listing.release();
    // Before it deletes what it believes to be its own, somebody else's has that name.
    giving_up.wait_reached(TIMEOUT).unwrap();
    bench.prepare(QUEUE);
    let mut others = [bench.stranger(QUEUE), bench.stranger_at(&claim.path)];
    giving_up.release();
    eventually("it has claimed again", || bench.claims(QUEUE).len() == 3);
    assert!(!waiting.is_finished());
    others.iter_mut().for_each(|other| other.leave());
    waiting.join().unwrap().unwrap().release().wait().unwrap();
    bench.expect_free(QUEUE);
}

#[test]
fn a_claim_that_may_not_be_read_is_not_taken_for_our_own() {
    let bench = Bench::shared();
    bench.prepare(QUEUE);
    let client = bench.client();
    // Far behind, so that nobody waits for it; only who looks for a lost claim comes across it.
    let nobody = [Acl::new(Permissions::WRITE, "world", "anyone")];
    let path = format!("{}/zl-2a-lock-0000001000", bench.path);
    bench.direct().create_with_acl(&path, b"", CreateMode::Persistent, &nobody).wait().unwrap();
    let lost = bench.proxy.on(Rule::reply(Ops::creates()).once(), Action::Drop);
    let guard = bench.lock(&client, QUEUE).acquire().within(TIMEOUT).wait().unwrap();
    lost.wait_hits(1, TIMEOUT).unwrap();
    guard.release().wait().unwrap();
    assert_eq!(bench.children(), ["zl-2a-lock-0000001000"]);
}

#[test]
fn children_that_are_no_claims_stand_in_nobodys_way() {
    let bench = Bench::shared();
    bench.prepare(QUEUE);
    let names = ["config", "lock-", "x", "日本語", "é-0000000000x", "-", "__", "lock-123", "a-b-c"];
    let mut raw = RawClient::connect(bench.server.addr(), SESSION_TIMEOUT * 4).unwrap();
    for (n, name) in names.into_iter().enumerate() {
        let mode =
            if n % 2 == 0 { wire::CreateMode::Persistent } else { wire::CreateMode::Ephemeral };
        raw.create_with(&format!("{}/{name}", bench.path), b"", mode).unwrap();
    }
    // A claim's name, but no session will ever end it.
    let ahead = format!("{}/zl-2a-lock-", bench.path);
    raw.create_with(&ahead, b"", wire::CreateMode::PersistentSequential).unwrap();
    raw.create_with(&format!("{}/x-0000000000", bench.path), b"", wire::CreateMode::Persistent)
        .unwrap();
    raw.create_with(&format!("{}/x-0000000001", bench.path), b"", wire::CreateMode::Container)
        .unwrap();
    let client = bench.direct();
    let lock = bench.lock(&client, QUEUE);
    assert!(!lock.is_locked().wait().unwrap());
    for _ in 0..2 {
        let guard = lock.acquire().within(TIMEOUT).wait().unwrap();
        assert_eq!(lock.holder().wait().unwrap().unwrap().path, &*guard.claim_path());
        guard.release().wait().unwrap();
        lock.try_acquire().wait().unwrap().expect("it is free").release().wait().unwrap();
    }
    assert_eq!(bench.children().len(), names.len() + 3);
}

#[test]
fn claims_of_other_libraries_are_waited_for_in_the_order_of_their_numbers() {
    let bench = Bench::shared();
    bench.prepare(QUEUE);
    let client = bench.direct();
    let session = session_id(&client);
    let mut raw = RawClient::connect(bench.server.addr(), SESSION_TIMEOUT * 4).unwrap();
    for prefix in [
        "_c_8a7ed3a3-3e4f-44c2-a8f0-3b6e6d0a9c11-lock-",
        "_c_0123456789abcdef0123456789abcdef-lock-",
        "x-00000abcdef01234-",
        "x-72075940379828224-",
        "0123456789abcdef0123456789abcdef__lock__",
    ] {
        let prefix = format!("{}/{prefix}", bench.path);
        let ahead =
            raw.create_with(&prefix, b"10.0.0.7", wire::CreateMode::EphemeralSequential).unwrap();
        let lock = bench.lock(&client, QUEUE);
        assert!(lock.try_acquire().wait().unwrap().is_none(), "{ahead}");
        let holder = lock.holder().wait().unwrap().unwrap();
        assert_eq!((holder.path.as_str(), holder.label.as_str()), (ahead.as_str(), "10.0.0.7"));
        let waiting = acquire_in_background(&lock);
        eventually("it watches", || bench.watches_of(session) >= 1);
        let behind = raw.create_with(&prefix, b"", wire::CreateMode::EphemeralSequential).unwrap();
        assert!(!waiting.is_finished());
        raw.delete(&ahead).unwrap();
        let guard = waiting.join().unwrap().unwrap();
        guard.release().wait().unwrap();
        raw.delete(&behind).unwrap();
    }
    bench.expect_free(QUEUE);
}

#[test]
fn numbers_from_all_around_the_circle_confuse_nobody() {
    let bench = Bench::shared();
    bench.prepare(QUEUE);
    let mut raw = RawClient::connect(bench.server.addr(), SESSION_TIMEOUT * 4).unwrap();
    // No order puts all of these in one line. They are no claims either: nothing will end them.
    for n in 0..60_i64 {
        let number = (n * 1_431_655_765 % (1 << 32)) as u32 as i32;
        let path = format!("{}/lock-{number:010}", bench.path);
        raw.create_with(&path, b"", wire::CreateMode::Persistent).unwrap();
    }
    let client = bench.direct();
    let lock = bench.lock(&client, QUEUE);
    assert!(!lock.is_locked().wait().unwrap());
    lock.try_acquire().wait().unwrap().expect("it is free").release().wait().unwrap();
    lock.acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
}

each_strategy! {
    fn a_watched_predecessor_has_one_watch_and_its_end_takes_it_along(strategy) {
        let bench = Bench::shared();
        bench.prepare(strategy);
        let mut stranger = bench.stranger(strategy);
        let client = bench.direct();
        let session = session_id(&client);
        // Several threads of one client wait on one session.
        let waiters: Vec<_> =
            (0..3).map(|_| acquire_in_background(&bench.lock(&client, strategy))).collect();
        let expected = match strategy {
            Strategy::Poll => 0,
            Strategy::Watch => 1,
            _ => 3,
        };
        eventually("they watch", || bench.watches_of(session) >= expected);
        for (path, sessions) in bench.server.watches().unwrap() {
            let ours = sessions.iter().filter(|id| **id == session).count();
            assert!(ours <= 1, "{path}: {sessions:?}");
        }
        stranger.leave();
        let mut guards = waiters;
        while !guards.is_empty() {
            eventually("one of them acquires", || guards.iter().any(|waiter| waiter.is_finished()));
            let (done, rest): (Vec<_>, Vec<_>) =
                guards.into_iter().partition(|waiter| waiter.is_finished());
            assert_eq!(done.len(), 1, "one at a time");
            for waiter in done {
                waiter.join().unwrap().unwrap().release().wait().unwrap();
            }
            guards = rest;
        }
        eventually("no watch is left", || bench.watches_of(session) == 0);
    }
}
