//! Several locks that are acquired together: all, or none.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use test_support::{TIMEOUT, eventually, expect_blocked, scaled, session_id};
use zklock::zookeeper::{Acl, CreateMode, Op, OpResult, Permissions};
use zklock::{
    Client, Guard, GuardState, Interop, Lock, LockError, LostReason, MultiLock, Strategy, Timeout,
};
use zklock_testing::wire::{self, Ops};
use zklock_testing::{Action, Rule};

use crate::bench::Bench;
use crate::place::each_store;

const SOON: Duration = Duration::from_millis(200);

fn held_in_time(locks: &MultiLock) -> Guard {
    locks.acquire().within(TIMEOUT).wait().unwrap()
}

fn is_free(lock: &Lock) -> bool {
    let tried = lock.try_acquire().wait().unwrap();
    tried.is_some_and(|guard| guard.release().wait().is_ok())
}

each_store! {
    fn all_are_held_until_the_guard_goes(place) {
        let (locks, others) = (place.locks(3), place.locks(3));
        // In whatever order they are given.
        let all = MultiLock::new(locks.iter().rev().cloned());
        let guard = all.acquire().wait().unwrap();
        assert_eq!(guard.state(), GuardState::Held);
        assert!(others.iter().all(|lock| !is_free(lock)));
        let tokens = guard.tokens();
        for (lock, (path, token)) in locks.iter().zip(&tokens) {
            let holder = lock.holder().wait().unwrap().expect("it is held");
            assert_eq!((lock.path(), holder.token), (*path, *token));
        }
        assert_eq!(tokens.len(), 3);
        guard.release().wait().unwrap();
        assert!(others.iter().all(is_free));
        drop(all.try_acquire().wait().unwrap().expect("they are free"));
        place.expect_all_free(&others);
    }

    fn none_is_held_where_one_is_taken(place) {
        let (locks, others) = (place.locks(3), place.locks(3));
        let all = MultiLock::new(locks);
        for taken in [0, 2] {
            let guard = others[taken].acquire().wait().unwrap();
            assert!(all.try_acquire().wait().unwrap().is_none());
            let error = all.acquire().within(SOON).wait().unwrap_err();
            assert!(matches!(error, LockError::TimedOut { .. }), "{error:?}");
            drop(all.acquire());
            for (number, lock) in others.iter().enumerate().filter(|(number, _)| *number != taken) {
                eventually(&format!("{number} is free"), || is_free(lock));
            }
            guard.release().wait().unwrap();
        }
        place.expect_all_free(&others);
    }

    fn who_waits_comes_to_hold_all(place) {
        let (locks, others) = (place.locks(3), place.locks(3));
        let taken: Vec<_> = [2, 0].map(|number| others[number].acquire().wait().unwrap()).into();
        let all = MultiLock::new(locks);
        let waiting = thread::spawn(move || held_in_time(&all));
        for guard in taken {
            expect_blocked([&waiting]);
            guard.release().wait().unwrap();
        }
        let guard = waiting.join().unwrap();
        assert!(others.iter().all(|lock| !is_free(lock)));
        drop(guard);
        place.expect_all_free(&others);
    }

    fn the_loss_of_one_is_the_loss_of_all(place) {
        let (locks, others) = (place.locks(2), place.locks(2));
        let all = MultiLock::new(locks);
        let guard = held_in_time(&all);
        let (lost, mut states) = (guard.lost(), guard.states());
        assert_eq!((states.wait(), lost.get()), (Some(GuardState::Held), None));
        place.lose();
        assert!(place.is_its_loss(lost.wait()));
        assert!(guard.is_lost() && guard.remaining().is_zero());
        eventually("the states end with the loss", || states.wait() == Some(GuardState::Lost));
        let LockError::Lost { .. } = guard.release().wait().unwrap_err() else { panic!("it was lost") };
        place.expect_all_free(&others);
        held_in_time(&all).release().wait().unwrap();
    }

    fn what_is_asked_of_each_is_reported_once(place) {
        let (locks, others) = (place.locks(2), place.locks(2));
        let guard = held_in_time(&MultiLock::new(locks));
        let mut requests = guard.release_requests();
        for (lock, reason) in others.iter().zip(["the first", "the second"]) {
            let holder = lock.holder().wait().unwrap().expect("it is held");
            assert!(lock.request_release(&holder, reason).wait().unwrap());
            assert_eq!(requests.wait_timeout(TIMEOUT), Ok(Some(reason.to_owned())));
        }
        assert_eq!(requests.wait_timeout(SOON), Err(Timeout));
        guard.release().wait().unwrap();
        assert_eq!(requests.wait_timeout(TIMEOUT), Ok(None));
        place.expect_all_free(&others);
    }

    fn who_waits_hears_that_the_store_is_closed(place) {
        let (locks, others) = (place.locks(3), place.locks(3));
        let ahead = others[1].acquire().wait().unwrap();
        let all = MultiLock::new(locks);
        let waiting = thread::spawn(move || all.acquire().within(TIMEOUT).wait().unwrap_err());
        expect_blocked([&waiting]);
        place.close();
        drop(ahead);
        let error = waiting.join().unwrap();
        assert!(matches!(error, LockError::Closed { .. }), "{error:?}");
    }

    fn there_is_no_multi_lock_of_nothing_or_of_one_path_twice(place) {
        let lock = place.lock();
        for locks in [vec![], vec![lock.clone(), place.again(&lock)]] {
            let locks = MultiLock::new(locks);
            for refused in [
                locks.acquire().wait().unwrap_err(),
                locks.try_acquire().wait().unwrap_err(),
            ] {
                assert!(matches!(refused, LockError::Unusable { .. }), "{refused:?}");
            }
        }
        place.expect_free();
    }

    fn in_whatever_order_they_are_asked_for_nobody_waits_for_ever_or_holds_a_part(place) {
        const LOCKS: usize = 6;
        const ROUNDS: usize = 12;
        let held: Arc<Vec<Mutex<()>>> = Arc::new((0..LOCKS).map(|_| Mutex::default()).collect());
        let clients: Vec<_> = (0..8).map(|_| {
            let (locks, held) = (place.locks(LOCKS), Arc::clone(&held));
            thread::spawn(move || for _ in 0..ROUNDS {
                let mut chosen: Vec<usize> = (0..LOCKS).collect();
                fastrand::shuffle(&mut chosen);
                chosen.truncate(3);
                let all = MultiLock::new(chosen.iter().map(|number| locks[*number].clone()));
                let guard = held_in_time(&all);
                let alone: Vec<_> = chosen.iter().map(|number| held[*number].try_lock()).collect();
                assert!(alone.iter().all(Option::is_some), "somebody else holds one of {chosen:?}");
                assert_eq!(guard.state(), GuardState::Held);
                drop(alone);
                guard.release().wait().unwrap();
            })
        }).collect();
        clients.into_iter().for_each(|client| client.join().unwrap());
        place.expect_all_free(&place.locks(LOCKS));
    }
}

