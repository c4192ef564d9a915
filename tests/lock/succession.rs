//! Who is next holds by an event alone: when the only claim before it goes, or when a release is announced. Unless its own
//! claim may be gone; then it asks.

use std::thread::JoinHandle;
use std::time::Duration;

use test_support::{TIMEOUT, acquire_in_background, eventually, options, poll_until, session_id};
use zklock::zookeeper::{Acl, Permissions, SessionState};
use zklock::{Client, Code, Error, Guard, GuardState, Lock, LockError, LostReason, Strategy};
use zklock_testing::wire::{Op, Ops};
use zklock_testing::{Action, Rule, Server};

use crate::bench::{Bench, Claim};

const QUEUE: Strategy = Strategy::Queue;

type Waiting = JoinHandle<Result<Guard, LockError>>;

fn announcing(bench: &Bench) -> Client {
    bench.client()
}

fn plain(bench: &Bench) -> Client {
    options().announced_releases(false).connect(&bench.proxy.hosts()).wait().unwrap()
}

/// Acquires where somebody holds, and gives the claim once it waits; where it may hold by an event alone, once its own
/// claim is watched as well.
fn waits(bench: &Bench, client: &Client, by_event: bool) -> (Waiting, Claim) {
    let waiting = acquire_in_background(&bench.lock(client, QUEUE));
    let session = session_id(client);
    let own = || bench.claims(QUEUE).into_iter().rfind(|claim| claim.session == session);
    eventually("it watches", || {
        let is_watched = |own: Claim| bench.watched_by(session).contains(&own.path);
        !bench.waits_for(session).is_empty() && (!by_event || own().is_some_and(is_watched))
    });
    (waiting, own().unwrap())
}

/// Clients that have met before: they expect to wait, and their claims are announced if they can.
fn acquainted<const N: usize>(bench: &Bench, connect: impl Fn(&Bench) -> Client) -> [Client; N] {
    bench.prepare(QUEUE);
    let clients = std::array::from_fn(|_| connect(bench));
    for client in &clients {
        let mut stranger = bench.stranger(QUEUE);
        let (waiting, _) = waits(bench, client, false);
        stranger.leave();
        waiting.join().unwrap().unwrap().release().wait().unwrap();
    }
    clients
}

/// What was asked for, but for a watch on the directory, which nobody waits for.
fn asked(bench: &Bench) -> Vec<Op> {
    bench.asked().into_iter().filter(|op| *op != Op::GetData).collect()
}

/// What lets everybody do everything.
fn open() -> Vec<Acl> {
    vec![Acl::new(Permissions::ALL, "world", "anyone")]
}

fn get(waiting: Waiting) -> Guard {
    waiting.join().unwrap().unwrap()
}

#[test]
fn behind_the_only_claim_that_is_there_a_release_costs_its_waiter_no_request() {
    let bench = Bench::own();
    bench.prepare(QUEUE);
    let (first, second) = (announcing(&bench), announcing(&bench));
    let guard = bench.lock(&first, QUEUE).acquire().wait().unwrap();
    let (waiting, own) = waits(&bench, &second, true);
    bench.proxy.clear_seen();
    guard.release().wait().unwrap();
    let guard = get(waiting);
    assert_eq!(guard.fencing_token(), own.czxid);
    assert_eq!(asked(&bench), [Op::Delete]);
    guard.release().wait().unwrap();
}

/// Acquires where that guard holds. Returns as soon as it waits for that.
fn waits_just_now(bench: &Bench, lock: &Lock, guard: &Guard) -> Waiting {
    bench.proxy.clear_seen();
    let waiting = acquire_in_background(lock);
    let looks = Rule::reply(Op::GetData).path(&*guard.claim_path());
    bench.proxy.wait_for(&looks, 1, TIMEOUT).unwrap();
    waiting
}

