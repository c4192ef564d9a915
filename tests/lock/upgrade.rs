//! Upgradeable readers, upgrades and downgrades: held throughout, and nobody comes in between.

use std::time::Duration;

use test_support::{TIMEOUT, acquire_in_background, eventually, poll_until, session_id};
use zklock::{Access, Client, Guard, GuardState, LockError, LostReason, Strategy};
use zklock_testing::wire::{CreateMode, Op, Ops};
use zklock_testing::{Action, Rule};

use crate::bench::Bench;
use crate::line::{Waiting, held, join, release};
use crate::place::{each_that_upgrades, late};

const QUEUE: Strategy = Strategy::Queue;
const SOON: Duration = Duration::from_millis(200);

/// Upgrades in the background.
fn upgrade(guard: Guard) -> std::thread::JoinHandle<(Guard, Result<(), LockError>)> {
    std::thread::spawn(move || {
        let upgraded = guard.upgrade().within(TIMEOUT).wait();
        (guard, upgraded)
    })
}

each_that_upgrades! {
    fn an_upgradeable_reader_holds_beside_readers_and_no_other_of_its_kind(place) {
        let reads = place.read_write().read().acquire().wait().unwrap();
        let upgradeable = place.read_write().upgradeable().acquire().within(TIMEOUT).wait().unwrap();
        let also = place.read_write().read().acquire().within(TIMEOUT).wait().unwrap();
        assert_eq!(upgradeable.access(), Some(Access::Upgradeable));
        assert_eq!(also.access(), Some(Access::Read));
        let others = place.read_write();
        assert!(others.upgradeable().try_acquire().wait().unwrap().is_none());
        assert!(others.write().try_acquire().wait().unwrap().is_none());
        let second = join(&place.read_write().upgradeable(), 4);
        let behind = place.read_write().read().acquire().within(TIMEOUT).wait().unwrap();
        release([reads, also, behind]);
        assert!(!second.is_finished());
        release([upgradeable]);
        release([held(second)]);
        place.expect_free();
    }

    fn an_upgrade_waits_for_the_readers_that_hold_and_no_reader_overtakes_it(place) {
        let reads = place.read_write().read().acquire().wait().unwrap();
        let guard = place.read_write().upgradeable().acquire().within(TIMEOUT).wait().unwrap();
        let looks = place.read_write();
        let token = guard.fencing_token();
        let upgraded = upgrade(guard);
        eventually("it asks", || looks.read().contenders().wait().unwrap().len() == 3);
        let late = join(&place.read_write().read(), 4);
        assert!(looks.read().try_acquire().wait().unwrap().is_none());
        assert!(!upgraded.is_finished() && !late.is_finished());
        release([reads]);
        let (guard, upgraded) = upgraded.join().unwrap();
        upgraded.unwrap();
        assert_eq!((guard.access(), guard.fencing_token()), (Some(Access::Write), token));
        assert_eq!(guard.state(), GuardState::Held);
        assert!(!late.is_finished());
        let holders: Vec<_> = looks.read().contenders().wait().unwrap().into_iter()
            .filter(|it| it.held_since.is_some()).map(|it| it.token).collect();
        assert_eq!(holders, [token, token], "it holds, and it writes");
        release([guard]);
        release([held(late)]);
        place.expect_free();
    }

    fn a_writer_that_waited_before_an_upgrade_was_asked_for_does_not_get_in_between(place) {
        let guard = place.read_write().upgradeable().acquire().within(TIMEOUT).wait().unwrap();
        let writer = join(&place.read_write().write(), 2);
        let reader = join(&place.read_write().read(), 3);
        guard.upgrade().within(TIMEOUT).wait().unwrap();
        assert!(!writer.is_finished() && !reader.is_finished());
        let token = guard.fencing_token();
        release([guard]);
        let writing = held(writer);
        assert!(writing.fencing_token() > token);
        assert!(!reader.is_finished());
        release([writing]);
        release([held(reader)]);
        place.expect_free();
    }

    fn readers_behind_a_writer_that_gives_up_stay_out_of_an_upgraded_hold(place) {
        let guard = place.read_write().upgradeable().acquire().within(TIMEOUT).wait().unwrap();
        let writer = place.read_write().write();
        let mut giving_up = writer.acquire();
        poll_until(&mut giving_up, || writer.contenders().wait().unwrap().len() == 2);
        let reader = join(&place.read_write().read(), 3);
        guard.upgrade().within(TIMEOUT).wait().unwrap();
        drop(giving_up);
        eventually("it has gone", || writer.contenders().wait().unwrap().len() == 3);
        assert!(place.read_write().read().acquire().within(SOON).wait().unwrap_err().is_timeout());
        assert!(!reader.is_finished());
        release([guard]);
        release([held(reader)]);
        place.expect_free();
    }

    fn an_upgrade_that_is_late_or_given_up_leaves_the_hold_as_it_was(place) {
        let reads = place.read_write().read().acquire().wait().unwrap();
        let guard = place.read_write().upgradeable().acquire().within(TIMEOUT).wait().unwrap();
        let looks = place.read_write().read();
        let (_, ahead) = late(|limit| guard.upgrade().within(limit).wait().unwrap_err());
        assert_eq!(ahead.token, reads.fencing_token());
        let mut given_up = guard.upgrade();
        poll_until(&mut given_up, || looks.contenders().wait().unwrap().len() == 3);
        let second = guard.upgrade().wait().unwrap_err();
        assert!(matches!(second, LockError::Unusable { .. }), "{second:?}");
        drop(given_up);
        eventually("nothing is left of it", || looks.contenders().wait().unwrap().len() == 2);
        assert_eq!((guard.access(), guard.state()), (Some(Access::Upgradeable), GuardState::Held));
        let another = place.read_write().read().acquire().within(TIMEOUT).wait().unwrap();
        release([reads, another]);
        guard.upgrade().within(TIMEOUT).wait().unwrap();
        release([guard]);
        place.expect_free();
    }

    fn what_was_upgraded_is_upgradeable_again_and_can_be_upgraded_once_more(place) {
        let guard = place.read_write().upgradeable().acquire().within(TIMEOUT).wait().unwrap();
        let token = guard.fencing_token();
        for _ in 0..3 {
            guard.upgrade().within(TIMEOUT).wait().unwrap();
            guard.upgrade().within(TIMEOUT).wait().unwrap();
            assert!(place.read_write().read().try_acquire().wait().unwrap().is_none());
            guard.downgrade(Access::Upgradeable).wait().unwrap();
            assert_eq!(guard.access(), Some(Access::Upgradeable));
            release([place.read_write().read().acquire().within(TIMEOUT).wait().unwrap()]);
            assert!(place.read_write().upgradeable().try_acquire().wait().unwrap().is_none());
        }
        assert_eq!((guard.fencing_token(), guard.state()), (token, GuardState::Held));
        guard.upgrade().within(TIMEOUT).wait().unwrap();
        guard.downgrade(Access::Read).wait().unwrap();
        let next = place.read_write().upgradeable().acquire().within(TIMEOUT).wait().unwrap();
        assert!(next.upgrade().within(SOON).wait().unwrap_err().is_timeout());
        release([guard]);
        next.upgrade().within(TIMEOUT).wait().unwrap();
        release([next]);
        place.expect_free();
    }

    fn a_downgrade_lets_the_readers_directly_behind_in_and_passes_no_writer(place) {
        for to in [Access::Read, Access::Upgradeable] {
            let writing = place.read_write().write().acquire().within(TIMEOUT).wait().unwrap();
            let readers: Vec<Waiting> =
                (2..4).map(|in_line| join(&place.read_write().read(), in_line)).collect();
            let writer = join(&place.read_write().write(), 4);
            let behind = join(&place.read_write().read(), 5);
            let token = writing.fencing_token();
            writing.downgrade(to).wait().unwrap();
            let readers: Vec<Guard> = readers.into_iter().map(held).collect();
            assert_eq!((writing.access(), writing.fencing_token()), (Some(to), token));
            assert_eq!(writing.state(), GuardState::Held);
            assert!(!writer.is_finished() && !behind.is_finished());
            let looks = place.read_write().read();
            let first = looks.holder().wait().unwrap().unwrap();
            assert_eq!((first.token, &*first.path), (token, &*writing.claim_path()));
            assert!(readers.iter().all(|reader| reader.fencing_token() > token));
            release(readers);
            assert!(!writer.is_finished());
            release([writing]);
            let writing = held(writer);
            assert!(!behind.is_finished());
            assert!(writing.fencing_token() > token);
            release([writing]);
            release([held(behind)]);
            place.expect_free();
        }
    }

    fn a_lock_behind_a_writer_alone_stays_out_when_that_becomes_a_reader(place) {
        for to in [Access::Read, Access::Upgradeable] {
            let writing = place.read_write().write().acquire().within(TIMEOUT).wait().unwrap();
            let alone = join(&place.lock(), 2);
            writing.downgrade(to).wait().unwrap();
            // Behind both.
            assert!(place.read_write().read().acquire().within(SOON).wait().unwrap_err().is_timeout());
            assert!(!alone.is_finished(), "{to:?}");
            release([writing]);
            release([held(alone)]);
            place.expect_free();
        }
    }

    fn a_writer_that_became_upgradeable_can_write_again(place) {
        let guard = place.read_write().write().acquire().within(TIMEOUT).wait().unwrap();
        guard.downgrade(Access::Upgradeable).wait().unwrap();
        let reads = place.read_write().read().acquire().within(TIMEOUT).wait().unwrap();
        assert!(place.read_write().upgradeable().try_acquire().wait().unwrap().is_none());
        let writer = join(&place.read_write().write(), 3);
        assert!(guard.upgrade().within(SOON).wait().unwrap_err().is_timeout());
        release([reads]);
        guard.upgrade().within(TIMEOUT).wait().unwrap();
        assert!(!writer.is_finished());
        release([guard]);
        release([held(writer)]);
        place.expect_free();
    }

    fn of_two_that_are_upgradeable_the_second_holds_when_the_first_reads_alone(place) {
        let first = place.read_write().upgradeable().acquire().within(TIMEOUT).wait().unwrap();
        let second = join(&place.read_write().upgradeable(), 2);
        // The one that waits does not stand in the way of the first.
        first.upgrade().within(TIMEOUT).wait().unwrap();
        first.downgrade(Access::Read).wait().unwrap();
        let second = held(second);
        let upgraded = upgrade(second);
        release([first]);
        let (second, upgraded) = upgraded.join().unwrap();
        upgraded.unwrap();
        release([second]);
        place.expect_free();
    }

    fn what_cannot_be_had_is_refused_and_changes_nothing(place) {
        let reads = place.read_write().read().acquire().within(TIMEOUT).wait().unwrap();
        let guard = place.read_write().upgradeable().acquire().within(TIMEOUT).wait().unwrap();
        for refused in [
            reads.upgrade(),
            reads.downgrade(Access::Upgradeable),
            reads.downgrade(Access::Write),
            guard.downgrade(Access::Write),
        ] {
            let refused = refused.wait().unwrap_err();
            assert!(matches!(refused, LockError::Unusable { .. }), "{refused:?}");
        }
        reads.downgrade(Access::Read).wait().unwrap();
        guard.downgrade(Access::Upgradeable).wait().unwrap();
        release([reads, guard]);
        let exclusive = place.lock().acquire().within(TIMEOUT).wait().unwrap();
        assert_eq!(exclusive.access(), None);
        assert!(matches!(exclusive.upgrade().wait(), Err(LockError::Unusable { .. })));
        release([exclusive]);
        place.expect_free();
    }

    fn a_hold_that_is_lost_ends_its_upgrade_and_is_changed_no_more(place) {
        let guard = place.read_write().upgradeable().acquire().within(TIMEOUT).wait().unwrap();
        let reads = place.read_write().read().acquire().within(TIMEOUT).wait().unwrap();
        let looks = place.read_write().read();
        let mut upgrading = guard.upgrade();
        poll_until(&mut upgrading, || looks.contenders().wait().unwrap().len() == 3);
        place.lose();
        let lost = upgrading.within(TIMEOUT).wait().unwrap_err();
        let LockError::NotHeld { reason, .. } = lost else { panic!("{lost:?}") };
        assert!(place.is_its_loss(reason));
        assert!(guard.upgrade().wait().unwrap_err().is_lost());
        assert!(guard.downgrade(Access::Read).wait().unwrap_err().is_lost());
        drop(guard);
        let writes = join(&place.read_write().write(), 2);
        release([reads]);
        release([held(writes)]);
        place.expect_free();
    }

    fn who_is_asked_for_an_upgraded_or_downgraded_hold_knows_of_it_and_can_be_broken(place) {
        let looks = place.read_write().read();
        let guard = place.read_write().upgradeable().acquire().within(TIMEOUT).wait().unwrap();
        guard.upgrade().within(TIMEOUT).wait().unwrap();
        let seen = looks.holder().wait().unwrap().unwrap();
        let mut requests = guard.release_requests();
        assert!(looks.request_release(&seen, "please").within(TIMEOUT).wait().unwrap());
        assert_eq!(requests.wait_timeout(TIMEOUT).unwrap().as_deref(), Some("please"));
        release([guard]);

        let guard = place.read_write().write().acquire().within(TIMEOUT).wait().unwrap();
        let seen = looks.holder().wait().unwrap().unwrap();
        guard.downgrade(Access::Read).wait().unwrap();
        // Seen before, and meant as it is now.
        assert!(looks.break_hold(&seen, "now", Duration::ZERO).within(TIMEOUT).wait().unwrap());
        assert_eq!(guard.lost().wait_timeout(TIMEOUT), Some(LostReason::Broken));
        assert!(!looks.is_locked().wait().unwrap());
        drop(guard);
        place.expect_free();
    }
}

