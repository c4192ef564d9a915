//! An acquire that is given up, wherever it stands, leaves no claim and no more than one watch.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use test_support::{Stranger, TIMEOUT, acquire_in_background, eventually, session_id};
use zklock::{Client, Guard, LockError, Pending, Strategy};
use zklock_testing::wire::{Op, Ops};
use zklock_testing::{Action, Gate, Rule};

use crate::bench::{Bench, each_strategy};
use crate::place::each_store;

/// An acquire that is driven by hand.
struct Driven {
    future: Pending<Guard, LockError>,
    guard: Option<Guard>,
}

impl Driven {
    fn start(bench: &Bench, client: &Client, strategy: Strategy) -> Driven {
        Driven { future: bench.lock(client, strategy).acquire(), guard: None }
    }

    /// Whether it has acquired by now.
    fn poll(&mut self) -> bool {
        if self.guard.is_none() {
            let mut context = Context::from_waker(Waker::noop());
            if let Poll::Ready(guard) = Pin::new(&mut self.future).poll(&mut context) {
                self.guard = Some(guard.unwrap());
            }
        }
        self.guard.is_some()
    }

    /// Goes on until `there` says so, or it has acquired, which is what it returns.
    fn poll_until(&mut self, mut there: impl FnMut() -> bool) -> bool {
        let deadline = Instant::now() + TIMEOUT;
        while !self.poll() {
            if there() {
                return false;
            }
            assert!(Instant::now() < deadline, "an acquire stands still");
            thread::sleep(Duration::from_millis(1));
        }
        true
    }
}

/// Holds one frame of those that an acquire sends or gets.
fn hold(bench: &Bench, replies: bool, nth: u64) -> Gate {
    let rule = if replies { bench.replies() } else { bench.requests() };
    bench.proxy.hold(rule.nth(nth))
}

/// Waits until nothing of ours is on its way any more, and no claim is left.
fn wait_settled(bench: &Bench, strategy: Strategy) {
    let on_the_way = || (bench.proxy.count(&bench.requests()), bench.proxy.count(&bench.replies()));
    eventually("every request is answered and no claim is left", || {
        let before = on_the_way();
        before.0 == before.1 && bench.claims(strategy).is_empty() && on_the_way() == before
    });
}

/// Drives acquires, the n-th of them up to the n-th frame, and drops each there. Returns how many
/// places that were.
fn give_up_everywhere(
    bench: &Bench,
    strategy: Strategy,
    mut ahead: impl FnMut() -> Option<Stranger>,
) -> u64 {
    /// A poller sends frames for as long as it waits.
    const ENOUGH: u64 = 16;
    let client = bench.client();
    let session = session_id(&client);
    let mut places = 0;
    for replies in [false, true] {
        for nth in 1..=ENOUGH {
            bench.proxy.clear_seen();
            let mut stranger = ahead();
            let looked = Rule::reply(Op::GetData).path(&bench.path);
            let gate = hold(bench, replies, nth);
            let mut driven = Driven::start(bench, &client, strategy);
            let mut left = stranger.is_none();
            let acquired = driven.poll_until(|| {
                // Once it has seen who is ahead, who is ahead goes.
                let waits = match strategy {
                    Strategy::Poll => bench.proxy.count(&looked) > 0,
                    _ => bench.watches_of(session) > 0,
                };
                if !left && waits && !gate.is_reached() {
                    assert!(bench.waits_for(session).len() <= 1, "one watch is enough");
                    left = true;
                    stranger.as_mut().unwrap().leave();
                }
                gate.is_reached()
            });
            let reached = gate.is_reached();
            drop(driven);
            gate.release();
            if let (Some(stranger), false) = (&mut stranger, left) {
                // The claim of the one who gave up goes while it is still behind somebody.
                let answered =
                    || bench.proxy.count(&bench.requests()) == bench.proxy.count(&bench.replies());
                eventually("every request is answered", answered);
                eventually("no claim but that ahead is left", || {
                    bench.claims(strategy).iter().all(|claim| claim.session != session)
                });
                assert!(bench.waits_for(session).len() <= 1);
                stranger.leave();
            }
            wait_settled(bench, strategy);
            eventually("no watch is left", || bench.watches_of(session) == 0);
            if acquired && !reached {
                break;
            }
            places += 1;
        }
    }
    assert_eq!(session_id(&client), session);
    bench.expect_free(strategy);
    places
}