#[test]
fn two_clients_that_take_turns_need_three_requests_for_each() {
    let bench = Bench::own();
    let [first, second] = acquainted(&bench, announcing);
    let locks = [bench.lock(&first, QUEUE), bench.lock(&second, QUEUE)];
    let mut guard = locks[0].acquire().wait().unwrap();
    let mut costs = Vec::new();
    for turn in 1..=40 {
        let waiting = waits_just_now(&bench, &locks[turn % 2], &guard);
        guard.release().wait().unwrap();
        guard = get(waiting);
        costs.push(bench.asked());
    }
    // Who has to wait for 100 ms watches its own claim as well.
    let cheapest = [Op::Create2, Op::GetData, Op::Multi];
    assert!(costs.iter().any(|cost| *cost == cheapest), "{costs:?}");
}

#[test]
fn who_was_robbed_when_it_had_just_come_may_hold_and_learns_of_it() {
    let bench = Bench::own();
    let [first, second] = acquainted(&bench, announcing);
    let session = session_id(&second);
    // Its claim has to be deleted within 100 ms.
    for _ in 0..40 {
        let guard = bench.lock(&first, QUEUE).acquire().wait().unwrap();
        let waiting = waits_just_now(&bench, &bench.lock(&second, QUEUE), &guard);
        let mut claims = bench.claims(QUEUE).into_iter();
        let claim = claims.find(|claim| claim.session == session).unwrap();
        bench.ask(|raw| raw.delete(&claim.path)).unwrap();
        guard.release().wait().unwrap();
        let guard = get(waiting);
        if guard.fencing_token() == claim.czxid {
            assert_eq!(guard.lost().wait_timeout(TIMEOUT), Some(LostReason::Deleted));
            let released = guard.release().wait();
            assert!(matches!(released, Err(LockError::Lost { .. })), "{released:?}");
            return;
        }
        guard.release().wait().unwrap();
    }
    panic!("each time its claim had waited for longer");
}

#[test]
fn an_announced_release_lets_the_next_hold_without_a_request_however_many_wait() {
    let bench = Bench::own();
    let [first, second, third] = acquainted(&bench, announcing);
    let mut guard = bench.lock(&first, QUEUE).acquire().wait().unwrap();
    let waiting = [&second, &third].map(|client| waits(&bench, client, true));
    for (waiting, own) in waiting {
        bench.proxy.clear_seen();
        guard.release().wait().unwrap();
        guard = get(waiting);
        assert_eq!(guard.fencing_token(), own.czxid);
        assert_eq!(asked(&bench), [Op::Multi]);
        assert_eq!(guard.state(), GuardState::Held);
    }
    guard.release().wait().unwrap();
    bench.expect_free(QUEUE);
}

#[test]
fn nobody_else_can_write_to_a_claim_whose_release_will_be_announced() {
    let bench = Bench::own();
    let [first, second] = acquainted(&bench, announcing);
    let guard = bench.lock(&first, QUEUE).acquire().wait().unwrap();
    let other = plain(&bench);
    let written = other.set(&guard.claim_path(), b"x", None).wait().unwrap_err();
    assert_eq!(written.code(), Code::NO_AUTH);
    assert_eq!(
        other.set_acl(&guard.claim_path(), &open(), None).wait().unwrap_err().code(),
        Code::NO_AUTH
    );
    // But everybody may read it, and delete it.
    assert!(second.lock(&bench.path).holder().wait().unwrap().is_some());
    bench.ask(|raw| raw.delete(&guard.claim_path())).unwrap();
    assert_eq!(guard.lost().wait(), LostReason::Deleted);
}

