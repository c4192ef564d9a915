//! What a guard promises, and what others can see of it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use test_support::{TIMEOUT, acquire_in_background, eventually, options, session_id};
use zklock::zookeeper::{CreateMode, Op as Operation, OpResult, SessionState};
use zklock::{Client, Code, GuardState, LockError, LostReason, Pending, Strategy};
use zklock_testing::wire::Op;
use zklock_testing::{Action, Rule, expire_session};

use crate::bench::{Bench, each_strategy};
use crate::place::late;

each_strategy! {
    fn a_guard_that_outlives_client_and_lock_keeps_the_session(strategy) {
        let bench = Bench::shared();
        let client = bench.direct();
        let session = session_id(&client);
        let guard = {
            let lock = bench.lock(&client, strategy);
            drop(client);
            lock.acquire().wait().unwrap()
        };
        assert_eq!(guard.state(), GuardState::Held);
        assert_eq!(bench.claims(strategy)[0].session, session);
        let other = bench.direct();
        assert!(bench.lock(&other, strategy).try_acquire().wait().unwrap().is_none());
        let lost = guard.lost();
        guard.release().wait().unwrap();
        assert_eq!(lost.wait(), LostReason::Released);
        eventually("the session ends with the guard", || {
            !bench.server.sessions().unwrap().contains(&session)
        });
        bench.expect_free(strategy);
    }

    fn dropping_everything_at_once_still_releases(strategy) {
        let bench = Bench::shared();
        let guard = bench.lock(&bench.direct(), strategy).acquire().wait().unwrap();
        drop(guard);
        bench.expect_free(strategy);
    }

    fn a_claim_that_an_operator_deletes_is_told_as_lost(strategy) {
        let bench = Bench::shared();
        let client = bench.direct();
        let guard = bench.lock(&client, strategy).acquire().wait().unwrap();
        let lost = guard.lost();
        let session = session_id(&client);
        // Long enough held to be watched.
        eventually("it is watched", || bench.watches_of(session) > 0);
        bench.ask(|raw| raw.delete(&guard.claim_path())).unwrap();
        assert_eq!(lost.wait_timeout(TIMEOUT), Some(LostReason::Deleted));
        assert_eq!(guard.state(), GuardState::Lost);
        assert_eq!(futures_lite::future::block_on(lost), LostReason::Deleted);
        let error = guard.release().wait().unwrap_err();
        assert!(matches!(error, LockError::Lost { reason: LostReason::Deleted, .. }), "{error:?}");
        assert!(error.is_lost() && error.code() == Code::NO_NODE);
        assert!(error.to_string().contains("deleted"), "{error}");
        bench.expect_free(strategy);
    }

    fn a_claim_that_is_deleted_before_it_is_watched_is_told_as_lost(strategy) {
        let bench = Bench::shared();
        let client = bench.direct();
        let guard = bench.lock(&client, strategy).acquire().wait().unwrap();
        bench.ask(|raw| raw.delete(&guard.claim_path())).unwrap();
        assert_eq!(guard.lost().wait_timeout(TIMEOUT), Some(LostReason::Deleted));
        assert_eq!(guard.release().wait().unwrap_err().code(), Code::NO_NODE);
    }

    fn a_claim_that_is_deleted_and_made_anew_by_another_thread_is_told_as_lost(strategy) {
        let bench = Bench::shared();
        let client = bench.direct();
        let lock = bench.lock(&client, strategy);
        let robbed = lock.acquire().wait().unwrap();
        // Before it is watched, on a machine that is quick enough.
        bench.ask(|raw| raw.delete(&robbed.claim_path())).unwrap();
        let guard = lock.acquire().within(TIMEOUT).wait().unwrap();
        assert_eq!(robbed.lost().wait_timeout(TIMEOUT), Some(LostReason::Deleted));
        assert_eq!(robbed.release().wait().unwrap_err().code(), Code::NO_NODE);
        assert_eq!(guard.state(), GuardState::Held);
        assert_eq!(bench.claims(strategy)[0].czxid, guard.fencing_token());
        guard.release().wait().unwrap();
    }

    fn a_deletion_follows_no_look_that_is_old(strategy) {
        // Only who looks before it deletes can be late.
        if strategy == Strategy::Queue {
            return;
        }
        let bench = Bench::shared();
        let client = bench.client();
        let guard = bench.lock(&client, strategy).acquire().wait().unwrap();
        let path = guard.claim_path().to_string();
        let looked = bench.proxy.hold(Rule::reply(Op::GetData).path(&path).watching(false).once());
        let released = guard.release();
        looked.wait_reached(TIMEOUT).unwrap();
        bench.ask(|raw| raw.delete(&path)).unwrap();
        let mut stranger = bench.stranger_at(&path);
        // Longer than a look may be old.
        std::thread::sleep(Duration::from_millis(300));
        looked.release();
        assert_eq!(released.wait().unwrap_err().code(), Code::NO_NODE);
        assert_eq!(bench.claims(strategy).len(), 1, "the successor's claim is deleted");
        stranger.leave();
    }

    fn a_claim_that_somebody_writes_to_stays_and_stays_watched(strategy) {
        let bench = Bench::shared();
        let client = bench.direct();
        let guard = bench.lock(&client, strategy).acquire().wait().unwrap();
        let session = session_id(&client);
        for _ in 0..3 {
            eventually("it is watched", || bench.watches_of(session) > 0);
            bench.ask(|raw| raw.set_data(&guard.claim_path(), b"scribble")).unwrap();
        }
        eventually("it is watched", || bench.watches_of(session) > 0);
        assert_eq!(guard.state(), GuardState::Held);
        guard.release().wait().unwrap();
        eventually("no watch is left", || bench.watches_of(session) == 0);
    }

    fn a_release_never_deletes_the_claim_of_a_successor(strategy) {
        let bench = Bench::shared();
        let (client, other) = (bench.direct(), bench.direct());
        let guard = bench.lock(&client, strategy).acquire().wait().unwrap();
        bench.ask(|raw| raw.delete(&guard.claim_path())).unwrap();
        // Under a directory that is made anew the numbers begin anew, too.
        if strategy == Strategy::Queue {
            bench.ask(|raw| raw.delete(&bench.path)).unwrap();
        }
        let others = bench.lock(&other, strategy).acquire().within(TIMEOUT).wait().unwrap();
        assert_eq!(*others.claim_path() == *guard.claim_path(), strategy != Strategy::Queue);
        assert_eq!(guard.lost().wait_timeout(TIMEOUT), Some(LostReason::Deleted));
        assert_eq!(guard.release().wait().unwrap_err().code(), Code::NO_NODE);
        let claims = bench.claims(strategy);
        assert_eq!(claims.len(), 1);
        assert_eq!(claims[0].czxid, others.fencing_token());
        assert_eq!(others.state(), GuardState::Held);
        others.release().wait().unwrap();
    }

    fn a_deletion_is_repeated_only_once_the_server_has_caught_up(strategy) {
        let bench = Bench::shared();
        let client = bench.client();
        let guard = bench.lock(&client, strategy).acquire().wait().unwrap();
        let lost = bench.proxy.on(Rule::reply(Op::Delete).once(), Action::Drop);
        let catches_up = bench.proxy.hold(Rule::request([Op::Sync]).path(&*guard.claim_path()));
        let released = guard.release();
        lost.wait_hits(1, TIMEOUT).unwrap();
        catches_up.wait_reached(TIMEOUT).unwrap();
        catches_up.release();
        released.wait().unwrap();
    }

    fn a_check_ends_with_its_tenure(strategy) {
        let bench = Bench::shared();
        bench.prepare(strategy);
        let client = bench.direct();
        let lock = bench.lock(&client, strategy);
        let store = format!("{}-store", bench.path);
        let write = |check: &zklock::zookeeper::Op| {
            let write = zklock::zookeeper::Op::create(&store, b"late", CreateMode::Persistent);
            client.multi(&[check.clone(), write]).wait()
        };
        let [released, dropped] = [true, false].map(|waits| {
            let guard = lock.acquire().within(TIMEOUT).wait().unwrap();
            let check = guard.check();
            match waits {
                true => guard.release().wait().unwrap(),
                false => drop(guard),
            }
            check
        });
        // Another tenure of the same client, under the same name where names are given again.
        let guard = lock.acquire().within(TIMEOUT).wait().unwrap();
        for check in [&released, &dropped] {
            let error = write(check).unwrap_err();
            assert_eq!(error.code(), Code::SESSION_EXPIRED, "{error}");
            assert!(error.to_string().contains("not held any more"), "{error}");
        }
        assert_eq!(client.exists(&store).wait().unwrap(), None);
        write(&guard.check()).unwrap();
        guard.release().wait().unwrap();
    }

    fn the_first_reason_of_a_loss_stays(strategy) {
        let bench = Bench::shared();
        let client = bench.direct();
        let guard = bench.lock(&client, strategy).acquire().wait().unwrap();
        let lost = guard.lost();
        let key = client.session().unwrap();
        expire_session(&bench.server.hosts(), key.id(), &key.password()).unwrap();
        assert_eq!(lost.wait_timeout(TIMEOUT), Some(LostReason::Session));
        drop(guard);
        assert_eq!(lost.get(), Some(LostReason::Session));
        assert_eq!(lost.clone().wait(), LostReason::Session);
    }

    fn a_guarded_write_fails_once_the_claim_is_gone(strategy) {
        let bench = Bench::shared();
        let client = bench.direct();
        let guard = bench.lock(&client, strategy).acquire().wait().unwrap();
        let store = format!("{}-store", bench.path);
        let write = || [guard.check(), zklock::zookeeper::Op::create(&store, b"written", CreateMode::Persistent)];
        client.multi(&write()).wait().unwrap();
        client.delete(&store, None).wait().unwrap();
        bench.ask(|raw| raw.delete(&guard.claim_path())).unwrap();
        let error = client.multi(&write()).wait().unwrap_err();
        assert_eq!(error.code(), Code::NO_NODE, "{error}");
        assert!(client.exists(&store).wait().unwrap().is_none());
    }

    fn writes_of_a_guard_happen_only_while_it_holds(strategy) {
        let bench = Bench::shared();
        let client = bench.direct();
        let guard = bench.lock(&client, strategy).acquire().wait().unwrap();
        let store = format!("{}-store", bench.path);
        let mode = CreateMode::Persistent;
        assert_eq!(guard.create(&store, b"0", mode).wait().unwrap(), store);
        assert_eq!(guard.set(&store, b"1", Some(0)).wait().unwrap().version, 1);
        assert_eq!(client.get(&store).wait().unwrap().data, b"1");
        for (refused, code) in [
            (guard.create(&store, b"2", mode).wait().map(drop), Code::NODE_EXISTS),
            (guard.set(&store, b"2", Some(0)).wait().map(drop), Code::BAD_VERSION),
            (guard.delete(&store, Some(0)).wait(), Code::BAD_VERSION),
            (guard.create(&store, b"2", CreateMode::Container).wait().map(drop), Code::BAD_ARGUMENTS),
        ] {
            let error = refused.unwrap_err();
            assert!(matches!(error, LockError::Store { .. }) && error.code() == code, "{error:?}");
            assert!(error.to_string().contains(&store), "{error}");
        }
        bench.delete(&guard.claim_path());
        for error in [
            guard.set(&store, b"2", None).wait().unwrap_err(),
            guard.delete(&store, None).wait().unwrap_err(),
            guard.create(&format!("{store}-2"), b"2", mode).wait().unwrap_err(),
        ] {
            assert!(matches!(error, LockError::NotHeld { .. }), "{error:?}");
        }
        assert_eq!(client.get(&store).wait().unwrap().data, b"1");
        let guard = bench.lock(&client, strategy).acquire().within(TIMEOUT).wait().unwrap();
        guard.delete(&store, Some(1)).wait().unwrap();
        assert!(!bench.exists(&store));
    }

    fn a_transaction_of_a_guard_happens_only_while_it_holds(strategy) {
        let bench = Bench::shared();
        let client = bench.direct();
        let lock = bench.lock(&client, strategy);
        let guard = lock.acquire().wait().unwrap();
        let store = format!("{}-store", bench.path);
        let create = [zklock::zookeeper::Op::create(&store, b"written", CreateMode::Persistent)];
        let results = guard.multi(&create).wait().unwrap();
        assert_eq!(results, [zklock::zookeeper::OpResult::Created(store.clone())]);
        assert_eq!(guard.multi(&[]).wait().unwrap(), []);
        // What the store refuses for another reason is no loss.
        let error = guard.multi(&create).wait().unwrap_err();
        let LockError::Store { source, .. } = &error else { panic!("{error:?}") };
        assert!(source.is_node_exists() && source.failed_op_index() == Some(1), "{error}");
        assert!(!error.is_lost() && !error.is_outcome_unknown());
        client.delete(&store, None).wait().unwrap();
        // Before the guard can know, and once it does.
        bench.raw().delete(&guard.claim_path()).unwrap();
        for _ in 0..2 {
            let error = guard.multi(&create).wait().unwrap_err();
            assert!(
                matches!(error, LockError::NotHeld { reason: LostReason::Deleted, .. }),
                "{error:?}"
            );
            assert_eq!((error.path(), error.code()), (guard.path(), Code::NO_NODE));
            assert_eq!(guard.lost().wait_timeout(TIMEOUT), Some(LostReason::Deleted));
        }
        let guard = lock.acquire().within(TIMEOUT).wait().unwrap();
        let key = client.session().unwrap();
        expire_session(&bench.server.hosts(), key.id(), &key.password()).unwrap();
        assert_eq!(guard.lost().wait_timeout(TIMEOUT), Some(LostReason::Session));
        let error = guard.multi(&create).wait().unwrap_err();
        assert!(
            matches!(error, LockError::NotHeld { reason: LostReason::Session, .. }),
            "{error:?}"
        );
        assert!(error.is_lost() && error.code() == Code::SESSION_EXPIRED, "{error}");
        let looker = bench.direct();
        assert_eq!(looker.exists(&store).wait().unwrap(), None);
    }

    fn it_can_be_seen_who_holds_a_lock(strategy) {
        let bench = Bench::shared();
        let (client, looker) = (bench.direct(), bench.direct());
        let lock = bench.lock(&looker, strategy);
        assert!(!lock.is_locked().wait().unwrap());
        assert_eq!(lock.holder().wait().unwrap(), None);
        let guard = bench.lock(&client, strategy).label("night run\nno. 7").acquire().wait().unwrap();
        assert!(lock.is_locked().wait().unwrap());
        let holder = lock.holder().wait().unwrap().unwrap();
        assert_eq!((holder.path.as_str(), holder.token), (&*guard.claim_path(), guard.fencing_token()));
        assert_eq!((holder.session, holder.pid), (session_id(&client), std::process::id()));
        assert_eq!(holder.label, "night run no. 7");
        assert!(!holder.host.is_empty() && !holder.thread.is_empty());
        let (error, _) = late(|limit| lock.acquire().within(limit).wait().unwrap_err());
        assert!(error.to_string().contains("night run no. 7"), "it says who is ahead: {error}");
        guard.release().wait().unwrap();
        assert!(!lock.is_locked().wait().unwrap());
        // Another library's data is all that is known of its claim.
        bench.prepare(strategy);
        let mut stranger = bench.stranger(strategy);
        let holder = lock.holder().wait().unwrap().unwrap();
        assert_eq!((holder.label.as_str(), holder.pid), ("stranger", 0));
        assert_eq!(holder.session, stranger.raw.session_id());
        stranger.leave();
    }
}

