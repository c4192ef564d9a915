//! Servers that go and come back, sessions that end: who holds is told in time, who waits gets in.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use test_support::{Stranger, TIMEOUT, acquire_in_background, eventually, options, session_id};
use zklock::zookeeper::SessionState;
use zklock::{Client, Code, Guard, GuardState, LockError, LostReason, Strategy, WhileHeldError};
use zklock_testing::wire::{Op, Ops};
use zklock_testing::{Action, InstalledRule, Proxy, Rule, Server, expire_session};

use crate::bench::{Bench, each_strategy};

fn expire(bench: &Bench, client: &Client) {
    let key = client.session().unwrap();
    expire_session(&bench.server.hosts(), key.id(), &key.password()).unwrap();
}

/// Lets the server go and come back. Clients find it only when it serves again: one that is still
/// starting can take a connection and leave it without an answer.
fn away(bench: &Bench, go: impl FnOnce(), come_back: impl FnOnce()) {
    bench.proxy.refuse();
    go();
    come_back();
    bench.proxy.heal();
}

/// A client that soon gives up what it does not hear of.
const HARD_OF_HEARING: Duration = Duration::from_secs(4);

fn hard_of_hearing(bench: &Bench) -> Client {
    let options = options().session_timeout(HARD_OF_HEARING);
    options.connect(&bench.proxy.hosts()).wait().unwrap()
}

/// The servers hear the client, which hears nothing: its session lives on, and it can't know. Returns when it hears
/// again.
fn keep_from_hearing_until_lost(bench: &Bench, client: &Client) {
    let session = session_id(client);
    let mut states = client.states();
    let said = Ops::any();
    let rules = [Rule::reply(said), Rule::reply([Op::Ping, Op::Connect]), Rule::event()];
    let held = rules.map(|rule| bench.proxy.hold(rule));
    eventually("it is lost", || states.wait_timeout(TIMEOUT) == Ok(Some(SessionState::Lost)));
    drop(held);
    eventually("it is back", || client.state() == SessionState::Connected);
    assert_eq!(session_id(client), session);
}

/// Waits until the acquire of this client stands in line behind a claim that is there.
fn wait_until_behind(bench: &Bench, strategy: Strategy, client: &Client) {
    if strategy == Strategy::Poll {
        // A poller leaves nothing on the server but its attempts, and those are many.
        let attempts = || {
            let (id, all) = (session_id(client), bench.server.connections().unwrap());
            let of_it = all.iter().filter(|connection| connection.session_id == id);
            of_it.map(|connection| connection.received).sum::<u64>()
        };
        let before = attempts();
        eventually("it tries", || attempts() > before + 10);
    } else {
        let watches = || client.session().map_or(0, |key| bench.watches_of(key.id()));
        eventually("it watches", || watches() > 0);
    }
}