#[test]
fn its_own_program_cannot_write_to_a_claim_whose_release_will_be_announced() {
    let bench = Bench::own();
    let [first, second] = acquainted(&bench, announcing);
    let guard = bench.lock(&first, QUEUE).acquire().wait().unwrap();
    let (waiting, own) = waits(&bench, &second, true);
    let path = guard.claim_path();
    let path = &*path;
    let refused = |error: Error| {
        assert_eq!(error.code(), Code::BAD_ARGUMENTS, "{error}");
        assert!(error.to_string().contains("would count as its release"), "{error}");
    };
    let refused_to_guard = |error: LockError| match error {
        LockError::Store { source, .. } => refused(source),
        other => panic!("{other}"),
    };
    refused(first.set(path, b"x", None).wait().unwrap_err());
    refused(first.set_acl(path, &open(), None).wait().unwrap_err());
    let ops = [zklock::zookeeper::Op::set(path, "x")];
    refused(first.multi(&ops).wait().unwrap_err());
    refused_to_guard(guard.multi(&ops).wait().unwrap_err());
    refused_to_guard(guard.set(path, b"x", None).wait().unwrap_err());
    assert!(first.counter(path).add(1).wait().is_err());
    assert!(!waiting.is_finished());
    assert_eq!(guard.state(), GuardState::Held);
    // Other znodes of a similar name are nobody's claim.
    first.create("/zl-config", b"", zklock::zookeeper::CreateMode::Ephemeral).wait().unwrap();
    first.set("/zl-config", b"x", None).wait().unwrap();
    guard.release().wait().unwrap();
    assert_eq!(get(waiting).fencing_token(), own.czxid);
}

#[test]
fn where_the_servers_do_not_enforce_access_control_a_write_releases_nobody() {
    let bench = Bench::with(Server::builder().property("skipACL", "yes"));
    for connect in [announcing, plain] {
        let [first] = acquainted(&bench, announcing);
        let [second, third] = acquainted(&bench, connect);
        let guard = bench.lock(&first, QUEUE).acquire().wait().unwrap();
        let (waiting, own) = waits(&bench, &second, false);
        let (last, _) = waits(&bench, &third, false);
        bench.proxy.clear_seen();
        // By a client that does not know what a write to a claim means.
        bench.ask(|raw| raw.set_data(&guard.claim_path(), b"x")).unwrap();
        bench.proxy.wait_for(&Rule::request(Ops::lists()), 1, TIMEOUT).unwrap();
        assert!(!waiting.is_finished());
        guard.release().wait().unwrap();
        let guard = get(waiting);
        assert_eq!(guard.fencing_token(), own.czxid);
        guard.release().wait().unwrap();
        get(last).release().wait().unwrap();
        bench.expect_free(QUEUE);
    }
}

#[test]
fn the_servers_are_asked_once_on_each_connection_whether_they_enforce_access_control() {
    let bench = Bench::own();
    let clients: [Client; 2] = acquainted(&bench, announcing);
    // How often both ask while they take turns: each other write is a release.
    let asked = || {
        const TURNS: usize = 8;
        bench.proxy.clear_seen();
        let mut guard = bench.lock(&clients[0], QUEUE).acquire().wait().unwrap();
        for turn in 1..TURNS {
            let (waiting, _) = waits(&bench, &clients[turn % 2], false);
            guard.release().wait().unwrap();
            guard = get(waiting);
        }
        guard.release().wait().unwrap();
        let is_write = |op: &Op| matches!(op, Op::Multi | Op::Delete);
        bench.asked().into_iter().filter(is_write).count() - TURNS
    };
    assert_eq!((asked(), asked()), (2, 0));
    bench.proxy.refuse();
    for client in &clients {
        eventually("the connection is lost", || client.state() != SessionState::Connected);
    }
    bench.proxy.heal();
    for client in &clients {
        eventually("it is back", || client.state() == SessionState::Connected);
    }
    assert_eq!((asked(), asked()), (2, 0));
}

#[test]
fn a_question_about_access_control_that_is_abandoned_is_asked_again() {
    let bench = Bench::own();
    let [first, second] = acquainted(&bench, announcing);
    let guard = bench.lock(&first, QUEUE).acquire().wait().unwrap();
    bench.proxy.clear_seen();
    let question = Rule::request(Op::Multi);
    let held = bench.proxy.hold(question.clone());
    let mut gives_up = bench.lock(&second, QUEUE).acquire();
    poll_until(&mut gives_up, || bench.proxy.count(&question) == 1);
    drop(gives_up);
    held.release();
    eventually("its claim is gone", || bench.claims(QUEUE).len() == 1);
    let (waiting, own) = waits(&bench, &second, true);
    assert_eq!(bench.proxy.count(&question), 2);
    guard.release().wait().unwrap();
    assert_eq!(get(waiting).fencing_token(), own.czxid);
}

