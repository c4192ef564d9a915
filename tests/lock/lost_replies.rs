//! Unknown is not failed: whatever frame is lost, there is one claim, and then none.

use test_support::{TIMEOUT, acquire_in_background, eventually, session_id};
use zklock::{GuardState, Strategy};
use zklock_testing::wire::{Op, Ops};
use zklock_testing::{Action, Rule};

use crate::bench::{Bench, Claim, each_strategy};

/// How a frame is lost.
const LOSSES: [fn() -> Action; 2] = [|| Action::Drop, || Action::Reset];

/// The frames of an acquire and its release, each of which is lost once.
fn frames() -> Vec<(&'static str, Ops)> {
    vec![
        ("create", Ops::creates()),
        ("list", Ops::lists()),
        ("look", Op::GetData.into()),
        ("delete", Op::Delete.into()),
    ]
}

/// Acquires and releases while the frame is lost, and checks everything on the way.
fn expect_no_harm(bench: &Bench, strategy: Strategy, what: &str, rule: Rule, action: Action) {
    let client = bench.client();
    let session = session_id(&client);
    let lost = bench.proxy.on(rule, action);
    let guard = bench.lock(&client, strategy).acquire().within(TIMEOUT).wait();
    let guard = guard.unwrap_or_else(|error| panic!("{what}: {error}"));
    let claims = bench.claims(strategy);
    assert_eq!(claims.len(), 1, "{what}: {claims:?}");
    assert_eq!(claims[0].session, session, "{what}: the session survived");
    assert_eq!(claims[0].czxid, guard.fencing_token(), "{what}");
    assert_eq!(claims[0].path, &*guard.claim_path(), "{what}");
    let released = guard.release().wait();
    assert!(released.is_ok(), "{what}: {released:?}");
    assert_eq!(bench.claims(strategy), [], "{what}");
    // A queue that is free looks at nobody, and the others list nothing.
    let is_sent = match strategy {
        Strategy::Queue => !what.contains(" look"),
        _ => !what.contains(" list"),
    };
    if is_sent {
        // The proxy counts a loss when it is done, which the client may outrun.
        lost.wait_hits(1, TIMEOUT).unwrap();
    }
    assert_eq!(lost.hits(), u64::from(is_sent), "{what}");
    lost.remove();
    assert_eq!(session_id(&client), session, "{what}");
}