/// How a frame is lost.
const LOSSES: [fn() -> Action; 2] = [|| Action::Drop, || Action::Reset];

/// The frames of a change, each of which is lost once.
fn frames() -> Vec<(&'static str, Rule)> {
    let mut frames = Vec::new();
    for (name, ops) in
        [("create", Ops::creates()), ("list", Ops::lists()), ("delete", Op::Delete.into())]
    {
        frames.push((name, Rule::request(ops.clone()).once()));
        frames.push((name, Rule::reply(ops).once()));
    }
    frames
}

/// A lock whose directory its client knows.
fn known(bench: &Bench) -> Client {
    bench.prepare(QUEUE);
    let client = bench.client();
    release([client.read_write(&bench.path).write().acquire().within(TIMEOUT).wait().unwrap()]);
    client
}

#[test]
fn whatever_frame_of_an_upgrade_is_lost_it_has_one_claim_more_and_then_none() {
    let bench = Bench::shared();
    for (name, rule) in frames() {
        for loss in LOSSES {
            let client = known(&bench);
            let session = session_id(&client);
            let lock = client.read_write(&bench.path).upgradeable();
            let guard = lock.acquire().within(TIMEOUT).wait().unwrap();
            let lost = bench.proxy.on(rule.clone(), loss());
            guard.upgrade().within(TIMEOUT).wait().unwrap();
            let claims = bench.claims(QUEUE);
            assert_eq!(claims.len(), 2, "{name}: {claims:?}");
            assert!(claims.iter().all(|claim| claim.session == session), "{name}");
            assert_eq!(guard.access(), Some(Access::Write), "{name}");
            guard.downgrade(Access::Upgradeable).within(TIMEOUT).wait().unwrap();
            assert_eq!(bench.claims(QUEUE).len(), 1, "{name}");
            lost.wait_hits(1, TIMEOUT).unwrap();
            lost.remove();
            release([guard]);
            assert_eq!(bench.claims(QUEUE), [], "{name}");
        }
    }
}