#[test]
fn a_write_to_a_claim_that_is_not_announced_releases_nobody() {
    let bench = Bench::own();
    let [first] = acquainted(&bench, plain);
    let [second] = acquainted(&bench, announcing);
    let guard = bench.lock(&first, QUEUE).acquire().wait().unwrap();
    let (waiting, own) = waits(&bench, &second, true);
    bench.proxy.clear_seen();
    let mut data = first.get(&guard.claim_path()).wait().unwrap().data;
    data.extend(b"announces=release\n");
    bench.ask(|raw| raw.set_data(&guard.claim_path(), &data)).unwrap();
    bench.ask(|raw| raw.set_data(&guard.claim_path(), b"x")).unwrap();
    bench.proxy.wait_for(&Rule::request(Ops::lists()), 1, TIMEOUT).unwrap();
    assert!(!waiting.is_finished());
    guard.release().wait().unwrap();
    let guard = get(waiting);
    assert_eq!(guard.fencing_token(), own.czxid);
    guard.release().wait().unwrap();
}

#[test]
fn who_has_it_off_asks_once_more_after_an_announced_release() {
    let bench = Bench::own();
    let [first] = acquainted(&bench, announcing);
    let second = plain(&bench);
    let guard = bench.lock(&first, QUEUE).acquire().wait().unwrap();
    let (waiting, own) = waits(&bench, &second, false);
    let look = bench.proxy.hold(Rule::request(Ops::lists()));
    guard.release().wait().unwrap();
    look.wait_reached(TIMEOUT).unwrap();
    assert!(!waiting.is_finished());
    look.release();
    let guard = get(waiting);
    assert_eq!(guard.fencing_token(), own.czxid);
    guard.release().wait().unwrap();
}

/// Somebody deletes the claim of who waits between two others. It must not hold by the release of the first, for
/// which the last waits as well then.
fn robbed_while_it_waits(bench: &Bench, [first, second, third]: [Client; 3]) {
    let guard = bench.lock(&first, QUEUE).acquire().wait().unwrap();
    let (robbed, claim) = waits(bench, &second, true);
    let (last, own) = waits(bench, &third, false);
    bench.ask(|raw| raw.delete(&claim.path)).unwrap();
    let session = session_id(&third);
    eventually("the last waits for the first", || {
        bench.waits_for(session) == [&*guard.claim_path()]
    });
    guard.release().wait().unwrap();
    let guard = get(last);
    assert_eq!(guard.fencing_token(), own.czxid);
    eventually("it has claimed again, behind the last", || {
        bench.claims(QUEUE).iter().any(|it| it.session == claim.session && it.czxid > own.czxid)
    });
    assert_eq!(bench.claims(QUEUE)[0].czxid, own.czxid);
    guard.release().wait().unwrap();
    let guard = get(robbed);
    assert!(guard.fencing_token() > own.czxid);
    guard.release().wait().unwrap();
    bench.expect_free(QUEUE);
}

#[test]
fn who_was_robbed_while_it_waits_does_not_hold_by_the_deletion_of_the_only_claim_before_it() {
    let bench = Bench::own();
    bench.prepare(QUEUE);
    // Who has not waited before, lists, and sees that no other is there.
    robbed_while_it_waits(&bench, std::array::from_fn(|_| announcing(&bench)));
}

#[test]
fn who_was_robbed_while_it_waits_does_not_hold_by_an_announcement() {
    let bench = Bench::own();
    robbed_while_it_waits(&bench, acquainted(&bench, announcing));
}