each_store! {
    fn of_two_that_try_a_free_lock_exactly_one_gets_it(place) {
        let locks = [place.lock(), place.lock()];
        for round in 0..100 {
            let guards = thread::scope(|scope| {
                let tries = locks.each_ref().map(|lock| scope.spawn(|| lock.try_acquire().wait().unwrap()));
                tries.map(|one| one.join().unwrap())
            });
            let winners = guards.iter().flatten().count();
            assert_eq!(winners, 1, "round {round}");
            for guard in guards.into_iter().flatten() {
                guard.release().wait().unwrap();
            }
        }
        place.expect_free();
    }
}

each_strategy! {
    fn an_acquire_of_a_free_lock_can_be_dropped_at_every_await(strategy) {
        let bench = Bench::shared();
        bench.prepare(strategy);
        let places = give_up_everywhere(&bench, strategy, || None);
        // Before each of its requests has arrived, and before each reply has.
        assert_eq!(places, if strategy == Strategy::Queue { 4 } else { 2 });
    }

    fn an_acquire_that_makes_the_way_can_be_dropped_at_every_await(strategy) {
        let bench = Bench::shared();
        let client = bench.client();
        bench.prepare(Strategy::Queue);
        for replies in [false, true] {
            for nth in 1.. {
                let path = format!("{}/a-{replies}-{nth}/b/lock", bench.path);
                let settled = || bench.proxy.count(&bench.requests()) == bench.proxy.count(&bench.replies());
                eventually("every request is answered", settled);
                let gate = hold(&bench, replies, nth);
                let mut pending = client.lock(&path).strategy(strategy).acquire();
                let mut driven = Driven { future: pending, guard: None };
                let acquired = driven.poll_until(|| gate.is_reached());
                let reached = gate.is_reached();
                drop(driven);
                gate.release();
                // Another finds the way as far as it was made.
                pending = client.lock(&path).strategy(strategy).acquire().within(TIMEOUT);
                pending.wait().unwrap().release().wait().unwrap();
                if acquired && !reached {
                    assert!(nth > 4, "{nth} frames are too few to make the way");
                    break;
                }
            }
        }
        let session = session_id(&client);
        eventually("no claim is left", || !bench.server.ephemerals().unwrap().contains_key(&session));
    }

    fn a_claim_that_was_given_up_is_looked_for_until_that_is_answered(strategy) {
        let bench = Bench::shared();
        bench.prepare(strategy);
        let client = bench.client();
        let created = bench.proxy.hold(Rule::reply(Ops::creates()).once());
        let mut driven = Driven::start(&bench, &client, strategy);
        assert!(!driven.poll_until(|| created.is_reached()));
        drop(driven);
        assert_eq!(bench.claims(strategy).len(), 1);
        let looks = match strategy {
            Strategy::Queue => Ops::lists(),
            _ => Op::GetData.into(),
        };
        let lost = bench.proxy.on(Rule::reply(looks).path(&bench.path).once(), Action::Drop);
        bench.proxy.reset_all();
        lost.wait_hits(1, TIMEOUT).unwrap();
        bench.expect_free(strategy);
    }

    fn an_acquire_of_a_taken_lock_can_be_dropped_at_every_await(strategy) {
        let bench = Bench::shared();
        bench.prepare(strategy);
        let places = give_up_everywhere(&bench, strategy, || Some(bench.stranger(strategy)));
        assert!(places >= 5, "{places}");
    }

    fn a_waiter_that_is_dropped_leaves_at_once_and_the_lock_moves_on(strategy) {
        let bench = Bench::shared();
        bench.prepare(strategy);
        let mut stranger = bench.stranger(strategy);
        let client = bench.direct();
        let session = session_id(&client);
        // Polled without any pause in between: as many times as it likes.
        for polls in 0..20 {
            let mut driven = Driven::start(&bench, &client, strategy);
            for _ in 0..polls {
                driven.poll();
            }
        }
        eventually("only the holder's claim is left", || bench.claims(strategy).len() == 1);
        assert!(bench.watches_of(session) <= 1);
        stranger.leave();
        bench.expect_free(strategy);
        eventually("no watch is left", || bench.watches_of(session) == 0);
    }

    fn two_hundred_acquires_that_end_by_their_deadline_leave_one_watch_and_no_claim(strategy) {
        let bench = Bench::shared();
        bench.prepare(strategy);
        let mut stranger = bench.stranger(strategy);
        let client = bench.direct();
        let session = session_id(&client);
        let lock = bench.lock(&client, strategy);
        for round in 0..200 {
            // Some end before the first reply, some while they wait.
            let timeout = Duration::from_micros(200 + 100 * (round % 40));
            let error = lock.acquire().within(timeout).wait().unwrap_err();
            assert!(error.is_timeout(), "{error}");
        }
        eventually("only the holder's claim is left", || bench.claims(strategy).len() == 1);
        assert!(bench.watches_of(session) <= 1, "{:?}", bench.server.watches().unwrap());
        stranger.leave();
        bench.expect_free(strategy);
        eventually("no watch is left", || bench.watches_of(session) == 0);
    }

    fn a_try_of_a_taken_lock_gives_none_and_leaves_neither_claim_nor_watch(strategy) {
        let bench = Bench::shared();
        bench.prepare(strategy);
        let client = bench.direct();
        let session = session_id(&client);
        let lock = bench.lock(&client, strategy);
        let guard = lock.try_acquire().wait().unwrap().expect("it is free");
        guard.release().wait().unwrap();
        let mut stranger = bench.stranger(strategy);
        for _ in 0..20 {
            assert!(lock.try_acquire().wait().unwrap().is_none());
        }
        assert_eq!(bench.claims(strategy).len(), 1);
        assert_eq!(bench.watches_of(session), 0, "nobody waits");
        stranger.leave();
        bench.expect_free(strategy);
    }

    fn a_reply_that_comes_after_the_deadline_is_cleaned_up_after(strategy) {
        let bench = Bench::shared();
        bench.prepare(strategy);
        let client = bench.client();
        let gate = bench.proxy.hold(Rule::reply(Ops::creates()).once());
        let error = bench.lock(&client, strategy).acquire().within(Duration::from_millis(50));
        assert!(error.wait().unwrap_err().is_timeout());
        gate.wait_reached(TIMEOUT).unwrap();
        assert_eq!(bench.claims(strategy).len(), 1);
        gate.release();
        bench.expect_free(strategy);
    }
}

