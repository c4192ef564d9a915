//! Locks that all libraries wait for, also kazoo as it comes: each claim is two znodes, and lives and dies as one.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

use test_support::{
    Bench, Stranger, TIMEOUT, acquire_in_background, eventually, options, session_id,
};
use zklock::zookeeper::{CreateMode, Op as Operation};
use zklock::{
    Client, Contender, Guard, GuardState, Interop, LocalHandoff, Lock, LockError, LostReason,
    MultiLock, Owner, Strategy,
};
use zklock_testing::wire::{self, Op, Ops};
use zklock_testing::{Action, Rule};

const SOON: Duration = Duration::from_millis(200);

/// A claim as the servers have it: of two names, or of one.
#[derive(Clone, Debug, PartialEq)]
struct Claim {
    czxid: i64,
    session: i64,
    /// In the order of their numbers.
    paths: Vec<String>,
}

/// The claims on the path, in their order: what one transaction has made is one.
fn claims(bench: &Bench) -> Vec<Claim> {
    let mut claims: Vec<Claim> = Vec::new();
    let mut names = bench.ask(|raw| raw.children(&bench.path)).unwrap();
    names.sort_by_key(|name| number(name));
    for name in names {
        let path = format!("{}/{name}", bench.path);
        let Some(stat) = bench.ask(|raw| raw.exists(&path)).unwrap() else { continue };
        let (czxid, session) = (stat.czxid, stat.ephemeral_owner);
        match claims.last_mut() {
            Some(claim) if claim.czxid == czxid => claim.paths.push(path),
            _ => claims.push(Claim { czxid, session, paths: vec![path] }),
        }
    }
    claims
}

fn number(name: &str) -> String {
    name[name.len() - 10..].to_owned()
}

/// The only claim.
fn claim(bench: &Bench) -> Claim {
    let mut claims = claims(bench);
    assert_eq!(claims.len(), 1, "{claims:?}");
    claims.remove(0)
}

fn lock(bench: &Bench, client: &Client) -> Lock {
    bench.lock(client).interoperate(Interop::All)
}

fn hold(lock: &Lock) -> Guard {
    lock.acquire().within(TIMEOUT).wait().unwrap()
}

fn watches(bench: &Bench, client: &Client) -> usize {
    bench.watched_by(session_id(client)).len()
}

/// Transactions of the client that concern the path.
fn transactions(bench: &Bench) -> Rule {
    Rule::request(Op::Multi).path_prefix(&bench.path)
}

fn replies_to_transactions(bench: &Bench) -> Rule {
    Rule::reply(Op::Multi).path_prefix(&bench.path)
}

/// Nothing is left, and each kind of ours can be acquired.
fn expect_free(bench: &Bench) {
    bench.expect_empty();
    bench.expect_free();
    let other = bench.direct();
    hold(&lock(bench, &other)).release().wait().unwrap();
    bench.expect_empty();
}

#[test]
fn a_claim_is_two_znodes_with_numbers_that_follow_each_other_and_one_token() {
    let bench = Bench::with_directory();
    let (client, other) = (bench.client(), bench.direct());
    let guard = hold(&lock(&bench, &client));
    let held = claim(&bench);
    let directory = bench.ask(|raw| raw.exists(&bench.path)).unwrap().unwrap().czxid;
    let names = [
        format!("{}/zl-{directory:x}-lock-0000000000", bench.path),
        format!("{}/_zl-{directory:x}-__lock__0000000001", bench.path),
    ];
    assert_eq!(held.paths, names);
    assert_eq!((held.czxid, held.session), (guard.fencing_token(), session_id(&client)));
    assert_eq!(&*guard.claim_path(), names[0]);
    // Both say who it is.
    let [one, two] = [0, 1].map(|at| bench.ask(|raw| raw.get_data(&names[at])).unwrap().0);
    assert_eq!(one, two);
    let waiting = acquire_in_background(&lock(&bench, &other));
    eventually("it waits", || watches(&bench, &other) > 0);
    // Whoever looks, in whatever way, sees each of them once.
    for looking in [bench.lock(&other), lock(&bench, &other)] {
        let contenders = looking.contenders().wait().unwrap();
        let tokens: Vec<i64> = contenders.iter().map(|it| it.token).collect();
        assert_eq!(tokens, claims(&bench).iter().map(|it| it.czxid).collect::<Vec<_>>());
        assert_eq!(contenders[0].path, names[0]);
        assert!(contenders.iter().all(|it| it.held_since.is_some() == (it.path == names[0])));
        let holder = looking.holder().wait().unwrap().unwrap();
        assert_eq!((holder.token, holder.path), (guard.fencing_token(), names[0].clone()));
    }
    bench.proxy.clear_seen();
    guard.release().wait().unwrap();
    // One transaction deleted both.
    assert_eq!(bench.proxy.count(&transactions(&bench)), 1);
    assert_eq!(bench.proxy.count(&Rule::request(Op::Delete).path_prefix(&bench.path)), 0);
    waiting.join().unwrap().unwrap().release().wait().unwrap();
    expect_free(&bench);
}