each_strategy! {
    fn a_waiter_outlives_a_restart_of_the_server_and_keeps_its_place(strategy) {
        let bench = Bench::own();
        let (holder, waiter) = (bench.client(), bench.client());
        let guard = bench.lock(&holder, strategy).acquire().wait().unwrap();
        let waiting = acquire_in_background(&bench.lock(&waiter, strategy));
        wait_until_behind(&bench, strategy, &waiter);
        let place = bench.claims(strategy).pop().unwrap();
        away(&bench, || bench.server.stop().unwrap(), || bench.server.start_again().unwrap());
        eventually("all are back", || {
            holder.state() == SessionState::Connected && waiter.state() == SessionState::Connected
        });
        assert!(!waiting.is_finished());
        // Whether the holder was told to stop depends on how long the server was away.
        drop(guard);
        let guard = waiting.join().unwrap().unwrap();
        if strategy == Strategy::Queue {
            assert_eq!(&*guard.claim_path(), place.path);
        }
        guard.release().wait().unwrap();
        bench.expect_free(strategy);
    }

    fn a_lock_is_held_through_a_crash_of_the_server_that_its_session_survives(strategy) {
        let bench = Bench::own();
        // Much longer than the server is away.
        let patient = options().session_timeout(Duration::from_secs(60));
        let client = patient.connect(&bench.proxy.hosts()).wait().unwrap();
        let guard = bench.lock(&client, strategy).acquire().wait().unwrap();
        let lost = guard.lost();
        assert_eq!(guard.state(), GuardState::Held);
        let suspended = || {
            bench.server.kill();
            eventually("it is told to stop writing", || guard.state() == GuardState::Suspended);
            assert_eq!(lost.get(), None);
        };
        away(&bench, suspended, || bench.server.start_again().unwrap());
        eventually("it is told to go on", || guard.state() == GuardState::Held);
        assert_eq!(lost.get(), None);
        assert_eq!(bench.claims(strategy)[0].czxid, guard.fencing_token());
        guard.release().wait().unwrap();
        bench.expect_free(strategy);
    }

    fn a_lost_guard_that_is_kept_blocks_nobody_once_its_session_is_back(strategy) {
        let bench = Bench::shared();
        let (client, other) = (hard_of_hearing(&bench), bench.direct());
        let lock = bench.lock(&client, strategy);
        let guard = lock.acquire().wait().unwrap();
        keep_from_hearing_until_lost(&bench, &client);
        assert!(guard.is_lost());
        // Behind its own claim it would wait for ever.
        lock.acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
        let other = bench.lock(&other, strategy);
        other.acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
        assert!(guard.release().wait().unwrap_err().is_lost());
        bench.expect_free(strategy);
    }

    fn a_lost_claim_is_deleted_no_sooner_than_its_session_could_have_ended(strategy) {
        let bench = Bench::shared();
        let client = hard_of_hearing(&bench);
        let guard = bench.lock(&client, strategy).acquire().wait().unwrap();
        let deleted = Arc::new(Mutex::new(None));
        let note = Arc::clone(&deleted);
        let deletion = Rule::request([Op::Delete, Op::Multi]).path(&*guard.claim_path()).once();
        let note = Action::run(move || *note.lock() = Some(Instant::now()));
        let _noting = bench.proxy.on(deletion, note);
        // From now on nothing proves the session, and the connection stays.
        let heartbeats = [Rule::request(Op::Sync), Rule::request(Op::Delete).path("/zklock/heartbeat")];
        let silenced = heartbeats.map(|rule| bench.proxy.on(rule, Action::Drop));
        let mut trusted_until = Instant::now();
        eventually("it is lost", || {
            let (now, remaining) = (Instant::now(), guard.remaining());
            if !remaining.is_zero() {
                trusted_until = trusted_until.max(now + remaining);
            }
            guard.is_lost()
        });
        silenced.iter().for_each(InstalledRule::remove);
        eventually("its claim is deleted", || deleted.lock().is_some());
        let deleted = deleted.lock().unwrap();
        let could_end = trusted_until + HARD_OF_HEARING / 20;
        assert!(deleted >= could_end, "{:?} early", could_end - deleted);
        drop(guard);
    }

    fn a_waiter_whose_session_expires_claims_again_on_the_next_one(strategy) {
        let bench = Bench::shared();
        let (holder, waiter) = (bench.direct(), bench.direct());
        let guard = bench.lock(&holder, strategy).acquire().wait().unwrap();
        let waiting = acquire_in_background(&bench.lock(&waiter, strategy));
        wait_until_behind(&bench, strategy, &waiter);
        let before = session_id(&waiter);
        expire(&bench, &waiter);
        eventually("it has another session", || {
            waiter.session().is_some_and(|key| key.id() != before)
                && waiter.state() == SessionState::Connected
        });
        wait_until_behind(&bench, strategy, &waiter);
        assert!(!waiting.is_finished());
        guard.release().wait().unwrap();
        let guard = waiting.join().unwrap().unwrap();
        assert_eq!(guard.state(), GuardState::Held);
        let claims = bench.claims(strategy);
        assert_eq!(claims.len(), 1);
        assert_eq!(claims[0].session, session_id(&waiter));
        guard.release().wait().unwrap();
        bench.expect_free(strategy);
    }

    fn a_waiter_whose_session_expires_keeps_to_its_own_deadline(strategy) {
        let bench = Bench::shared();
        let mut stranger = bench_stranger(&bench, strategy);
        let client = bench.direct();
        let lock = bench.lock(&client, strategy);
        let waiting = thread::spawn(move || lock.acquire().within(Duration::from_secs(4)).wait());
        wait_until_behind(&bench, strategy, &client);
        expire(&bench, &client);
        let error = waiting.join().unwrap().unwrap_err();
        assert!(error.is_timeout(), "{error}");
        stranger.leave();
        bench.expect_free(strategy);
    }

    fn a_waiter_that_was_cut_off_and_kept_its_session_holds_in_the_end(strategy) {
        let bench = Bench::shared();
        let (holder, waiter) = (bench.direct(), hard_of_hearing(&bench));
        let guard = bench.lock(&holder, strategy).acquire().wait().unwrap();
        let waiting = acquire_in_background(&bench.lock(&waiter, strategy));
        wait_until_behind(&bench, strategy, &waiter);
        let place = bench.claims(strategy).pop().unwrap();
        keep_from_hearing_until_lost(&bench, &waiter);
        assert!(!waiting.is_finished());
        guard.release().wait().unwrap();
        let guard = waiting.join().unwrap().unwrap();
        assert_eq!(guard.lost().get(), None);
        eventually("it is held", || guard.state() == GuardState::Held);
        if strategy == Strategy::Queue {
            assert_eq!(guard.fencing_token(), place.czxid, "it has its place yet");
        }
        guard.release().wait().unwrap();
        bench.expect_free(strategy);
    }

    fn a_guard_that_was_lost_stays_lost_though_its_session_lives_on(strategy) {
        let bench = Bench::shared();
        let client = hard_of_hearing(&bench);
        let guard = bench.lock(&client, strategy).acquire().wait().unwrap();
        let lost = guard.lost();
        keep_from_hearing_until_lost(&bench, &client);
        assert_eq!(guard.state(), GuardState::Lost);
        assert_eq!(lost.wait(), LostReason::Session);
        let error = guard.release().wait().unwrap_err();
        assert_eq!(error.code(), Code::SESSION_EXPIRED, "{error}");
        bench.expect_free(strategy);
    }

    fn a_hold_that_was_lost_in_the_midst_of_work_is_deleted_once(strategy) {
        let bench = Bench::shared();
        let (client, other) = (hard_of_hearing(&bench), bench.direct());
        let begun = AtomicU64::new(0);
        let held = bench.lock(&client, strategy).while_held(|_| {
            begun.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<()>()
        });
        let second = bench.proxy.hold(Rule::request(Op::Delete).path_prefix(&bench.path).nth(2));
        thread::scope(|scope| {
            let held = scope.spawn(|| held.wait());
            eventually("the work has begun", || begun.load(Ordering::SeqCst) == 1);
            keep_from_hearing_until_lost(&bench, &client);
            let error = held.join().unwrap().unwrap_err();
            assert!(matches!(error, WhileHeldError::Lost { result: None, .. }), "{error:?}");
        });
        let next = bench.lock(&other, strategy).acquire().within(TIMEOUT).wait().unwrap();
        // Of one name with the claim that was lost, where that is the lock's path.
        second.release();
        client.sync("/").wait().unwrap();
        assert_eq!(bench.claims(strategy)[0].czxid, next.fencing_token(), "another's claim is deleted");
        next.release().wait().unwrap();
    }

    fn a_holder_whose_session_expires_is_told_in_every_way(strategy) {
        let bench = Bench::shared();
        let client = bench.direct();
        let guard = bench.lock(&client, strategy).acquire().wait().unwrap();
        let (lost, awaited) = (guard.lost(), guard.lost());
        let waiting = thread::spawn(move || lost.wait_timeout(TIMEOUT));
        expire(&bench, &client);
        assert_eq!(waiting.join().unwrap(), Some(LostReason::Session));
        assert_eq!(guard.state(), GuardState::Lost);
        assert!(guard.is_lost());
        assert_eq!(awaited.get(), Some(LostReason::Session));
        assert_eq!(awaited.wait_timeout(Duration::ZERO), Some(LostReason::Session));
        assert_eq!(futures_lite::future::block_on(awaited.clone()), LostReason::Session);
        eventually("there is another session", || client.state() == SessionState::Connected);
        assert_eq!(guard.state(), GuardState::Lost, "of no use to the old guard");
        // Another may hold it by now, and keeps it.
        let other = bench.direct();
        let others = bench.lock(&other, strategy).acquire().within(TIMEOUT).wait().unwrap();
        assert!(others.fencing_token() > guard.fencing_token());
        let error = guard.release().wait().unwrap_err();
        assert!(matches!(error, LockError::Lost { reason: LostReason::Session, .. }), "{error:?}");
        assert!(error.is_lost() && error.code() == Code::SESSION_EXPIRED);
        assert!(error.to_string().contains(&bench.path), "{error}");
        assert_eq!(bench.claims(strategy)[0].czxid, others.fencing_token());
        others.release().wait().unwrap();
        bench.expect_free(strategy);
    }
}