#[test]
fn whatever_frame_of_a_downgrade_is_lost_it_is_held_by_one_claim() {
    let bench = Bench::shared();
    for (name, rule) in frames() {
        for loss in LOSSES {
            let client = known(&bench);
            let guard = client.read_write(&bench.path).write().acquire().within(TIMEOUT).wait();
            let guard = guard.unwrap();
            let token = guard.fencing_token();
            let lost = bench.proxy.on(rule.clone(), loss());
            guard.downgrade(Access::Read).within(TIMEOUT).wait().unwrap();
            lost.wait_hits(1, TIMEOUT).unwrap();
            lost.remove();
            let claims = bench.claims(QUEUE);
            assert_eq!(claims.len(), 1, "{name}: {claims:?}");
            assert_eq!(claims[0].path, &*guard.claim_path(), "{name}");
            assert_eq!((guard.fencing_token(), guard.state()), (token, GuardState::Held), "{name}");
            release([guard]);
            assert_eq!(bench.claims(QUEUE), [], "{name}");
        }
    }
}

#[test]
fn an_upgrade_given_up_with_its_reply_lost_leaves_nothing_and_the_hold() {
    let bench = Bench::shared();
    let client = known(&bench);
    let guard = client.read_write(&bench.path).upgradeable().acquire().within(TIMEOUT).wait();
    let guard = guard.unwrap();
    for name in ["upgrade", "downgrade"] {
        let gate = bench.proxy.hold(Rule::reply(Ops::creates()).once());
        let mut under_way = match name {
            "upgrade" => guard.upgrade(),
            _ => guard.downgrade(Access::Read),
        };
        poll_until(&mut under_way, || gate.is_reached());
        drop(under_way);
        bench.proxy.reset_all();
        drop(gate);
        eventually("its claim alone is there", || bench.claims(QUEUE).len() == 1);
        assert_eq!(guard.access(), Some(Access::Upgradeable), "{name}");
        assert_eq!(bench.claims(QUEUE)[0].path, &*guard.claim_path(), "{name}");
    }
    guard.upgrade().within(TIMEOUT).wait().unwrap();
    release([guard]);
    bench.expect_free(QUEUE);
}