/// Queues of one client, at paths of their own.
fn queues(bench: &Bench, client: &Client, number: usize) -> Vec<Lock> {
    (0..number).map(|number| client.lock(&format!("{}-{number}", bench.path))).collect()
}

/// A first acquire has made the directories, so what follows is the transaction.
fn prepared(bench: &Bench, client: &Client, number: usize) -> MultiLock {
    let locks = queues(bench, client, number);
    locks.iter().for_each(|lock| drop(lock.acquire().wait().unwrap()));
    expect_free(bench, number);
    MultiLock::new(locks)
}

/// The claims in each directory: whose they are, and by which transaction.
fn claims(bench: &Bench, number: usize) -> Vec<Vec<(i64, i64)>> {
    let locks = queues(bench, &bench.direct(), number);
    let claims = |lock: &Lock| {
        let contenders = lock.contenders().wait().unwrap();
        contenders.iter().map(|claim| (claim.session, claim.token)).collect()
    };
    locks.iter().map(claims).collect()
}

fn expect_free(bench: &Bench, number: usize) {
    eventually("no claim is left", || claims(bench, number).iter().all(Vec::is_empty));
}

#[test]
fn one_transaction_claims_all_and_its_number_is_their_token() {
    let bench = Bench::shared();
    let client = bench.client();
    let all = prepared(&bench, &client, 3);
    let guard = held_in_time(&all);
    let (session, token) = (session_id(&client), guard.fencing_token());
    assert_eq!(claims(&bench, 3), vec![vec![(session, token)]; 3]);
    assert!(guard.tokens().iter().all(|(_, of_one)| *of_one == token));
    guard.release().wait().unwrap();
    expect_free(&bench, 3);
    let asked = || {
        let of_paths = Rule::request(Ops::any()).path_prefix(&bench.path);
        let asked = bench.proxy.seen();
        asked.iter().filter(|seen| of_paths.matches(seen)).map(|seen| seen.op).collect::<Vec<_>>()
    };
    // Once it is known that nobody else comes: the transaction, its czxid, and a delete for each.
    eventually("nobody came in between", || {
        bench.proxy.clear_seen();
        held_in_time(&all).release().wait().unwrap();
        let asked = asked();
        assert_eq!(asked[..2], [wire::Op::Multi, wire::Op::GetData]);
        asked[2..] == [wire::Op::Delete; 3]
    });
    // Where somebody came to one of them, that is listed.
    queues(&bench, &bench.direct(), 3)[1].acquire().wait().unwrap().release().wait().unwrap();
    bench.proxy.clear_seen();
    held_in_time(&all).release().wait().unwrap();
    let (asked, delete) = (asked(), wire::Op::Delete);
    assert_eq!(
        asked,
        [wire::Op::Multi, wire::Op::GetData, wire::Op::GetChildren2, delete, delete, delete]
    );
    expect_free(&bench, 3);
}