#[test]
fn it_excludes_locks_of_one_znode_and_is_excluded_by_them() {
    let bench = Bench::with_directory();
    let clients = [bench.direct(), bench.direct()];
    // Two of one client as well as of two.
    for other in &clients {
        for [first, second] in [
            [bench.lock(&clients[0]), lock(&bench, other)],
            [lock(&bench, &clients[0]), bench.lock(other)],
            [lock(&bench, &clients[0]), lock(&bench, other)],
        ] {
            let guard = hold(&first);
            assert!(second.try_acquire().wait().unwrap().is_none());
            assert_eq!(claims(&bench).len(), 1, "a try leaves nothing");
            let next = acquire_in_background(&second);
            eventually("it waits", || claims(&bench).len() == 2 && watches(&bench, other) > 0);
            assert!(!next.is_finished());
            let token = guard.fencing_token();
            guard.release().wait().unwrap();
            let next = next.join().unwrap().unwrap();
            assert!(next.fencing_token() > token);
            next.release().wait().unwrap();
        }
    }
    expect_free(&bench);
}

#[test]
fn it_waits_for_whoever_is_earlier_by_whatever_name() {
    let bench = Bench::with_directory();
    let client = bench.direct();
    for name in [
        "0123456789abcdef0123456789abcdef__lock__",
        "_c_8a7ed3a3-3e4f-44c2-a8f0-3b6e6d0a9c11-lock-",
        "_c_0123456789abcdef0123456789abcdef-lock-",
        "x-72057793038516224-",
        "zl-2a-__READ__",
        "_zl-2a-__lock__",
    ] {
        let mut stranger = bench.stranger(name);
        let waiting = acquire_in_background(&lock(&bench, &client));
        eventually("it watches", || bench.watched_by(session_id(&client)) == [&*stranger.path]);
        // Who comes later is not waited for.
        let mut later = bench.stranger(name);
        assert!(!waiting.is_finished(), "{name}");
        stranger.leave();
        waiting.join().unwrap().unwrap().release().wait().unwrap();
        later.leave();
    }
    expect_free(&bench);
}

#[test]
fn whatever_frame_is_lost_there_is_one_claim_and_then_none() {
    let bench = Bench::with_directory();
    let frames: [(&str, Ops, u64); 4] = [
        ("create", Op::Multi.into(), 1),
        ("stat", Op::GetData.into(), 1),
        ("list", Ops::lists(), 1),
        ("delete", Op::Multi.into(), 2),
    ];
    for (frame, ops, nth) in frames {
        for (way, rule) in
            [("request", Rule::request(ops.clone())), ("reply", Rule::reply(ops.clone()))]
        {
            for action in [Action::Drop, Action::Reset] {
                let what = format!("{way} of {frame}, {action:?}");
                let client = bench.client();
                let session = session_id(&client);
                let lost = bench.proxy.on(rule.clone().path_prefix(&bench.path).nth(nth), action);
                bench.proxy.clear_seen();
                let guard = hold(&lock(&bench, &client));
                let held = claim(&bench);
                assert_eq!(held.paths.len(), 2, "{what}: {held:?}");
                assert_eq!((held.czxid, held.session), (guard.fencing_token(), session), "{what}");
                let released = guard.release().wait();
                assert!(released.is_ok(), "{what}: {released:?}");
                bench.expect_empty();
                lost.wait_hits(1, TIMEOUT).unwrap();
                lost.remove();
                assert_eq!(session_id(&client), session, "{what}");
                let sent = bench.proxy.count(&transactions(&bench));
                // What may have been executed is not sent again.
                assert!(sent == 2 || way == "request" && frame == "create", "{what}: {sent}");
            }
        }
    }
    expect_free(&bench);
}