#[test]
fn who_had_no_room_to_watch_its_claim_lists_once_that_has_waited_for_long() {
    const MAX_REQUEST: usize = 4096;
    let bench = Bench::own();
    bench.prepare(QUEUE);
    let [first, third] = std::array::from_fn(|_| announcing(&bench));
    let second = options().max_request(MAX_REQUEST);
    let second = second.connect(&bench.proxy.hosts()).wait().unwrap();
    let guard = bench.lock(&first, QUEUE).acquire().wait().unwrap();
    // Room is left for one and a half claims.
    let taken = MAX_REQUEST / 4 * 3 - (guard.claim_path().len() + 5) * 3 / 2;
    let filler = format!("/{}", "x".repeat(taken));
    let _watched = second.exists_and_watch(&filler).wait().unwrap();
    let (robbed, claim) = waits(&bench, &second, false);
    let (last, own) = waits(&bench, &third, false);
    std::thread::sleep(Duration::from_millis(150));
    assert!(!bench.watched_by(claim.session).contains(&claim.path));
    bench.ask(|raw| raw.delete(&claim.path)).unwrap();
    guard.release().wait().unwrap();
    let guard = get(last);
    assert_eq!(guard.fencing_token(), own.czxid);
    guard.release().wait().unwrap();
    assert!(get(robbed).fencing_token() > own.czxid);
}

#[test]
fn who_has_no_room_to_watch_a_claim_of_its_own_client_does_not_hold_beside_it() {
    const MAX_REQUEST: usize = 4096;
    let bench = Bench::own();
    let client = options().max_request(MAX_REQUEST).connect(&bench.proxy.hosts()).wait().unwrap();
    let lock = bench.lock(&client, QUEUE);
    let guard = lock.acquire().wait().unwrap();
    // Room is left for half a claim.
    let taken = MAX_REQUEST / 4 * 3 - (guard.claim_path().len() + 5) / 2;
    guard.release().wait().unwrap();
    let filler = format!("/{}", "x".repeat(taken));
    let _watched = client.exists_and_watch(&filler).wait().unwrap();
    let guard = lock.acquire().wait().unwrap();
    let waiting = acquire_in_background(&lock);
    eventually("it waits", || bench.claims(QUEUE).len() == 2);
    // For several looks.
    std::thread::sleep(Duration::from_secs(3));
    assert!(!waiting.is_finished() && guard.state() == GuardState::Held);
    guard.release().wait().unwrap();
    get(waiting).release().wait().unwrap();
}

#[test]
fn a_waiter_that_gives_up_announces_nothing() {
    let bench = Bench::own();
    let [first, second, third] = acquainted(&bench, announcing);
    let guard = bench.lock(&first, QUEUE).acquire().wait().unwrap();
    let (mut gives_up, session) = (bench.lock(&second, QUEUE).acquire(), session_id(&second));
    poll_until(&mut gives_up, || !bench.waits_for(session).is_empty());
    let (waiting, own) = waits(&bench, &third, true);
    bench.proxy.clear_seen();
    drop(gives_up);
    eventually("the last asks who is ahead", || bench.asked().contains(&Op::GetChildren2));
    assert!(!bench.asked().contains(&Op::Multi));
    assert!(!waiting.is_finished());
    guard.release().wait().unwrap();
    assert_eq!(get(waiting).fencing_token(), own.czxid);
}

#[test]
fn who_waits_behind_one_that_gives_up_does_not_pass_a_hold_of_its_own_client() {
    let bench = Bench::own();
    let [first] = acquainted(&bench, announcing);
    // Nothing is announced of its claim: its end alone counts.
    let second = plain(&bench);
    // By its number, the next but one claim of this client has one claim before it, beside its own.
    let mut stranger = bench.stranger(QUEUE);
    let (waiting, _) = waits(&bench, &first, false);
    stranger.leave();
    let guard = get(waiting);
    let mut gives_up = bench.lock(&second, QUEUE).acquire();
    poll_until(&mut gives_up, || bench.claims(QUEUE).len() == 2);
    let waiting = acquire_in_background(&bench.lock(&first, QUEUE));
    eventually("it watches the one before", || {
        let watched = bench.watched_by(session_id(&first));
        matches!(&bench.claims(QUEUE)[..], [_, before, _] if watched.contains(&before.path))
    });
    let own = bench.claims(QUEUE).pop().unwrap();
    bench.proxy.clear_seen();
    drop(gives_up);
    bench.proxy.wait_for(&Rule::request(Ops::lists()), 1, TIMEOUT).unwrap();
    assert!(!waiting.is_finished());
    guard.release().wait().unwrap();
    assert_eq!(get(waiting).fencing_token(), own.czxid);
}