#[test]
fn a_session_that_ends_during_an_upgrade_takes_all_with_it() {
    let bench = Bench::shared();
    let client = known(&bench);
    let reads = bench.direct();
    let reads = reads.read_write(&bench.path).read().acquire().within(TIMEOUT).wait().unwrap();
    let guard = client.read_write(&bench.path).upgradeable().acquire().within(TIMEOUT).wait();
    let guard = guard.unwrap();
    let mut upgrading = guard.upgrade();
    poll_until(&mut upgrading, || bench.claims(QUEUE).len() == 3);
    bench.expire(&client);
    let lost = upgrading.within(TIMEOUT).wait().unwrap_err();
    assert!(matches!(lost, LockError::NotHeld { reason: LostReason::Session, .. }), "{lost:?}");
    eventually("the reader's claim alone is there", || bench.claims(QUEUE).len() == 1);
    release([reads]);
    drop(guard);
    bench.expect_free(QUEUE);
}

#[test]
fn whichever_claim_of_an_upgraded_hold_somebody_deletes_it_is_lost_and_nothing_is_left() {
    let bench = Bench::shared();
    let client = known(&bench);
    for victim in 0..2 {
        let lock = client.read_write(&bench.path).upgradeable();
        let guard = lock.acquire().within(TIMEOUT).wait().unwrap();
        guard.upgrade().within(TIMEOUT).wait().unwrap();
        let session = session_id(&client);
        eventually("both are watched", || bench.watches_of(session) >= 2);
        let claims = bench.claims(QUEUE);
        bench.ask(|raw| raw.delete(&claims[victim].path)).unwrap();
        assert_eq!(guard.lost().wait_timeout(TIMEOUT), Some(LostReason::Deleted));
        eventually("nothing is left", || bench.claims(QUEUE).is_empty());
        assert!(guard.release().wait().unwrap_err().is_lost());
    }
    bench.expect_free(QUEUE);
}