fn bench_stranger(bench: &Bench, strategy: Strategy) -> Stranger {
    bench.prepare(strategy);
    bench.stranger(strategy)
}

/// What a holder and its successor did, in the order of one mutex.
#[derive(Default)]
struct Journal {
    entries: Mutex<Vec<&'static str>>,
}

impl Journal {
    fn note(&self, what: &'static str) {
        self.entries.lock().push(what);
    }
}

/// One run: a holder is cut off while another waits.
fn cut_off(
    server: &Arc<Server>,
    path: &str,
    strategy: Strategy,
    timeout: Duration,
) -> Vec<&'static str> {
    let proxy = Proxy::start(server.addr()).unwrap();
    let short = options().session_timeout(timeout);
    let holder = short.connect(&proxy.hosts()).wait().unwrap();
    let guard = holder.lock(path).strategy(strategy).acquire().wait().unwrap();
    let journal = Arc::new(Journal::default());
    let lost = guard.lost();
    let teller = {
        let (lost, journal) = (lost.clone(), Arc::clone(&journal));
        thread::spawn(move || {
            let reason = lost.wait();
            journal.note("lost");
            reason
        })
    };
    let successor = options().connect(&server.hosts()).wait().unwrap();
    let successor = acquire_in_background(&successor.lock(path).strategy(strategy));
    assert_eq!(guard.state(), GuardState::Held);
    proxy.cut();
    let others: Guard = successor.join().unwrap().unwrap();
    // The look comes after the acquire, so what it says was so before it, or this run fails.
    let seen = lost.get();
    journal.note("acquired");
    assert_eq!(seen, Some(LostReason::Session), "{strategy}: two believe that they hold");
    assert_eq!(guard.state(), GuardState::Lost);
    assert!(others.fencing_token() > guard.fencing_token());
    assert_eq!(teller.join().unwrap(), LostReason::Session);
    // With no link there is nobody to confirm a release: the client is closed first.
    proxy.heal();
    others.release().wait().unwrap();
    journal.entries.lock().clone()
}