#[test]
fn a_claim_that_was_written_over_before_it_is_found_is_nobodys_obstacle() {
    for replaced in [&[0][..], &[1], &[0, 1]] {
        let bench = Bench::with_directory();
        let client = bench.client();
        // One that is held must stay, whatever is in it.
        let held_path = format!("{}-held", bench.path);
        let held = hold(&client.lock(&held_path).interoperate(Interop::All));
        let reply = bench.proxy.hold(replies_to_transactions(&bench).nth(1));
        let acquired = acquire_in_background(&lock(&bench, &client));
        reply.wait_reached(TIMEOUT).unwrap();
        let before = claim(&bench);
        for at in replaced {
            bench.ask(|raw| raw.set_data(&before.paths[*at], b"replaced")).unwrap();
        }
        bench.proxy.reset_all();
        let guard = acquired.join().unwrap().unwrap();
        let after = claim(&bench);
        assert_eq!((after.czxid, after.paths.len()), (guard.fencing_token(), 2), "{replaced:?}");
        assert!(after.czxid > before.czxid, "half a claim is none");
        eventually("it is connected", || held.state() != GuardState::Suspended);
        assert_eq!(held.state(), GuardState::Held);
        guard.release().wait().unwrap();
        held.release().wait().unwrap();
        expect_free(&bench);
    }
}

#[test]
fn half_a_claim_that_a_look_up_finds_is_deleted_and_made_anew() {
    for robbed in [0, 1] {
        let bench = Bench::with_directory();
        let client = bench.client();
        let reply = bench.proxy.hold(replies_to_transactions(&bench).nth(1));
        let lock = lock(&bench, &client);
        let tried = thread::spawn(move || lock.try_acquire().within(TIMEOUT).wait().unwrap());
        reply.wait_reached(TIMEOUT).unwrap();
        let before = claim(&bench);
        bench.delete(&before.paths[robbed]);
        bench.proxy.reset_all();
        // Nor does it stand in the way of one who only tries.
        let guard = tried.join().unwrap().expect("nobody else is there");
        assert!(guard.fencing_token() > before.czxid);
        assert_eq!(claim(&bench).paths.len(), 2);
        guard.release().wait().unwrap();
        expect_free(&bench);
    }
}

#[test]
fn what_another_made_by_the_name_of_a_claim_is_not_taken_for_it() {
    let bench = Bench::with_directory();
    let client = bench.client();
    let reply = bench.proxy.hold(replies_to_transactions(&bench).nth(1));
    let acquired = acquire_in_background(&lock(&bench, &client));
    reply.wait_reached(TIMEOUT).unwrap();
    let path = claim(&bench).paths.remove(0);
    bench.delete(&path);
    let mut other = Stranger::claims(bench.raw(), &path, wire::CreateMode::Ephemeral);
    let theirs = bench.ask(|raw| raw.exists(&path)).unwrap().unwrap().czxid;
    reply.release();
    eventually("it waits behind the other", || {
        let claims = claims(&bench);
        claims.len() == 2 && claims[0].czxid == theirs && claims[1].paths.len() == 2
    });
    assert!(!acquired.is_finished());
    other.leave();
    let guard = acquired.join().unwrap().unwrap();
    assert_eq!(claim(&bench).czxid, guard.fencing_token());
    guard.release().wait().unwrap();
    expect_free(&bench);
}

#[test]
fn what_another_acquire_of_its_client_made_by_the_name_of_a_claim_is_not_taken_for_it() {
    let bench = Bench::with_directory();
    let client = bench.client();
    let reply = bench.proxy.hold(replies_to_transactions(&bench).nth(1));
    let request = bench.proxy.hold(transactions(&bench).nth(2));
    let first = acquire_in_background(&lock(&bench, &client));
    reply.wait_reached(TIMEOUT).unwrap();
    let names = claim(&bench).paths;
    let second = acquire_in_background(&lock(&bench, &client));
    request.wait_reached(TIMEOUT).unwrap();
    // The numbers of the directory begin anew, and the second gives its claim the name of the first one's.
    names.iter().for_each(|name| bench.delete(name));
    bench.delete(&bench.path);
    bench.raw().create(&bench.path, b"").unwrap();
    request.release();
    eventually("the second has claimed", || claims(&bench).iter().any(|it| it.paths == names));
    reply.release();
    eventually("each has a claim", || claims(&bench).len() == 2);
    eventually("one holds", || first.is_finished() || second.is_finished());
    let (held, waits) = if first.is_finished() { (first, second) } else { (second, first) };
    let guard = held.join().unwrap().unwrap();
    let is_there =
        |guard: &Guard| claims(&bench).iter().any(|it| it.czxid == guard.fencing_token());
    assert!(guard.state() == GuardState::Held && is_there(&guard));
    assert!(!waits.is_finished(), "both hold");
    guard.release().wait().unwrap();
    let guard = waits.join().unwrap().unwrap();
    assert!(guard.state() == GuardState::Held && is_there(&guard));
    guard.release().wait().unwrap();
    expect_free(&bench);
}