#[test]
fn an_upgrade_ends_when_somebody_deletes_the_claim_of_its_hold() {
    let bench = Bench::shared();
    let client = known(&bench);
    let reads = client.read_write(&bench.path).read().acquire().within(TIMEOUT).wait().unwrap();
    let guard = client.read_write(&bench.path).upgradeable().acquire().within(TIMEOUT).wait();
    let guard = guard.unwrap();
    let mut upgrading = guard.upgrade();
    poll_until(&mut upgrading, || bench.claims(QUEUE).len() == 3);
    bench.ask(|raw| raw.delete(&guard.claim_path())).unwrap();
    // It looks again at the latest when the reader has gone.
    release([reads]);
    let lost = upgrading.within(TIMEOUT).wait().unwrap_err();
    assert!(matches!(lost, LockError::NotHeld { reason: LostReason::Deleted, .. }), "{lost:?}");
    drop(guard);
    bench.expect_free(QUEUE);
}

#[test]
fn what_is_written_under_a_changed_hold_happens_only_while_it_is_held() {
    let bench = Bench::shared();
    let client = known(&bench);
    let data = format!("{}-data", bench.path);
    client.create(&data, b"0", zklock::zookeeper::CreateMode::Persistent).wait().unwrap();
    let guard = client.read_write(&bench.path).upgradeable().acquire().within(TIMEOUT).wait();
    let guard = guard.unwrap();
    guard.upgrade().within(TIMEOUT).wait().unwrap();
    assert_eq!(guard.checks().len(), 2);
    guard.set(&data, b"1", None).within(TIMEOUT).wait().unwrap();
    guard.downgrade(Access::Read).within(TIMEOUT).wait().unwrap();
    assert_eq!(guard.checks().len(), 1);
    guard.set(&data, b"2", None).within(TIMEOUT).wait().unwrap();
    release([guard]);
    for victim in 0..2 {
        let lock = client.read_write(&bench.path).upgradeable();
        let guard = lock.acquire().within(TIMEOUT).wait().unwrap();
        guard.upgrade().within(TIMEOUT).wait().unwrap();
        let claims = bench.claims(QUEUE);
        bench.ask(|raw| raw.delete(&claims[victim].path)).unwrap();
        let refused = guard.set(&data, b"3", None).within(TIMEOUT).wait().unwrap_err();
        assert!(refused.is_lost(), "{refused:?}");
        drop(guard);
        eventually("nothing is left", || bench.claims(QUEUE).is_empty());
    }
    assert_eq!(client.get(&data).wait().unwrap().data, b"2");
}