#[test]
fn a_queue_is_listed_in_its_order() {
    let bench = Bench::shared();
    let strategy = Strategy::Queue;
    let clients: Vec<_> = (0..4).map(|_| bench.direct()).collect();
    let lock = |n: usize| bench.lock(&clients[n], strategy).label(format!("number {n}"));
    let guard = lock(0).acquire().wait().unwrap();
    let mut waiting = Vec::new();
    for n in 1..clients.len() {
        waiting.push(acquire_in_background(&lock(n)));
        eventually("it is in line", || bench.claims(strategy).len() == n + 1);
    }
    let contenders = lock(0).contenders().wait().unwrap();
    let labels: Vec<&str> = contenders.iter().map(|one| one.label.as_str()).collect();
    assert_eq!(labels, ["number 0", "number 1", "number 2", "number 3"]);
    assert!(contenders.is_sorted_by(|a, b| a.token < b.token));
    guard.release().wait().unwrap();
    for waiter in waiting {
        waiter.join().unwrap().unwrap().release().wait().unwrap();
    }
    assert_eq!(lock(0).contenders().wait().unwrap(), []);
}

#[test]
fn it_can_be_seen_since_when_a_lock_is_held() {
    let bench = Bench::shared();
    let clients: Vec<_> = (0..3).map(|_| bench.direct()).collect();
    for strategy in [Strategy::Watch, Strategy::Poll, Strategy::Queue] {
        bench.ask(|raw| raw.delete(&bench.path)).ok();
        let lock = |n: usize| bench.lock(&clients[n], strategy);
        let guard = lock(0).acquire().wait().unwrap();
        let holder = lock(1).holder().wait().unwrap().unwrap();
        let held = holder.held_since.unwrap();
        assert_eq!((held.earliest, held.latest), (holder.since, holder.since), "{strategy}");
        guard.release().wait().unwrap();
    }
    // A queue: the second has waited for the first, and is followed by a third.
    let lock = |n: usize| bench.lock(&clients[n], Strategy::Queue);
    let first = lock(0).acquire().wait().unwrap();
    let second = acquire_in_background(&lock(1));
    eventually("it waits", || bench.claims(Strategy::Queue).len() == 2);
    let before = std::time::SystemTime::now();
    first.release().wait().unwrap();
    let second = second.join().unwrap().unwrap();
    let holder = lock(0).holder().wait().unwrap().unwrap();
    let held = holder.held_since.unwrap();
    assert_eq!(held.earliest, holder.since);
    assert!(held.latest >= before, "the servers keep no time of the release");
    let third = acquire_in_background(&lock(2));
    eventually("it waits", || bench.claims(Strategy::Queue).len() == 2);
    let contenders = lock(0).contenders().wait().unwrap();
    let held = contenders[0].held_since.unwrap();
    assert_eq!((held.earliest, held.latest), (contenders[0].since, contenders[1].since));
    assert_eq!(contenders[1].held_since, None);
    second.release().wait().unwrap();
    third.join().unwrap().unwrap().release().wait().unwrap();
}