/// Polls until it has acquired, or that holds.
fn drive(lock: &Lock, mut there: impl FnMut() -> bool) -> bool {
    let mut acquiring = lock.acquire();
    let mut context = Context::from_waker(Waker::noop());
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if Pin::new(&mut acquiring).poll(&mut context).is_ready() {
            return true;
        }
        if there() {
            return false;
        }
        assert!(Instant::now() < deadline, "an acquire stands still");
        thread::yield_now();
    }
}

#[test]
fn an_acquire_that_is_dropped_at_any_frame_leaves_nothing() {
    let bench = Bench::with_directory();
    let client = bench.client();
    let lock = lock(&bench, &client);
    for is_taken in [false, true] {
        for replies in [false, true] {
            for nth in 1.. {
                assert!(nth < 20, "it sends more and more");
                let mut stranger =
                    is_taken.then(|| bench.stranger("0123456789abcdef0123456789abcdef__lock__"));
                let all = if replies { Rule::reply(Ops::any()) } else { Rule::request(Ops::any()) };
                let gate = bench.proxy.hold(all.path_prefix(&bench.path).nth(nth));
                let acquired =
                    drive(&lock, || gate.is_reached() || is_taken && watches(&bench, &client) > 0);
                let reached = gate.is_reached();
                gate.release();
                if let Some(stranger) = &mut stranger {
                    let nobody_else = || claims(&bench).len() == 1;
                    eventually("only the one ahead is left", nobody_else);
                    stranger.leave();
                }
                bench.expect_empty();
                assert!(!(acquired && is_taken));
                if !reached {
                    break;
                }
            }
        }
    }
    expect_free(&bench);
}

#[test]
fn a_limit_that_passes_while_the_reply_is_on_its_way_or_never_comes_leaves_nothing() {
    let bench = Bench::with_directory();
    let client = bench.client();
    let lock = lock(&bench, &client);
    let gate = bench.proxy.hold(replies_to_transactions(&bench).nth(1));
    let error = lock.acquire().within(SOON).wait().unwrap_err();
    assert!(matches!(error, LockError::TimedOut { .. }), "{error:?}");
    gate.wait_reached(TIMEOUT).unwrap();
    assert_eq!(claim(&bench).paths.len(), 2, "it is executed");
    gate.release();
    bench.expect_empty();
    for rule in [replies_to_transactions(&bench), Rule::reply(Op::GetData).path_prefix(&bench.path)]
    {
        let lost = bench.proxy.on(rule.nth(1), Action::Drop);
        drive(&lock, || lost.hits() > 0);
        lost.wait_hits(1, TIMEOUT).unwrap();
        lost.remove();
        bench.expect_empty();
    }
    expect_free(&bench);
}

#[test]
fn a_session_that_expires_while_it_waits_takes_both_and_both_are_made_anew() {
    let bench = Bench::with_directory();
    let client = bench.direct();
    let mut stranger = bench.stranger("0123456789abcdef0123456789abcdef__lock__");
    let waiting = acquire_in_background(&lock(&bench, &client));
    eventually("it waits", || watches(&bench, &client) > 0);
    let before = session_id(&client);
    bench.expire(&client);
    eventually("it waits in another session", || {
        let claims = claims(&bench);
        claims.len() == 2 && claims[1].session != before && claims[1].paths.len() == 2
    });
    stranger.leave();
    let guard = waiting.join().unwrap().unwrap();
    assert_eq!(claim(&bench).czxid, guard.fencing_token());
    bench.expire(&client);
    assert_eq!(guard.lost().wait(), LostReason::Session);
    let LockError::Lost { .. } = guard.release().wait().unwrap_err() else { panic!("it was lost") };
    expect_free(&bench);
}