#[test]
fn a_holder_that_is_cut_off_is_told_before_another_acquires_in_50_of_50_runs() {
    const RUNS: u64 = 50;
    const AT_ONCE: usize = 25;
    // Long enough that the margin, a tenth of it, outlasts the pauses of a busy machine.
    const SESSION_TIMEOUT: Duration = Duration::from_secs(12);
    let bench = Bench::own();
    let next = Arc::new(AtomicU64::new(0));
    let runners: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            let (server, next) = (Arc::clone(&bench.server), Arc::clone(&next));
            let path = bench.path.clone();
            thread::spawn(move || {
                let mut runs = Vec::new();
                loop {
                    let run = next.fetch_add(1, Ordering::SeqCst);
                    if run >= RUNS {
                        return runs;
                    }
                    let strategies = [Strategy::Poll, Strategy::Watch, Strategy::Queue];
                    let strategy = strategies[run as usize % 3];
                    let path = format!("{path}-{run}");
                    runs.push(cut_off(&server, &path, strategy, SESSION_TIMEOUT));
                }
            })
        })
        .collect();
    let runs: Vec<_> = runners.into_iter().flat_map(|runner| runner.join().unwrap()).collect();
    assert_eq!(runs.len() as u64, RUNS);
    let wrong: Vec<_> = runs.iter().filter(|run| **run != ["lost", "acquired"]).collect();
    assert!(wrong.is_empty(), "{} of {RUNS} runs: {wrong:?}", wrong.len());
}