const CURATOR: &str = "_c_8a7ed3a3-3e4f-44c2-a8f0-3b6e6d0a9c11-";

/// A claim of Curator's, at the end of the queue.
fn curators(bench: &Bench, mark: &str) -> test_support::Stranger {
    let prefix = format!("{}/{CURATOR}{mark}", bench.path);
    test_support::Stranger::claims(bench.raw(), &prefix, CreateMode::EphemeralSequential)
}

#[test]
fn an_upgrade_goes_before_curators_writer_that_waits_and_is_called_so() {
    let bench = Bench::shared();
    let client = known(&bench);
    let guard = client.read_write(&bench.path).upgradeable().acquire().within(TIMEOUT).wait();
    let guard = guard.unwrap();
    assert!(guard.claim_path().contains("-up-__READ__"), "{}", &*guard.claim_path());
    let mut reads = curators(&bench, "__READ__");
    let mut writes = curators(&bench, "__WRIT__");
    let mut behind = curators(&bench, "__READ__");
    let mut upgrading = guard.upgrade();
    let number = |path: &str| path[path.len() - 10..].to_owned();
    let placed = |bench: &Bench| {
        bench.claims(QUEUE).into_iter().find(|claim| claim.path.contains("-upgrade-"))
    };
    poll_until(&mut upgrading, || {
        placed(&bench).is_some_and(|claim| number(&claim.path) == number(&writes.path))
    });
    // It waits for the reader that holds, though not for the one that waits for the writer.
    reads.leave();
    upgrading.within(TIMEOUT).wait().unwrap();
    let claim = placed(&bench).unwrap();
    assert!(claim.path.contains("-__WRIT__"), "{}", claim.path);
    guard.downgrade(Access::Upgradeable).within(TIMEOUT).wait().unwrap();
    assert_eq!(placed(&bench), None);
    writes.leave();
    behind.leave();
    release([guard]);
    bench.expect_free(QUEUE);
}

#[test]
fn an_upgrade_in_the_place_of_a_writer_that_has_gone_meanwhile_takes_another() {
    let bench = Bench::shared();
    let client = known(&bench);
    let guard = client.read_write(&bench.path).upgradeable().acquire().within(TIMEOUT).wait();
    let guard = guard.unwrap();
    let mut writes = curators(&bench, "__WRIT__");
    let mut behind = curators(&bench, "__READ__");
    // The second claim is in the writer's place.
    let gate = bench.proxy.hold(Rule::request(Ops::creates()).nth(2));
    let mut upgrading = guard.upgrade();
    poll_until(&mut upgrading, || gate.is_reached());
    writes.leave();
    gate.release();
    // So the reader behind that holds now, and is waited for.
    let late = upgrading.within(SOON).wait().unwrap_err();
    assert!(late.is_timeout(), "{late:?}");
    behind.leave();
    guard.upgrade().within(TIMEOUT).wait().unwrap();
    release([guard]);
    bench.expect_free(QUEUE);
}