#[test]
fn a_session_that_expires_between_the_transaction_and_its_reply_leaves_no_second_claim() {
    let bench = Bench::with_directory();
    let client = bench.client();
    let before = session_id(&client);
    let reply = bench.proxy.hold(replies_to_transactions(&bench).nth(1));
    let acquired = acquire_in_background(&lock(&bench, &client));
    reply.wait_reached(TIMEOUT).unwrap();
    bench.proxy.cut();
    bench.expire(&client);
    bench.proxy.heal();
    let guard = acquired.join().unwrap().unwrap();
    let held = claim(&bench);
    assert_ne!(held.session, before);
    assert_eq!((held.czxid, held.paths.len()), (guard.fencing_token(), 2));
    guard.release().wait().unwrap();
    expect_free(&bench);
}

#[test]
fn whichever_is_deleted_while_it_waits_the_claim_is_made_anew_behind_those_who_came_meanwhile() {
    for robbed in [0, 1] {
        let bench = Bench::with_directory();
        let client = bench.direct();
        let mut stranger = bench.stranger("0123456789abcdef0123456789abcdef__lock__");
        let waiting = acquire_in_background(&lock(&bench, &client));
        eventually("it waits", || watches(&bench, &client) > 0);
        let before = claims(&bench).remove(1);
        bench.delete(&before.paths[robbed]);
        let mut other = bench.stranger("_c_0123456789abcdef0123456789abcdef-lock-");
        stranger.leave();
        eventually("it waits behind the other", || {
            let claims = claims(&bench);
            claims.len() == 2 && claims[1].paths.len() == 2 && claims[1].czxid > before.czxid
        });
        assert!(!waiting.is_finished());
        other.leave();
        let guard = waiting.join().unwrap().unwrap();
        assert_eq!(claim(&bench).czxid, guard.fencing_token());
        guard.release().wait().unwrap();
        expect_free(&bench);
    }
}

#[test]
fn whichever_is_deleted_while_it_is_held_the_guard_is_lost_and_the_other_goes() {
    for robbed in [0, 1] {
        let bench = Bench::with_directory();
        let client = bench.direct();
        let guard = hold(&lock(&bench, &client));
        eventually("both are watched", || watches(&bench, &client) == 2);
        let lost = guard.lost();
        bench.delete(&claim(&bench).paths[robbed]);
        assert_eq!(lost.wait(), LostReason::Deleted);
        assert_eq!(guard.state(), GuardState::Lost);
        // Without a word of the guard: some libraries wait for the other one.
        bench.expect_empty();
        let LockError::Lost { reason, .. } = guard.release().wait().unwrap_err() else {
            panic!("it was lost")
        };
        assert_eq!(reason, LostReason::Deleted);
        expect_free(&bench);
    }
}

#[test]
fn a_release_that_finds_only_one_of_them_deletes_it_and_says_that_it_was_lost() {
    for robbed in [0, 1] {
        let bench = Bench::with_directory();
        let client = bench.client();
        let guard = hold(&lock(&bench, &client));
        // It is deleted when the release is on its way.
        let request = bench.proxy.hold(transactions(&bench));
        let releasing = guard.release();
        request.wait_reached(TIMEOUT).unwrap();
        bench.delete(&claim(&bench).paths[robbed]);
        request.release();
        let released = releasing.wait();
        let Err(LockError::Lost { reason, .. }) = released else { panic!("{released:?}") };
        assert_eq!(reason, LostReason::Deleted);
        expect_free(&bench);
    }
}

#[test]
fn a_deletion_whose_request_or_reply_is_lost_happens_all_the_same() {
    let bench = Bench::with_directory();
    let (client, other) = (bench.client(), bench.direct());
    for rule in [transactions(&bench), replies_to_transactions(&bench)] {
        for released in [false, true] {
            let guard = hold(&lock(&bench, &client));
            let waiting = acquire_in_background(&lock(&bench, &other));
            eventually("it waits", || watches(&bench, &other) > 0);
            let lost = bench.proxy.on(rule.clone().nth(1), Action::Drop);
            if released {
                guard.release().wait().unwrap();
            } else {
                drop(guard);
            }
            // It is not the successor's that goes when the deletion is repeated.
            let next = waiting.join().unwrap().unwrap();
            lost.wait_hits(1, TIMEOUT).unwrap();
            lost.remove();
            eventually("the first claim is gone", || claims(&bench).len() == 1);
            bench.ask(|raw| raw.ping()).unwrap();
            assert_eq!(claim(&bench).czxid, next.fencing_token());
            assert_eq!(claim(&bench).paths.len(), 2);
            assert_eq!(next.state(), GuardState::Held);
            next.release().wait().unwrap();
        }
    }
    expect_free(&bench);
}