#[test]
fn whichever_is_lost_wakes_who_waits_for_the_loss() {
    for at in 0..2 {
        let bench = Bench::shared();
        let client = bench.direct();
        let guard = held_in_time(&MultiLock::new(queues(&bench, &client, 2)));
        let robbed = queues(&bench, &client, 2)[at].holder().wait().unwrap().unwrap();
        bench.delete(&robbed.path);
        assert_eq!(guard.lost().wait_timeout(TIMEOUT), Some(LostReason::Deleted), "{at}");
    }
}

#[test]
fn claims_that_their_session_may_not_read_are_refused_and_leave_nothing() {
    let bench = Bench::shared();
    let client = bench.client();
    let locks = prepared(&bench, &client, 2).locks().to_vec();
    let children = |lock: &Lock| bench.ask(|raw| raw.children(lock.path())).unwrap();
    let others = [Acl::new(Permissions::ALL, "ip", "192.0.2.1")];
    let all = MultiLock::new(locks.iter().map(|lock| lock.clone().acl(others.clone())));
    let delete = Rule::request(wire::Op::Delete);
    // Without this reply the names of the claims are not known: they are deleted with the session.
    let created = Rule::reply(wire::Op::Multi);
    for frame in [None, Some(delete), Some(created)] {
        let frame = frame.map(|frame| frame.path_prefix(&bench.path).once());
        let lost = frame.map(|frame| bench.proxy.on(frame, Action::Drop));
        let error = all.acquire().within(TIMEOUT).wait().unwrap_err();
        assert!(matches!(error, LockError::NotPermitted { .. }), "{error:?}");
        assert!(error.to_string().contains("READ permission on"), "{error}");
        lost.inspect(|lost| lost.wait_hits(1, TIMEOUT).unwrap());
        eventually("nothing is left", || locks.iter().all(|lock| children(lock).is_empty()));
    }
}

#[test]
fn whatever_frame_is_lost_there_is_one_claim_in_each_queue_and_then_none() {
    let bench = Bench::shared();
    let client = bench.client();
    let all = prepared(&bench, &client, 3);
    let session = session_id(&client);
    for way in [Rule::request, Rule::reply] as [fn(Ops) -> Rule; 2] {
        for op in [wire::Op::Multi, wire::Op::GetData, wire::Op::Delete] {
            for loss in [Action::Drop, Action::Reset] {
                let frame = way(op.into()).path_prefix(&bench.path).once();
                let lost = bench.proxy.on(frame, loss);
                let guard = held_in_time(&all);
                assert_eq!(claims(&bench, 3), vec![vec![(session, guard.fencing_token())]; 3]);
                guard.release().within(TIMEOUT).wait().unwrap();
                lost.wait_hits(1, TIMEOUT).unwrap();
                expect_free(&bench, 3);
            }
        }
    }
    assert_eq!(session_id(&client), session, "the session survived");
}