#[test]
fn a_try_that_comes_too_late_is_gone_when_it_says_so() {
    let bench = Bench::shared();
    let strategy = Strategy::Queue;
    bench.prepare(strategy);
    let client = bench.client();
    let lock = bench.lock(&client, strategy);
    // Between its look and its claim somebody else claims.
    let gate = bench.proxy.hold(Rule::request(Ops::creates()).once());
    let trying = thread::spawn(move || lock.try_acquire().wait().unwrap());
    gate.wait_reached(TIMEOUT).unwrap();
    let mut stranger = bench.stranger(strategy);
    let slow = bench.proxy.hold(Rule::request(Op::Delete).once());
    gate.release();
    slow.wait_reached(TIMEOUT).unwrap();
    assert!(!trying.is_finished(), "its claim still stands in others' way");
    slow.release();
    assert!(trying.join().unwrap().is_none());
    stranger.leave();
    let other = bench.direct();
    assert!(bench.lock(&other, strategy).try_acquire().wait().unwrap().is_some());
}

#[test]
fn a_try_at_a_lock_that_is_taken_makes_no_claim_that_others_could_see() {
    let bench = Bench::shared();
    let (holder, other) = (bench.direct(), bench.direct());
    let _held = bench.lock(&holder, Strategy::Queue).acquire().wait().unwrap();
    let changes = || other.exists(&bench.path).wait().unwrap().unwrap().cversion;
    let before = changes();
    assert!(bench.lock(&other, Strategy::Queue).try_acquire().wait().unwrap().is_none());
    assert_eq!(changes(), before, "two who try could send each other away from a free lock");
}

#[test]
fn a_waiter_that_gives_up_does_not_hand_the_lock_over() {
    let bench = Bench::shared();
    let strategy = Strategy::Queue;
    let (a, b, c) = (bench.direct(), bench.direct(), bench.client());
    let held = bench.lock(&a, strategy).acquire().wait().unwrap();
    let mut gives_up = Driven::start(&bench, &b, strategy);
    let b_session = session_id(&b);
    gives_up.poll_until(|| bench.watches_of(b_session) > 0);
    let patient = acquire_in_background(&bench.lock(&c, strategy));
    let c_session = session_id(&c);
    eventually("c watches b", || bench.watches_of(c_session) > 0);
    bench.proxy.clear_seen();
    drop(gives_up);
    // c is woken, finds a, and waits for it.
    bench.proxy.wait_for(&Rule::event(), 1, TIMEOUT).unwrap();
    bench.proxy.wait_for(&Rule::reply(Op::GetData).path(&*held.claim_path()), 1, TIMEOUT).unwrap();
    eventually("c watches a", || {
        let watches = bench.server.watches().unwrap();
        watches.get(&*held.claim_path()).is_some_and(|sessions| sessions.contains(&c_session))
    });
    assert!(!patient.is_finished());
    assert_eq!(bench.claims(strategy).len(), 2);
    held.release().wait().unwrap();
    let guard = patient.join().unwrap().unwrap();
    assert_eq!(bench.watches_of(b_session), 0);
    guard.release().wait().unwrap();
    bench.expect_free(strategy);
}