#[test]
fn what_a_client_left_on_a_session_that_another_takes_up_is_in_nobodys_way() {
    for missing in [None, Some(0), Some(1)] {
        let bench = Bench::with_directory();
        let before = bench.client();
        let guard = hold(&lock(&bench, &before));
        let held = claim(&bench);
        bench.proxy.cut();
        if let Some(at) = missing {
            bench.delete(&held.paths[at]);
        }
        let session = before.session().unwrap();
        let after = options().session(session).connect(&bench.server.hosts()).wait().unwrap();
        let next = hold(&lock(&bench, &after));
        assert!(next.fencing_token() > guard.fencing_token());
        assert_eq!(claim(&bench).czxid, next.fencing_token());
        next.release().wait().unwrap();
        bench.expect_empty();
        after.close().wait().unwrap();
        bench.proxy.heal();
        drop(guard);
    }
}

#[test]
fn writes_happen_only_while_both_are_there() {
    for robbed in [0, 1] {
        let bench = Bench::with_directory();
        let client = bench.client();
        let guard = hold(&lock(&bench, &client));
        let data = format!("{}-data", bench.path);
        guard.create(&data, b"", CreateMode::Persistent).wait().unwrap();
        guard.set(&data, b"one", None).wait().unwrap();
        assert_eq!(guard.checks().len(), 2);
        let refused = guard.multi(&[Operation::check("/none")]).wait().unwrap_err();
        let LockError::Store { source, .. } = refused else { panic!("{refused:?}") };
        assert_eq!(source.failed_op_index(), Some(2), "after two checks");
        // It is deleted when the write is on its way.
        let request = bench.proxy.hold(transactions(&bench));
        let writing = guard.set(&data, b"late", None);
        request.wait_reached(TIMEOUT).unwrap();
        bench.delete(&claim(&bench).paths[robbed]);
        request.release();
        let refused = writing.wait().unwrap_err();
        assert!(matches!(refused, LockError::NotHeld { .. }), "{refused:?}");
        assert_eq!(client.get(&data).wait().unwrap().data, b"one");
        drop(guard);
        expect_free(&bench);
    }
}

#[test]
fn a_hold_that_is_broken_is_lost_before_another_holds() {
    let bench = Bench::with_directory();
    let (client, other) = (bench.direct(), bench.direct());
    let guard = hold(&lock(&bench, &client));
    let mut requests = guard.release_requests();
    let breaker = bench.lock(&other);
    let holder: Contender = breaker.holder().wait().unwrap().unwrap();
    assert!(breaker.request_release(&holder, "now").wait().unwrap());
    assert_eq!(requests.wait().as_deref(), Some("now"));
    let next = acquire_in_background(&lock(&bench, &other));
    eventually("it waits", || claims(&bench).len() == 2);
    assert!(breaker.break_hold(&holder, "", Duration::ZERO).wait().unwrap());
    let next = next.join().unwrap().unwrap();
    assert_eq!(guard.lost().get(), Some(LostReason::Broken));
    assert_eq!(claim(&bench).czxid, next.fencing_token());
    drop(guard);
    next.release().wait().unwrap();
    expect_free(&bench);
}

#[test]
fn it_is_handed_on_within_the_process_and_held_again_by_its_owner() {
    let bench = Bench::with_directory();
    let client = bench.client();
    let handed = lock(&bench, &client).local_handoff(LocalHandoff::new());
    // Chosen before or after.
    let handed_too = bench.lock(&client).local_handoff(LocalHandoff::new());
    for handed in [handed, handed_too.interoperate(Interop::All)] {
        let guard = hold(&handed);
        let next = handed.acquire();
        assert_eq!(claim(&bench).paths.len(), 2);
        let (token, turn) = (guard.fencing_token(), guard.turn());
        guard.release().wait().unwrap();
        let next = next.wait().unwrap();
        assert_eq!((next.fencing_token(), next.turn()), (token, turn + 1));
        drop(next);
        drop(handed);
        bench.expect_empty();
    }
    let (reentrant, owner) = (lock(&bench, &client).reentrant(), Owner::new());
    let guards = [(); 2].map(|()| reentrant.acquire(&owner).wait().unwrap());
    assert_eq!(guards[1].holds(), 2);
    assert_eq!(claim(&bench).czxid, guards[1].fencing_token());
    drop(guards);
    expect_free(&bench);
}