#[test]
fn where_a_claim_goes_without_the_announcement_that_it_promised_a_listing_decides() {
    let bench = Bench::own();
    let [first, second] = acquainted(&bench, announcing);
    let guard = bench.lock(&first, QUEUE).acquire().wait().unwrap();
    let waiting = waits_just_now(&bench, &bench.lock(&second, QUEUE), &guard);
    bench.proxy.clear_seen();
    bench.ask(|raw| raw.delete(&guard.claim_path())).unwrap();
    let next = get(waiting);
    assert!(bench.asked().contains(&Op::GetChildren2), "{:?}", bench.asked());
    next.release().wait().unwrap();
}

#[test]
fn on_another_connection_a_listing_decides() {
    let bench = Bench::own();
    let [first, second] = acquainted(&bench, announcing);
    let guard = bench.lock(&first, QUEUE).acquire().wait().unwrap();
    let (waiting, own) = waits(&bench, &second, true);
    bench.proxy.refuse();
    eventually("the connection is lost", || second.state() != SessionState::Connected);
    bench.proxy.heal();
    for client in [&first, &second] {
        eventually("it is back", || client.state() == SessionState::Connected);
    }
    let session = session_id(&second);
    eventually("it watches again", || bench.waits_for(session) == [&*guard.claim_path()]);
    bench.proxy.clear_seen();
    guard.release().wait().unwrap();
    let guard = get(waiting);
    assert_eq!(guard.fencing_token(), own.czxid);
    assert!(bench.asked().contains(&Op::GetChildren2), "{:?}", bench.asked());
    guard.release().wait().unwrap();
}

#[test]
fn an_announced_release_whose_reply_is_lost_is_certain() {
    let bench = Bench::own();
    let [first, second] = acquainted(&bench, announcing);
    let guard = bench.lock(&first, QUEUE).acquire().wait().unwrap();
    let (waiting, own) = waits(&bench, &second, true);
    let lost = bench.proxy.on(Rule::reply(Op::Multi).once(), Action::Reset);
    guard.release().wait().unwrap();
    lost.wait_hits(1, TIMEOUT).unwrap();
    let guard = get(waiting);
    assert_eq!(guard.fencing_token(), own.czxid);
    guard.release().wait().unwrap();
    bench.expect_free(QUEUE);
}

#[test]
fn an_announced_release_that_never_arrives_is_repeated() {
    let bench = Bench::own();
    let [first, second] = acquainted(&bench, announcing);
    let guard = bench.lock(&first, QUEUE).acquire().wait().unwrap();
    let (waiting, own) = waits(&bench, &second, true);
    let lost = bench.proxy.on(Rule::request(Op::Multi).once(), Action::Reset);
    guard.release().wait().unwrap();
    lost.wait_hits(1, TIMEOUT).unwrap();
    assert_eq!(get(waiting).fencing_token(), own.czxid);
}

#[test]
fn the_holder_of_a_claim_that_nobody_may_write_to_is_asked_and_its_hold_broken() {
    let bench = Bench::own();
    let [first, second] = acquainted(&bench, announcing);
    let guard = bench.lock(&first, QUEUE).acquire().wait().unwrap();
    let mut requests = guard.release_requests();
    let other = bench.lock(&bench.direct(), QUEUE);
    let holder = |lock: &Lock| lock.holder().wait().unwrap().expect("somebody holds it");
    assert!(other.request_release(&holder(&other), "deployment").wait().unwrap());
    assert_eq!(requests.wait().as_deref(), Some("deployment"));
    let (waiting, own) = waits(&bench, &second, false);
    assert!(other.break_hold(&holder(&other), "", Duration::ZERO).wait().unwrap());
    assert_eq!(guard.lost().get(), Some(LostReason::Broken));
    let guard = get(waiting);
    assert_eq!(guard.fencing_token(), own.czxid);
    // What was wanted of the one before is not wanted of this one.
    assert_eq!(guard.lost().wait_timeout(Duration::from_millis(300)), None);
    guard.release().wait().unwrap();
}