#[test]
fn an_upgrade_whose_claim_is_deleted_waits_for_who_holds_by_then() {
    let bench = Bench::shared();
    let client = known(&bench);
    let guard = client.read_write(&bench.path).upgradeable().acquire().within(TIMEOUT).wait();
    let guard = guard.unwrap();
    let mut reads = curators(&bench, "__READ__");
    let mut writes = curators(&bench, "__WRIT__");
    let reader = bench.client();
    let behind = acquire_in_background(&reader.read_write(&bench.path).read());
    eventually("it waits", || !bench.watched_by(session_id(&reader)).is_empty());
    // In the writer's place, and behind the first reader.
    let mut upgrading = guard.upgrade();
    let watches_the_reader = || bench.watched_by(session_id(&client)).contains(&reads.path);
    poll_until(&mut upgrading, watches_the_reader);
    let its = bench.children().into_iter().find(|name| name.contains("-upgrade-"));
    bench.delete(&format!("{}/{}", bench.path, its.unwrap()));
    writes.leave();
    let behind = behind.join().unwrap().unwrap();
    reads.leave();
    let late = upgrading.within(SOON).wait().unwrap_err();
    assert!(late.is_timeout(), "{late:?}");
    assert!(!behind.is_lost());
    behind.release().wait().unwrap();
    guard.upgrade().within(TIMEOUT).wait().unwrap();
    release([guard]);
    bench.expect_free(QUEUE);
}

#[test]
fn an_upgrade_costs_a_create_a_list_and_a_delete_and_a_downgrade_as_much() {
    let bench = Bench::shared();
    let client = known(&bench);
    let lock = client.read_write(&bench.path);
    let costs = |change: &dyn Fn()| {
        bench.proxy.clear_seen();
        change();
        bench.asked()
    };
    // What is held for longer is watched besides.
    let is = |asked: Vec<Op>, wanted: &[Op]| {
        let asked: Vec<Op> = asked.into_iter().filter(|op| *op != Op::GetData).collect();
        assert_eq!(asked, wanted);
    };
    let three = [Op::Create2, Op::GetChildren2, Op::Delete];
    let guard = lock.upgradeable().acquire().within(TIMEOUT).wait().unwrap();
    is(costs(&|| guard.upgrade().wait().unwrap()), &three[..2]);
    is(costs(&|| guard.downgrade(Access::Upgradeable).wait().unwrap()), &three[2..]);
    is(costs(&|| guard.downgrade(Access::Read).wait().unwrap()), &three);
    release([guard]);
    let guard = lock.write().acquire().within(TIMEOUT).wait().unwrap();
    is(costs(&|| guard.downgrade(Access::Read).wait().unwrap()), &three);
    release([guard]);
    // Where a writer waits, its place is found first.
    let guard = lock.upgradeable().acquire().within(TIMEOUT).wait().unwrap();
    let mut writes = curators(&bench, "__WRIT__");
    is(
        costs(&|| guard.upgrade().wait().unwrap()),
        &[Op::Create2, Op::GetChildren2, Op::Delete, Op::Create2, Op::GetChildren2],
    );
    release([guard]);
    writes.leave();
    bench.expect_free(QUEUE);
}

#[test]
fn one_of_several_guards_of_a_claim_changes_nothing() {
    let bench = Bench::shared();
    let client = known(&bench);
    let lock = client.read_write(&bench.path).upgradeable().reentrant();
    let guard = lock.acquire(&zklock::Owner::this_thread()).within(TIMEOUT).wait().unwrap();
    assert_eq!(guard.access(), None);
    assert!(matches!(guard.upgrade().wait(), Err(LockError::Unusable { .. })));
    release([guard]);
    bench.expect_free(QUEUE);
}