/// What was proven by the old session timeout says nothing under a smaller one.
#[test]
fn a_holder_whose_server_comes_back_with_a_smaller_session_timeout_is_told_before_another_acquires()
{
    const THEN: Duration = Duration::from_secs(4);
    let bench = Bench::own();
    let client = bench.client();
    let session = session_id(&client);
    let guard = bench.lock(&client, Strategy::Queue).acquire().wait().unwrap();
    let file = bench.server.directory().join("zoo.cfg");
    let smaller = || {
        bench.server.stop().unwrap();
        let lines = std::fs::read_to_string(&file).unwrap();
        let lines = format!("{lines}maxSessionTimeout={}\n", THEN.as_millis());
        std::fs::write(&file, lines).unwrap();
    };
    away(&bench, smaller, || bench.server.start_again().unwrap());
    eventually("the new timeout is known", || client.session_timeout() == Some(THEN));
    assert_eq!(guard.lost().wait(), LostReason::Session);
    eventually("the session goes on", || client.state() == SessionState::Connected);
    assert_eq!(session_id(&client), session);
    bench.proxy.cut();
    let other = bench.lock(&bench.direct(), Strategy::Queue).acquire().within(TIMEOUT).wait();
    other.unwrap().release().wait().unwrap();
}

/// By another handle, on the same servers.
#[test]
fn a_holder_whose_session_is_taken_up_and_closed_elsewhere_hears_of_it() {
    for strategy in [Strategy::Poll, Strategy::Watch, Strategy::Queue] {
        let bench = Bench::shared();
        let client = bench.client();
        let guard = bench.lock(&client, strategy).acquire().wait().unwrap();
        let session = client.session().unwrap();
        let thief = options().session(session).connect(&bench.server.hosts()).wait().unwrap();
        thief.close().wait().unwrap();
        let next = bench.lock(&bench.direct(), strategy).acquire().within(TIMEOUT).wait().unwrap();
        eventually("it is lost", || guard.is_lost());
        // Its end touches nobody else's claim.
        drop(guard);
        eventually("it has another session", || client.sync("/").wait().is_ok());
        assert_eq!(next.state(), GuardState::Held);
        next.release().wait().unwrap();
    }
}

#[test]
fn an_acquire_ends_by_its_deadline_when_the_servers_are_away_for_ever() {
    for strategy in [Strategy::Poll, Strategy::Watch, Strategy::Queue] {
        let bench = Bench::shared();
        let client = bench.client();
        bench.proxy.refuse();
        let began = Instant::now();
        let timeout = Duration::from_millis(300);
        let error = bench.lock(&client, strategy).acquire().within(timeout).wait().unwrap_err();
        assert!(began.elapsed() >= timeout);
        assert!(error.is_timeout(), "{error}");
        assert!(error.to_string().contains(&bench.path), "{error}");
        assert!(error.to_string().contains("no word from the servers"), "{error}");
    }
}

#[test]
fn an_acquire_ends_with_an_error_when_its_client_is_closed() {
    for strategy in [Strategy::Poll, Strategy::Watch, Strategy::Queue] {
        for connected in [true, false] {
            let bench = Bench::shared();
            bench.prepare(strategy);
            let _stranger = bench.stranger(strategy);
            let client = bench.client();
            let lock = bench.lock(&client, strategy);
            let waiting = thread::spawn(move || lock.acquire().wait());
            wait_until_behind(&bench, strategy, &client);
            if !connected {
                bench.proxy.refuse();
                eventually("it notices", || client.state() != SessionState::Connected);
            }
            let closing = client.close();
            let error = waiting.join().unwrap().unwrap_err();
            bench.proxy.heal();
            closing.wait().unwrap();
            assert_eq!(error.code(), Code::INVALID_STATE, "{error}");
            assert!(matches!(error, LockError::Closed { .. }), "{error:?}");
            assert_eq!(error.path(), bench.path, "{error}");
            assert!(!error.is_outcome_unknown() && !error.is_timeout() && !error.is_lost());
        }
    }
}

#[test]
fn a_client_that_opens_no_second_session_says_that_the_first_one_expired() {
    let bench = Bench::shared();
    let strategy = Strategy::Queue;
    bench.prepare(strategy);
    let _stranger = bench.stranger(strategy);
    let client = options().reopen(false).connect(&bench.server.hosts()).wait().unwrap();
    let waiting = acquire_in_background(&bench.lock(&client, strategy));
    wait_until_behind(&bench, strategy, &client);
    expire(&bench, &client);
    let error = waiting.join().unwrap().unwrap_err();
    assert!(matches!(error, LockError::Closed { .. }), "{error:?}");
    assert_eq!(error.code(), Code::SESSION_EXPIRED, "{error}");
    assert_eq!(error.path(), bench.path, "{error}");
}