#[test]
fn a_deletion_that_is_repeated_leaves_the_claim_of_a_successor_alone() {
    let bench = Bench::shared();
    let strategy = Strategy::Queue;
    bench.prepare(strategy);
    let client = bench.client();
    let guard = bench.lock(&client, strategy).acquire().wait().unwrap();
    let path = guard.claim_path().to_string();
    let lost = bench.proxy.on(Rule::reply(Op::Delete).once(), Action::Drop);
    let back = bench.proxy.hold(Rule::request([Op::Delete, Op::GetData]).path(&path).nth(2));
    let released = guard.release();
    lost.wait_hits(1, TIMEOUT).unwrap();
    // The deletion is done, its deleter does not know, and the directory is made anew.
    back.wait_reached(TIMEOUT).unwrap();
    bench.ask(|raw| raw.delete(&bench.path)).unwrap();
    bench.prepare(strategy);
    let mut stranger = bench.stranger_at(&path);
    back.release();
    released.wait().unwrap();
    assert_eq!(bench.claims(strategy).len(), 1, "the successor's claim is deleted");
    stranger.leave();
}

each_strategy! {
    fn a_check_of_a_lost_guard_is_not_taken_in_by_a_successor_of_the_same_name(strategy) {
        let bench = Bench::shared();
        let client = bench.direct();
        bench.prepare(strategy);
        let guard = bench.lock(&client, strategy).acquire().wait().unwrap();
        let key = client.session().unwrap();
        expire_session(&bench.server.hosts(), key.id(), &key.password()).unwrap();
        eventually("another session", || {
            client.state() == SessionState::Connected && client.session() != Some(key)
        });
        // The directory is made anew, as after the reaping of an empty container, so the numbers
        // begin anew and a successor gets the very name.
        if strategy == Strategy::Queue {
            bench.ask(|raw| raw.delete(&bench.path)).unwrap();
            bench.prepare(strategy);
        }
        let _successor = bench.stranger_at(&guard.claim_path());
        let store = format!("{}-store", bench.path);
        let write = [guard.check(), zklock::zookeeper::Op::create(&store, b"late", CreateMode::Persistent)];
        let error = client.multi(&write).wait().unwrap_err();
        assert_eq!(error.code(), Code::SESSION_EXPIRED, "{error}");
        assert_eq!(client.exists(&store).wait().unwrap(), None);
    }
}