each_strategy! {
    fn whatever_frame_is_lost_there_is_one_claim_and_then_none(strategy) {
        let bench = Bench::shared();
        bench.prepare(strategy);
        for (name, ops) in frames() {
            for loss in LOSSES {
                for (way, rule) in [
                    ("request", Rule::request(ops.clone())),
                    ("reply", Rule::reply(ops.clone())),
                ] {
                    let what = format!("{strategy}: {way} of {name}, {:?}", loss());
                    expect_no_harm(&bench, strategy, &what, rule.once(), loss());
                }
            }
        }
        bench.expect_free(strategy);
    }

    fn a_lost_reply_to_create_makes_no_second_claim(strategy) {
        let bench = Bench::shared();
        bench.prepare(strategy);
        let rule = Rule::reply(Ops::creates()).once();
        expect_no_harm(&bench, strategy, "reply to create", rule, Action::Drop);
        // One create was enough: the second look found it.
        assert_eq!(bench.proxy.count(&Rule::request(Ops::creates())), 1);
        // A server that lags would not show it, nor would a leader that was deposed.
        assert_eq!(bench.proxy.count(&Rule::request(Op::Delete).path("/zklock/catch-up")), 1);
        bench.expect_free(strategy);
    }

    fn a_claim_whose_data_are_replaced_before_it_is_found_is_nobodys_obstacle(strategy) {
        let bench = Bench::shared();
        bench.prepare(strategy);
        let client = bench.client();
        // Another claim of the same client with replaced data must stay.
        let held_path = format!("{}-held", bench.path);
        let held = client.lock(&held_path).strategy(strategy).acquire().wait().unwrap();
        bench.ask(|raw| raw.set_data(&held.claim_path(), b"replaced")).unwrap();
        let reply = bench.proxy.hold(Rule::reply(Ops::creates()).once());
        let acquired = acquire_in_background(&bench.lock(&client, strategy));
        reply.wait_reached(TIMEOUT).unwrap();
        let claim = bench.claims(strategy).pop().unwrap();
        bench.ask(|raw| raw.set_data(&claim.path, b"replaced")).unwrap();
        bench.proxy.reset_all();
        let guard = acquired.join().unwrap().unwrap();
        let claims = bench.claims(strategy);
        assert_eq!(claims.len(), 1, "{claims:?}");
        assert_eq!(claims[0].czxid, guard.fencing_token());
        assert_eq!(held.state(), GuardState::Held);
        // Nor does one that is held stand in the way of a look-up, or go by it.
        bench.ask(|raw| raw.set_data(&guard.claim_path(), b"replaced")).unwrap();
        let lost = bench.proxy.on(Rule::reply(Ops::creates()).once(), Action::Drop);
        bench.proxy.clear_seen();
        let next = acquire_in_background(&bench.lock(&client, strategy));
        lost.wait_hits(1, TIMEOUT).unwrap();
        let looks_up = Rule::reply(Op::Delete).path("/zklock/catch-up");
        bench.proxy.wait_for(&looks_up, 1, TIMEOUT).unwrap();
        // It may not be connected again yet.
        eventually("it is held", || guard.state() != GuardState::Suspended);
        assert_eq!(guard.state(), GuardState::Held);
        assert!(bench.claims(strategy).contains(&claims[0]));
        guard.release().wait().unwrap();
        next.join().unwrap().unwrap().release().wait().unwrap();
        held.release().wait().unwrap();
        bench.expect_free(strategy);
    }

    fn the_token_of_a_claim_that_is_written_to_before_it_is_found_is_that_of_its_creation(strategy) {
        let bench = Bench::shared();
        bench.prepare(strategy);
        let client = bench.client();
        let reply = bench.proxy.hold(Rule::reply(Ops::creates()).once());
        let acquired = acquire_in_background(&bench.lock(&client, strategy));
        reply.wait_reached(TIMEOUT).unwrap();
        let claim = bench.claims(strategy).pop().unwrap();
        // What it says stays the same.
        let (data, _) = bench.ask(|raw| raw.get_data(&claim.path)).unwrap();
        let written = bench.ask(|raw| raw.set_data(&claim.path, &data)).unwrap();
        assert!(written.mzxid > claim.czxid);
        bench.proxy.reset_all();
        let guard = acquired.join().unwrap().unwrap();
        assert_eq!(guard.fencing_token(), claim.czxid);
        assert_eq!(bench.claims(strategy), [claim]);
        guard.release().wait().unwrap();
        bench.expect_free(strategy);
    }

    fn a_lost_reply_costs_nobody_else_the_claim(strategy) {
        let bench = Bench::shared();
        bench.prepare(strategy);
        // Its data are not the first that it has: neither are those of a claim that was written over.
        let mut stranger = bench.stranger(strategy);
        let path = stranger.path.clone();
        stranger.raw.set_data(&path, b"replaced").unwrap();
        let theirs = bench.claims(strategy).pop().unwrap();
        let client = bench.client();
        let lost = bench.proxy.on(Rule::reply(Ops::creates()).once(), Action::Drop);
        let acquired = acquire_in_background(&bench.lock(&client, strategy));
        lost.wait_hits(1, TIMEOUT).unwrap();
        // It has looked for its own claim, and found this one.
        let look = Rule::reply(Op::GetData).path(&path);
        bench.proxy.wait_for(&look, 2, TIMEOUT).unwrap();
        bench.ask(|raw| raw.ping()).unwrap();
        assert_eq!(bench.claims(strategy)[0], theirs);
        assert!(!acquired.is_finished());
        stranger.leave();
        acquired.join().unwrap().unwrap().release().wait().unwrap();
        bench.expect_free(strategy);
    }

    fn a_claim_that_was_found_and_is_gone_is_not_taken_for_that_of_another_thread(strategy) {
        let bench = Bench::shared();
        bench.prepare(strategy);
        let client = bench.client();
        let lock = bench.lock(&client, strategy);
        let created = bench.proxy.hold(Rule::reply(Ops::creates()).once());
        let first = acquire_in_background(&lock);
        created.wait_reached(TIMEOUT).unwrap();
        let claim = bench.claims(strategy).pop().unwrap();
        let found = bench.proxy.hold(Rule::reply(Op::GetData).path(&claim.path).once());
        bench.proxy.reset_all();
        found.wait_reached(TIMEOUT).unwrap();
        // Before it hears that its claim was found, that is another one of the same session.
        bench.ask(|raw| raw.delete(&claim.path)).unwrap();
        let second = acquire_in_background(&lock);
        let is_theirs = |claims: &[Claim]| claims.len() == 1 && claims[0].czxid > claim.czxid;
        eventually("the other one has claimed", || is_theirs(&bench.claims(strategy)));
        found.release();
        let others = second.join().unwrap().unwrap();
        let creates = Rule::request(Ops::creates());
        eventually("it goes on", || first.is_finished() || bench.proxy.count(&creates) > 2);
        assert!(!first.is_finished(), "there are two holders");
        let token = others.fencing_token();
        others.release().wait().unwrap();
        let guard = first.join().unwrap().unwrap();
        assert!(guard.fencing_token() > token);
        guard.release().wait().unwrap();
        bench.expect_free(strategy);
    }

    fn a_claim_is_known_for_as_long_as_its_guard_whatever_else_is_forgotten(strategy) {
        let bench = Bench::shared();
        bench.prepare(strategy);
        let client = bench.client();
        let guard = bench.lock(&client, strategy).acquire().wait().unwrap();
        // More paths than a client remembers without need.
        for n in 0..5_000 {
            drop(client.lock(&format!("{}-{n}", bench.path)));
        }
        bench.ask(|raw| raw.set_data(&guard.claim_path(), b"replaced")).unwrap();
        let claim = bench.claims(strategy).pop().unwrap();
        let lost = bench.proxy.on(Rule::reply(Ops::creates()).once(), Action::Drop);
        let next = acquire_in_background(&bench.lock(&client, strategy));
        lost.wait_hits(1, TIMEOUT).unwrap();
        // On the next connection it has looked for its own claim, and found this one: not as the guard's own watch,
        // which has read it on the first.
        let look = Rule::reply(Op::GetData).path(&claim.path);
        eventually("it has looked", || {
            bench.proxy.seen().iter().any(|seen| look.matches(seen) && seen.connection > 1)
        });
        bench.ask(|raw| raw.ping()).unwrap();
        assert!(bench.claims(strategy).contains(&claim));
        eventually("it is connected again", || guard.state() != GuardState::Suspended);
        assert_eq!(guard.state(), GuardState::Held);
        guard.release().wait().unwrap();
        next.join().unwrap().unwrap().release().wait().unwrap();
        bench.expect_free(strategy);
    }

    fn replies_that_are_lost_again_and_again_only_take_longer(strategy) {
        let bench = Bench::shared();
        bench.prepare(strategy);
        let client = bench.client();
        let mut lost = Vec::new();
        for n in 1..=3 {
            let ops = [Op::Sync.into(), Op::GetData.into(), Op::Delete.into()];
            for ops in [Ops::creates(), Ops::lists()].into_iter().chain(ops) {
                lost.push(bench.proxy.on(Rule::reply(ops).nth(n), Action::Drop));
            }
        }
        let guard = bench.lock(&client, strategy).acquire().within(TIMEOUT).wait().unwrap();
        assert_eq!(bench.claims(strategy).len(), 1);
        guard.release().wait().unwrap();
        assert_eq!(bench.claims(strategy), []);
        let hits: u64 = lost.iter().map(|lost| lost.hits()).sum();
        assert!(hits > 4, "{hits} replies were lost");
    }

    fn a_guard_that_is_dropped_while_deletes_are_lost_lets_the_next_one_in(strategy) {
        let bench = Bench::shared();
        bench.prepare(strategy);
        let client = bench.client();
        for rule in [Rule::request(Op::Delete), Rule::reply(Op::Delete)] {
            let lost = bench.proxy.on(rule.once(), Action::Drop);
            let guard = bench.lock(&client, strategy).acquire().within(TIMEOUT).wait().unwrap();
            let next = bench.direct();
            let next = acquire_in_background(&bench.lock(&next, strategy));
            drop(guard);
            lost.wait_hits(1, TIMEOUT).unwrap();
            let next = next.join().unwrap().unwrap();
            eventually("only the next one's claim is left", || bench.claims(strategy).len() == 1);
            assert_eq!(bench.claims(strategy)[0].czxid, next.fencing_token());
            next.release().wait().unwrap();
        }
        bench.expect_free(strategy);
    }

    fn a_waiter_whose_frames_are_lost_waits_on_and_acquires(strategy) {
        let bench = Bench::shared();
        bench.prepare(strategy);
        for rule in [
            Rule::request(Ops::creates()),
            Rule::reply(Ops::creates()),
            Rule::request(Op::GetData),
            Rule::reply(Op::GetData),
            Rule::event(),
        ] {
            let mut stranger = bench.stranger(strategy);
            let client = bench.client();
            let session = session_id(&client);
            bench.proxy.clear_seen();
            let lost = bench.proxy.on(rule.clone().once(), Action::Drop);
            let waiter = acquire_in_background(&bench.lock(&client, strategy));
            if strategy == Strategy::Poll {
                bench.proxy.wait_for(&Rule::reply(Ops::creates()).error(-110), 2, TIMEOUT).unwrap();
            } else {
                eventually("it watches", || bench.watches_of(session) > 0);
            }
            assert!(!waiter.is_finished(), "{rule:?}");
            stranger.leave();
            let guard = waiter.join().unwrap().unwrap();
            assert_eq!(bench.claims(strategy).len(), 1, "{rule:?}");
            assert_eq!(session_id(&client), session, "{rule:?}");
            guard.release().wait().unwrap();
            // A poller watches nothing.
            if strategy != Strategy::Poll || format!("{rule:?}") != format!("{:?}", Rule::event()) {
                lost.wait_hits(1, TIMEOUT).unwrap();
            }
            lost.remove();
        }
        bench.expect_free(strategy);
    }

    fn an_acquire_that_ends_by_its_deadline_with_its_reply_lost_leaves_no_orphan(strategy) {
        let bench = Bench::shared();
        bench.prepare(strategy);
        let client = bench.client();
        let lock = bench.lock(&client, strategy);
        // The claim exists, its creator does not know, and has no time left to look.
        let stalled = bench.proxy.on(Rule::reply(Ops::creates()).once(), Action::Stall);
        let error = lock.acquire().within(std::time::Duration::from_millis(200)).wait().unwrap_err();
        assert!(error.is_timeout(), "{error}");
        assert!(error.to_string().contains(&bench.path), "{error}");
        stalled.wait_hits(1, TIMEOUT).unwrap();
        assert_eq!(bench.claims(strategy).len(), 1);
        bench.proxy.heal();
        bench.expect_free(strategy);
    }
}