#[test]
fn who_gives_up_while_the_transaction_is_not_answered_leaves_nothing() {
    let bench = Bench::shared();
    let client = bench.client();
    let all = prepared(&bench, &client, 3);
    let held_back = bench.proxy.hold(Rule::reply(wire::Op::Multi).path_prefix(&bench.path).once());
    let error = all.acquire().within(SOON).wait().unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    held_back.wait_reached(TIMEOUT).unwrap();
    assert!(claims(&bench, 3).iter().all(|claims| claims.len() == 1), "it is executed");
    held_back.release();
    expect_free(&bench, 3);
    // And where the reply never comes.
    let lost =
        bench.proxy.on(Rule::reply(wire::Op::Multi).path_prefix(&bench.path).once(), Action::Drop);
    drop(all.acquire());
    lost.wait_hits(1, TIMEOUT).unwrap();
    expect_free(&bench, 3);
}

#[test]
fn a_session_that_expires_between_the_claims_and_the_last_turn_makes_all_of_them_anew() {
    let bench = Bench::shared();
    let (client, other) = (bench.direct(), bench.direct());
    let all = prepared(&bench, &client, 3);
    let taken = queues(&bench, &other, 3)[1].acquire().wait().unwrap();
    let waiting = thread::spawn(move || held_in_time(&all));
    let claimed = || claims(&bench, 3).iter().map(Vec::len).eq([1, 2, 1]);
    eventually("it waits, and holds two", claimed);
    let session = session_id(&client);
    bench.expire(&client);
    eventually("it waits in another session", || {
        claimed() && claims(&bench, 3).iter().flatten().all(|(of, _)| *of != session)
    });
    taken.release().wait().unwrap();
    let guard = waiting.join().unwrap();
    let token = guard.fencing_token();
    assert_eq!(claims(&bench, 3), vec![vec![(session_id(&client), token)]; 3]);
    drop(guard);
    expect_free(&bench, 3);
}

#[test]
fn a_claim_that_somebody_deletes_is_made_anew_with_all_the_others() {
    let bench = Bench::shared();
    let (client, other) = (bench.direct(), bench.direct());
    let all = prepared(&bench, &client, 3);
    let taken = queues(&bench, &other, 3)[2].acquire().wait().unwrap();
    let waiting = thread::spawn(move || held_in_time(&all));
    eventually("it waits", || claims(&bench, 3).iter().map(Vec::len).eq([1, 1, 2]));
    let before = claims(&bench, 3)[0][0].1;
    let robbed = queues(&bench, &other, 3)[2].contenders().wait().unwrap();
    eventually("it watches its own claim too", || {
        bench.watched_by(session_id(&client)).contains(&robbed[1].path)
    });
    other.delete(&robbed[1].path, None).wait().unwrap();
    taken.release().wait().unwrap();
    let guard = waiting.join().unwrap();
    let session = session_id(&client);
    assert!(guard.fencing_token() > before);
    eventually("all claims are of one transaction", || {
        claims(&bench, 3) == vec![vec![(session, guard.fencing_token())]; 3]
    });
    guard.release().wait().unwrap();
    expect_free(&bench, 3);
}

#[test]
fn the_token_is_not_that_of_what_another_made_by_the_name_of_a_claim() {
    let bench = Bench::shared();
    let (client, other) = (bench.client(), bench.direct());
    let all = prepared(&bench, &client, 2);
    let reply = bench.proxy.hold(Rule::reply(wire::Op::Multi).path_prefix(&bench.path).once());
    let acquired = thread::spawn(move || held_in_time(&all));
    reply.wait_reached(TIMEOUT).unwrap();
    let robbed = queues(&bench, &other, 2)[0].holder().wait().unwrap().expect("it is claimed");
    other.delete(&robbed.path, None).wait().unwrap();
    other.create(&robbed.path, b"", CreateMode::Ephemeral).wait().unwrap();
    let theirs = claims(&bench, 2)[0][0];
    reply.release();
    eventually("it waits behind the other", || {
        let claims = claims(&bench, 2);
        claims[0].len() == 2 && claims[0][0] == theirs && claims[0][1] == claims[1][0]
    });
    assert!(!acquired.is_finished());
    other.delete(&robbed.path, None).wait().unwrap();
    let guard = acquired.join().unwrap();
    assert_eq!(claims(&bench, 2), vec![vec![(session_id(&client), guard.fencing_token())]; 2]);
    drop(guard);
    expect_free(&bench, 2);
}