#[test]
fn a_guard_is_not_lost_before_the_time_that_it_has_left_is_over() {
    let bench = Bench::shared();
    let timeout = Duration::from_secs(4);
    let client = options().session_timeout(timeout).connect(&bench.proxy.hosts()).wait().unwrap();
    let guard = bench.lock(&client, Strategy::Queue).acquire().wait().unwrap();
    eventually("it is held as long as usual", || guard.remaining() > timeout * 7 / 20);
    bench.proxy.cut();
    let lost = guard.lost();
    // What was on its way when the link was cut may make it longer once more.
    let (begun, first) = (Instant::now(), guard.remaining());
    assert!(first <= timeout, "{first:?}");
    assert_eq!(lost.wait(), LostReason::Session);
    assert!(begun.elapsed() >= first, "lost after {:?} of {first:?}", begun.elapsed());
    assert_eq!(guard.remaining(), Duration::ZERO);
    bench.proxy.heal();
    eventually("there is another session", || client.state() == SessionState::Connected);
    assert_eq!(guard.remaining(), Duration::ZERO, "lost is lost");
}

#[test]
fn a_deleted_claim_has_no_time_left() {
    let bench = Bench::shared();
    let client = bench.direct();
    let guard = bench.lock(&client, Strategy::Queue).acquire().wait().unwrap();
    assert!(guard.remaining() > Duration::ZERO);
    bench.direct().delete(&guard.claim_path(), None).wait().unwrap();
    assert_eq!(guard.lost().wait(), LostReason::Deleted);
    assert_eq!(guard.remaining(), Duration::ZERO);
}

/// Writes when it is woken.
struct Writer {
    client: Client,
    check: Operation,
    written: Mutex<Option<Pending<Vec<OpResult>>>>,
}

impl Wake for Writer {
    fn wake(self: Arc<Self>) {
        let check = std::slice::from_ref(&self.check);
        self.written.lock().get_or_insert_with(|| self.client.multi(check));
    }
}

#[test]
fn who_is_woken_by_the_end_of_a_hold_writes_no_more() {
    let bench = Bench::shared();
    let client = bench.direct();
    let guard = bench.lock(&client, Strategy::Queue).acquire().wait().unwrap();
    let (check, written) = (guard.check(), Mutex::new(None));
    let writer = Arc::new(Writer { client: client.clone(), check, written });
    let waker = Waker::from(Arc::clone(&writer));
    let mut lost = guard.lost();
    assert!(Pin::new(&mut lost).poll(&mut Context::from_waker(&waker)).is_pending());
    guard.release().wait().unwrap();
    let written = writer.written.lock().take().expect("it was woken").wait();
    assert_eq!(written.unwrap_err().code(), Code::SESSION_EXPIRED);
}