#[test]
fn it_is_one_of_several_that_are_acquired_together() {
    let bench = Bench::with_directory();
    let client = bench.direct();
    let beside = format!("{}-beside", bench.path);
    let both = MultiLock::new([lock(&bench, &client), client.lock(&beside)]);
    let guard = both.acquire().within(TIMEOUT).wait().unwrap();
    assert_eq!(claim(&bench).paths.len(), 2);
    assert!(client.lock(&beside).try_acquire().wait().unwrap().is_none());
    drop(guard);
    expect_free(&bench);
}

#[test]
fn what_is_missing_of_the_path_is_made_and_permissions_are_said() {
    let bench = Bench::shared();
    let client = bench.direct();
    let path = format!("{}/of/many", bench.path);
    let guard = hold(&client.lock(&path).interoperate(Interop::All));
    assert_eq!(client.children(&path).wait().unwrap().names.len(), 2);
    guard.release().wait().unwrap();
    let closed = format!("{}-closed", bench.path);
    let nobody =
        [zklock::zookeeper::Acl::new(zklock::zookeeper::Permissions::READ, "world", "anyone")];
    client.create_with_acl(&closed, b"", CreateMode::Persistent, &nobody).wait().unwrap();
    let refused = client.lock(&closed).interoperate(Interop::All).acquire().wait().unwrap_err();
    let LockError::NotPermitted { why, .. } = refused else { panic!("{refused:?}") };
    assert_eq!(why, format!("the session has no CREATE permission on {closed}"));
}

#[test]
fn other_kinds_and_strategies_are_refused() {
    let bench = Bench::with_directory();
    let client = bench.direct();
    let paths = [0, 1, 2, 3, 4].map(|number| format!("{}-{number}", bench.path));
    let all = |lock: Lock| lock.interoperate(Interop::All);
    for (refused, word) in [
        (all(client.lock(&paths[0])).strategy(Strategy::Watch), "queue"),
        (all(client.lock(&paths[1]).strategy(Strategy::Poll)), "queue"),
        (all(client.read_write(&paths[2]).read()), "exclusive"),
        (all(client.read_write(&paths[3]).write()), "exclusive"),
        (all(client.semaphore(&paths[4], 2).permit()), "exclusive"),
    ] {
        let error = refused.acquire().wait().unwrap_err();
        let LockError::Unusable { why, .. } = &error else { panic!("{error:?}") };
        assert!(why.contains(word), "{why}");
        assert!(!bench.exists(refused.path()));
        // And it can be taken back.
        hold(&refused.interoperate(Interop::Most)).release().wait().unwrap();
    }
}

#[test]
fn under_contention_each_holds_alone_and_nothing_is_left() {
    const ROUNDS: usize = 40;
    let bench = Bench::with_directory();
    let counter = format!("{}-counter", bench.path);
    bench.ask(|raw| raw.create(&counter, b"0")).unwrap();
    let clients = [bench.direct(), bench.direct()];
    thread::scope(|scope| {
        for client in &clients {
            for lock in [bench.lock(client), lock(&bench, client)] {
                let counter = &counter;
                scope.spawn(move || {
                    for _ in 0..ROUNDS {
                        let guard = hold(&lock);
                        let read = client.get(counter).wait().unwrap().data;
                        let value: u32 = String::from_utf8(read).unwrap().parse().unwrap();
                        let next = (value + 1).to_string();
                        client.set(counter, next.as_bytes(), None).wait().unwrap();
                        guard.release().wait().unwrap();
                    }
                });
            }
        }
    });
    let value = bench.ask(|raw| raw.get_data(&counter)).unwrap().0;
    assert_eq!(String::from_utf8(value).unwrap(), (4 * ROUNDS).to_string());
    expect_free(&bench);
}