#[test]
fn a_claim_that_is_deleted_while_another_is_waited_for_is_not_believed_to_hold() {
    let bench = Bench::shared();
    let (client, other) = (bench.direct(), bench.direct());
    let all = prepared(&bench, &client, 3);
    let queues = queues(&bench, &other, 3);
    let taken = queues[2].acquire().wait().unwrap();
    let waiting = thread::spawn(move || held_in_time(&all));
    eventually("it waits", || claims(&bench, 3).iter().map(Vec::len).eq([1, 1, 2]));
    let robbed = queues[0].holder().wait().unwrap().expect("it holds the first");
    other.delete(&robbed.path, None).wait().unwrap();
    let between = queues[0].acquire().wait().unwrap();
    taken.release().wait().unwrap();
    eventually("it waits again", || {
        let claims = claims(&bench, 3);
        claims[0].len() == 2 && claims[0][1].1 == claims[2][0].1
    });
    assert_eq!(between.state(), GuardState::Held);
    between.release().wait().unwrap();
    waiting.join().unwrap().release().wait().unwrap();
    expect_free(&bench, 3);
}

#[test]
fn a_claim_that_was_proven_first_is_looked_at_again_after_another_was_waited_for() {
    let bench = Bench::shared();
    let (client, other) = (bench.direct(), bench.direct());
    let all = prepared(&bench, &client, 2);
    // So that the client proves by its memory that its next claim is the first.
    let own = queues(&bench, &client, 2);
    for _ in 0..4 {
        own[1].acquire().wait().unwrap().release().wait().unwrap();
    }
    eventually("the directory is watched", || {
        bench.watched_by(session_id(&client)).iter().any(|path| path == own[1].path())
    });
    let queues = queues(&bench, &other, 2);
    let taken = queues[0].acquire().wait().unwrap();
    let waiting = thread::spawn(move || held_in_time(&all));
    eventually("it waits", || claims(&bench, 2).iter().map(Vec::len).eq([2, 1]));
    let robbed = queues[1].holder().wait().unwrap().expect("it holds the second");
    other.delete(&robbed.path, None).wait().unwrap();
    let between = queues[1].acquire().wait().unwrap();
    taken.release().wait().unwrap();
    eventually("it waits again", || claims(&bench, 2)[1].len() == 2);
    assert_eq!(between.state(), GuardState::Held);
    between.release().wait().unwrap();
    waiting.join().unwrap().release().wait().unwrap();
    expect_free(&bench, 2);
}

#[test]
fn what_is_missing_of_the_paths_is_made() {
    let bench = Bench::shared();
    let client = bench.client();
    let deep = |number| format!("{}-deep-{number}/of/many", bench.path);
    let all = MultiLock::new((0..3).map(|number| client.lock(&deep(number))));
    let guard = held_in_time(&all);
    assert_eq!(guard.tokens().len(), 3);
    guard.release().wait().unwrap();
    // One of them goes again.
    client.delete(&deep(1), None).wait().unwrap();
    let guard = held_in_time(&all);
    assert!(guard.tokens().iter().all(|(_, token)| *token == guard.fencing_token()));
    drop(guard);
    all.locks().iter().for_each(|lock| {
        eventually("nobody has it", || lock.contenders().wait().unwrap().is_empty());
    });
}

#[test]
fn writes_happen_only_while_all_are_held() {
    let bench = Bench::shared();
    let client = bench.client();
    let guard = held_in_time(&prepared(&bench, &client, 3));
    let data = format!("{}-data", bench.path);
    guard.create(&data, b"", CreateMode::Persistent).wait().unwrap();
    let written = guard.multi(&[Op::set(&data, "one"), Op::check(&data)]).wait().unwrap();
    assert!(matches!(&written[..], [OpResult::Set(_), OpResult::Checked]), "{written:?}");
    let refused = guard.multi(&[Op::set(&data, "x"), Op::check("/none")]).wait().unwrap_err();
    let LockError::Store { source, .. } = refused else { panic!("{refused:?}") };
    assert_eq!(source.failed_op_index(), Some(4), "after three checks and a set");
    let last = client.lock(guard.tokens()[2].0).holder().wait().unwrap().unwrap();
    bench.direct().delete(&last.path, None).wait().unwrap();
    let refused = guard.set(&data, b"late", None).wait().unwrap_err();
    assert!(matches!(refused, LockError::NotHeld { .. }), "{refused:?}");
    assert_eq!(client.get(&data).wait().unwrap().data, b"one");
    assert_eq!(guard.lost().wait(), LostReason::Deleted);
    assert_eq!(guard.state(), GuardState::Lost);
    client.delete(&data, None).wait().unwrap();
    drop(guard);
    expect_free(&bench, 3);
}

#[test]
fn readers_and_permits_can_be_among_them() {
    let bench = Bench::shared();
    let (one, other) = (bench.direct(), bench.direct());
    let paths = ["catalogue", "transfers"].map(|name| format!("{}-{name}", bench.path));
    let shared = |client: &Client| {
        let semaphore = client.semaphore(&paths[1], 3);
        MultiLock::new([client.read_write(&paths[0]).read(), semaphore.permit()])
    };
    let (first, second) = (held_in_time(&shared(&one)), held_in_time(&shared(&other)));
    let writer = MultiLock::new([
        other.read_write(&paths[0]).write(),
        other.semaphore(&paths[1], 3).permit(),
    ]);
    assert!(writer.try_acquire().wait().unwrap().is_none());
    let waiting = thread::spawn(move || held_in_time(&writer));
    drop(first);
    expect_blocked([&waiting]);
    drop(second);
    waiting.join().unwrap().release().wait().unwrap();
}

#[test]
fn locks_of_several_clients_are_acquired_in_the_order_of_their_paths() {
    let bench = Bench::shared();
    let (one, other) = (bench.direct(), bench.direct());
    let (first, second) = (queues(&bench, &one, 2).remove(0), queues(&bench, &other, 2).remove(1));
    let both = MultiLock::new([second, first]);
    let guard = held_in_time(&both);
    let tokens: Vec<_> = guard.tokens().iter().map(|(_, token)| *token).collect();
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
    let refused = guard.multi(&[]).wait().unwrap_err();
    assert!(refused.to_string().contains("several clients"), "{refused}");
    bench.expire(&other);
    assert_eq!(guard.lost().wait(), LostReason::Session);
    drop(guard);
    expect_free(&bench, 2);
}

#[test]
fn a_queue_and_one_who_waits_for_several_stand_in_the_same_order_everywhere() {
    let bench = Bench::shared();
    let (one, other) = (bench.direct(), bench.direct());
    let all = prepared(&bench, &one, 2);
    let alone = queues(&bench, &other, 2);
    // Who holds one alone and waits for another is behind the transaction in both, or before it in both: here
    // behind in the second, so the multi-lock must not be behind it in the first.
    let held = alone[0].acquire().wait().unwrap();
    let waiting = thread::spawn(move || held_in_time(&all));
    eventually("it is claimed", || claims(&bench, 2).iter().map(Vec::len).eq([2, 1]));
    assert!(alone[1].try_acquire().wait().unwrap().is_none());
    held.release().wait().unwrap();
    waiting.join().unwrap().release().wait().unwrap();
    expect_free(&bench, 2);
}

/// Whatever users lock, and whatever some of it has to be acquired alone, nobody waits in a circle.
#[test]
fn random_sets_of_locks_of_mixed_strategies_end_in_no_deadlock() {
    let bench = Bench::shared();
    let lock = |client: &Client, number: usize| {
        let lock = client.lock(&format!("{}-mixed-{number}", bench.path));
        match number {
            0..=2 => lock,
            3 => lock.strategy(Strategy::Watch),
            4 => lock.strategy(Strategy::Poll),
            _ => lock.interoperate(Interop::All),
        }
    };
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let client = bench.direct();
                for _ in 0..scaled(40, 250) {
                    let mut numbers: Vec<usize> = (0..6).collect();
                    fastrand::shuffle(&mut numbers);
                    let set = &numbers[..fastrand::usize(1..=6)];
                    let locks = MultiLock::new(set.iter().map(|number| lock(&client, *number)));
                    held_in_time(&locks).release().wait().unwrap();
                }
            });
        }
    });
}
