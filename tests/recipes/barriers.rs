//! Barriers and latches: everybody waits until it is time, and nobody for ever.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use test_support::{
    Bench, TIMEOUT, eventually, expect_blocked, options, poll_until, session_id,
    wait_for_another_session,
};
use zklock::recipes::Entered;
use zklock::zookeeper::{Acl, CreateMode, Permissions};
use zklock::{Code, Error, Pending, Result};
use zklock_testing::wire::{Op, Ops};
use zklock_testing::{Action, Rule};

use crate::{LOSSES, asked, while_its_session_ends};

const SOON: Duration = Duration::from_millis(150);

fn in_background<T: Send + 'static>(pending: Pending<T>) -> JoinHandle<Result<T>> {
    thread::spawn(move || pending.within(TIMEOUT).wait())
}

fn is_late<T: std::fmt::Debug>(result: Result<T>) {
    assert_eq!(result.unwrap_err().code(), Code::OPERATION_TIMEOUT);
}

fn multi(bench: &Bench, way: fn(Ops) -> Rule) -> Rule {
    way(Op::Multi.into()).path(bench.path.as_str())
}

#[test]
fn a_barrier_holds_everybody_up_until_it_is_removed() {
    let bench = Bench::shared();
    let barrier = bench.direct().barrier(&bench.path);
    barrier.pass().wait().unwrap();
    barrier.remove().wait().unwrap();
    barrier.set().wait().unwrap();
    barrier.set().wait().unwrap();
    let other = bench.direct().barrier(&bench.path);
    is_late(other.pass().within(SOON).wait());
    let waiting = [in_background(other.pass()), in_background(barrier.pass())];
    barrier.remove().wait().unwrap();
    for one in waiting {
        one.join().unwrap().unwrap();
    }
    let below = format!("{}/a/b", bench.path);
    bench.direct().barrier(&below).set().wait().unwrap();
    assert!(bench.exists(&below), "what is missing above it is made");
    let error = bench.direct().barrier("no/path").set().wait().unwrap_err();
    assert_eq!(error.code(), Code::BAD_ARGUMENTS);
}

#[test]
fn what_is_as_wanted_needs_no_room_for_a_watch_and_takes_none() {
    const MANY: usize = 200;
    let bench = Bench::shared();
    let client = options().max_request(4_000).connect(&bench.proxy.hosts()).wait().unwrap();
    let other = bench.direct();
    for number in 0..MANY {
        let path = format!("{}/latch-{number}", bench.path);
        other.latch(&path).set(0).wait().unwrap();
        client.latch(&path).opened().within(TIMEOUT).wait().unwrap();
    }
    let (mut watches, mut number) = (Vec::new(), 0);
    let full = loop {
        number += 1;
        match client.exists_and_watch(&format!("{}/{number}", bench.path)).wait() {
            Ok(looked) if number < 10 * MANY => watches.push(looked.watch),
            other => break other,
        }
    };
    assert_eq!(full.unwrap_err().code(), Code::THROTTLED_OP);
    client.barrier(&format!("{}/none", bench.path)).pass().within(TIMEOUT).wait().unwrap();
}

#[test]
fn a_removal_whose_reply_is_lost_does_not_remove_what_was_set_after_it() {
    let bench = Bench::shared();
    let (barrier, other) = (bench.client().barrier(&bench.path), bench.direct());
    barrier.set().wait().unwrap();
    let (path, first) = (bench.path.clone(), multi(&bench, Rule::reply).once());
    let set = Action::run(move || other.barrier(&path).set().wait().unwrap());
    bench.proxy.on(first.clone(), set);
    let lost = bench.proxy.on(first, Action::Drop);
    barrier.remove().wait().unwrap();
    lost.wait_hits(1, TIMEOUT).unwrap();
    assert!(bench.exists(&bench.path));
    // Nor is one set again that was removed.
    bench.delete(&bench.path);
    let (other, path) = (bench.direct(), bench.path.clone());
    let first = multi(&bench, Rule::reply).once();
    let remove = Action::run(move || other.barrier(&path).remove().wait().unwrap());
    bench.proxy.on(first.clone(), remove);
    let lost = bench.proxy.on(first, Action::Drop);
    barrier.set().wait().unwrap();
    lost.wait_hits(1, TIMEOUT).unwrap();
    assert!(!bench.exists(&bench.path));
}

#[test]
fn who_waits_at_a_barrier_goes_on_though_its_session_ends() {
    let bench = Bench::shared();
    let client = bench.client();
    let setter = bench.direct().barrier(&bench.path);
    for round in 0..3 {
        setter.set().wait().unwrap();
        let waiting = in_background(client.barrier(&bench.path).pass());
        let session = session_id(&client);
        eventually("it watches", || !bench.watched_by(session).is_empty());
        match round {
            0 => bench.proxy.reset_all(),
            _ => bench.expire(&client),
        }
        if round == 2 {
            // Removed while nobody watches.
            bench.proxy.refuse();
            setter.remove().wait().unwrap();
            bench.proxy.heal();
        } else {
            setter.remove().wait().unwrap();
        }
        waiting.join().unwrap().unwrap();
        if round > 0 {
            wait_for_another_session(&client, session);
        }
    }
    setter.set().wait().unwrap();
    let waiting = in_background(client.barrier(&bench.path).pass());
    client.close().wait().unwrap();
    assert!(waiting.join().unwrap().unwrap_err().is_session_over());
}

#[test]
fn a_barrier_costs_a_request_to_set_and_two_to_pass() {
    let bench = Bench::shared();
    let barrier = bench.client().barrier(&bench.path);
    for _ in 0..2 {
        bench.proxy.clear_seen();
        barrier.set().wait().unwrap();
        barrier.remove().wait().unwrap();
        barrier.pass().wait().unwrap();
    }
    assert_eq!(asked(&bench), [Op::Multi, Op::Multi, Op::Sync, Op::Exists]);
    let session = bench.server.watches().unwrap();
    assert!(session.iter().all(|(path, _)| *path != bench.path), "no watch is left");
}

#[test]
fn a_lock_below_a_latch_does_not_open_it() {
    let bench = Bench::shared();
    let client = bench.direct();
    let latch = client.latch(&bench.path);
    latch.set(1).wait().unwrap();
    let below = client.lock(&format!("{}/open", bench.path)).acquire().wait().unwrap();
    is_late(latch.opened().within(SOON).wait());
    assert_eq!(latch.count_down().wait().unwrap(), 0);
    latch.opened().wait().unwrap();
    drop(below);
}

#[test]
fn a_recipe_with_a_name_of_zklocks_own_is_refused() {
    let bench = Bench::shared();
    let client = bench.direct();
    let path = format!("{}/zl-open", bench.path);
    let refused = [
        client.latch(&path).set(1).wait().unwrap_err(),
        client.barrier(&path).set().wait().unwrap_err(),
        client.counter(&path).set(1).wait().unwrap_err(),
        client.queue(&path).put("x").wait().unwrap_err(),
        client.group(&path).members().wait().unwrap_err(),
        client.group(&path).join("x").wait().map(drop).unwrap_err(),
        client.double_barrier(&path, 1).enter().wait().map(drop).unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.code(), Code::BAD_ARGUMENTS, "{error}");
        let text = error.to_string();
        assert!(text.contains(&path) && text.contains("choose another name"), "{text}");
    }
    assert!(client.queue(&path).take().wait().unwrap_err().to_string().contains("choose another"));
    assert!(!bench.exists(&bench.path), "nothing was made");
}

#[test]
fn a_latch_opens_with_the_last_event_and_stays_open() {
    let bench = Bench::shared();
    let latch = bench.direct().latch(&bench.path);
    let code = |error: Error| error.code();
    assert_eq!(latch.count_down().wait().map_err(code), Err(Code::NO_NODE));
    assert_eq!(latch.left().wait().map_err(code), Err(Code::NO_NODE));
    let early = in_background(bench.direct().latch(&bench.path).opened());
    assert_eq!(latch.set(3).wait().unwrap(), 3);
    assert_eq!(bench.direct().latch(&bench.path).set(7).wait().unwrap(), 3, "it is set already");
    for left in [2, 1] {
        assert_eq!(latch.count_down().wait().unwrap(), left);
        is_late(latch.opened().within(SOON).wait());
        assert_eq!(latch.left().wait().unwrap(), left);
    }
    assert!(!early.is_finished());
    let late = in_background(latch.opened());
    assert_eq!([latch.count_down().wait().unwrap(), latch.count_down().wait().unwrap()], [0, 0]);
    for waiting in [early, late, in_background(latch.opened())] {
        waiting.join().unwrap().unwrap();
    }
    let none = bench.direct().latch(&format!("{}/none", bench.path));
    none.set(0).wait().unwrap();
    none.opened().wait().unwrap();
}

#[test]
fn whatever_frame_is_lost_each_event_is_counted_once() {
    for loss in LOSSES {
        for way in [Rule::request, Rule::reply] {
            let bench = Bench::shared();
            let latch = bench.client().latch(&bench.path);
            let steps: [&dyn Fn() -> u32; 4] = [
                &|| latch.set(3).wait().unwrap(),
                &|| latch.count_down().wait().unwrap(),
                &|| latch.count_down().wait().unwrap(),
                &|| latch.count_down().wait().unwrap(),
            ];
            for (step, left) in steps.into_iter().zip([3, 2, 1, 0]) {
                let lost = bench.proxy.on(multi(&bench, way).once(), loss());
                assert_eq!(step(), left);
                lost.wait_hits(1, TIMEOUT).unwrap();
                lost.remove();
                assert_eq!(latch.left().wait().unwrap(), left);
            }
            latch.opened().within(TIMEOUT).wait().unwrap();
        }
    }
}

#[test]
fn many_count_at_once_and_wake_those_who_wait_once() {
    let bench = Bench::shared();
    let watcher = bench.client();
    let opened = in_background(watcher.latch(&bench.path).opened());
    eventually("it watches", || !bench.watched_by(session_id(&watcher)).is_empty());
    bench.direct().latch(&bench.path).set(40).wait().unwrap();
    let counting = (0..4).map(|_| {
        let latch = bench.direct().latch(&bench.path);
        thread::spawn(move || {
            (0..10).for_each(|_| assert!(latch.count_down().wait().unwrap() < 40))
        })
    });
    for one in counting.collect::<Vec<_>>() {
        one.join().unwrap();
    }
    opened.join().unwrap().unwrap();
    assert_eq!(bench.proxy.count(&Rule::event().path_prefix(&bench.path)), 1);
    assert_eq!(bench.direct().latch(&bench.path).left().wait().unwrap(), 0);
}

#[test]
fn an_event_is_counted_though_a_server_that_lags_behind_shows_no_latch_or_an_open_one() {
    for before in [None, Some("0"), Some("no number")] {
        let bench = Bench::with_directory();
        let (mut raw, path) = (bench.raw(), format!("{}/latch", bench.path));
        let latch = bench.client().latch(&path);
        if let Some(before) = before {
            raw.create(&path, before.as_bytes()).unwrap();
        }
        let read = Rule::reply(Op::GetData).path(path.as_str());
        let old = bench.proxy.hold(read.once());
        let counted = in_background(latch.count_down());
        old.wait_reached(TIMEOUT).unwrap();
        if before.is_some() {
            raw.delete(&path).unwrap();
        }
        raw.create(&path, b"3").unwrap();
        old.release();
        assert_eq!(counted.join().unwrap().unwrap(), 2, "{before:?}");
    }
}

#[test]
fn a_count_whose_session_ends_before_its_reply_is_of_unknown_outcome() {
    let bench = Bench::shared();
    let client = bench.client();
    let latch = client.latch(&bench.path);
    latch.set(5).wait().unwrap();
    let frame = multi(&bench, Rule::reply);
    let counted = while_its_session_ends(&bench, &client, frame, || latch.count_down().wait());
    let error = counted.unwrap_err();
    assert_eq!((error.code(), error.is_outcome_unknown()), (Code::CONNECTION_LOSS, true));
    assert_eq!(latch.left().wait().unwrap(), 4);
}

/// Enters beside the test, on a client of its own.
fn enter(bench: &Bench, participants: u16) -> JoinHandle<Result<Entered>> {
    in_background(bench.direct().double_barrier(&bench.path, participants).enter())
}

/// The first of several participants, once it waits for word of a round: whoever comes last begins it.
fn enter_first(bench: &Bench, participants: u16) -> JoinHandle<Result<Entered>> {
    let client = bench.direct();
    let first = in_background(client.double_barrier(&bench.path, participants).enter());
    let is_watched = || bench.server.watches().unwrap().contains_key(&bench.path);
    eventually("it watches the round", is_watched);
    // Its listing was sent with that, and is answered before this.
    client.exists("/").wait().unwrap();
    first
}

fn there(bench: &Bench) -> usize {
    bench.ask(|raw| raw.children(&bench.path)).map_or(0, |names| names.len())
}

#[test]
fn participants_enter_together_and_leave_together_round_after_round() {
    let bench = Bench::shared();
    for _ in 0..3 {
        let first = [(); 2].map(|()| enter(&bench, 3));
        eventually("two are there", || there(&bench) == 2);
        expect_blocked(&first);
        let last = enter(&bench, 3);
        let entered = first.into_iter().chain([last]).map(|one| one.join().unwrap().unwrap());
        let mut entered: Vec<Entered> = entered.collect();
        let last = entered.pop().unwrap();
        let left: Vec<_> = entered.into_iter().map(|one| in_background(one.leave())).collect();
        expect_blocked(&left);
        last.leave().within(TIMEOUT).wait().unwrap();
        for one in left {
            one.join().unwrap().unwrap();
        }
        assert_eq!(there(&bench), 0);
    }
    for participants in [0, 31_001] {
        let error = bench.direct().double_barrier(&bench.path, participants).enter().wait();
        assert_eq!(error.unwrap_err().code(), Code::BAD_ARGUMENTS);
    }
}

#[test]
fn a_next_round_begins_only_when_all_of_the_one_before_have_left() {
    let bench = Bench::shared();
    let round = [(); 2].map(|()| enter(&bench, 2)).map(|one| one.join().unwrap().unwrap());
    let next = [(); 2].map(|()| enter(&bench, 2));
    eventually("all are there", || there(&bench) == 4);
    let [a, b] = round;
    let a = in_background(a.leave());
    expect_blocked(&next);
    assert!(!a.is_finished());
    drop(b);
    a.join().unwrap().unwrap();
    for one in next.map(|one| one.join().unwrap().unwrap()) {
        drop(one);
    }
    eventually("nobody is there", || there(&bench) == 0);
}

#[test]
fn no_more_enter_than_are_wanted_however_many_wait() {
    let bench = Bench::shared();
    let first = [(); 2].map(|()| enter(&bench, 2)).map(|one| one.join().unwrap().unwrap());
    let mut waiting: Vec<_> = (0..3).map(|_| enter(&bench, 2)).collect();
    eventually("all are there", || there(&bench) == 5);
    drop(first);
    eventually("two have entered", || waiting.iter().filter(|one| one.is_finished()).count() >= 2);
    let (entered, rest): (Vec<_>, Vec<_>) = waiting.drain(..).partition(JoinHandle::is_finished);
    assert_eq!((entered.len(), rest.len()), (2, 1));
    expect_blocked(&rest);
    let entered = entered.into_iter().map(|one| one.join().unwrap().unwrap());
    drop(entered.collect::<Vec<_>>());
    let another = enter(&bench, 2);
    for one in rest.into_iter().chain([another]) {
        drop(one.join().unwrap().unwrap());
    }
}

#[test]
fn of_two_who_begin_a_round_at_once_one_does() {
    let bench = Bench::shared();
    let late = bench.client().double_barrier(&bench.path, 2);
    let first = enter_first(&bench, 2);
    let naming = Rule::request(Op::SetData).path(bench.path.as_str()).once();
    let naming = bench.proxy.hold(naming);
    let late = in_background(late.enter());
    naming.wait_reached(TIMEOUT).unwrap();
    let faster = enter(&bench, 2).join().unwrap().unwrap();
    naming.release();
    eventually("another has entered", || first.is_finished() || late.is_finished());
    let (entered, waits) = if late.is_finished() { (late, first) } else { (first, late) };
    expect_blocked([&waits]);
    drop((faster, entered.join().unwrap().unwrap()));
    let another = enter(&bench, 2);
    for one in [waits, another] {
        drop(one.join().unwrap().unwrap());
    }
}

#[test]
fn who_gives_up_entering_is_not_counted() {
    let bench = Bench::shared();
    let client = bench.direct();
    is_late(client.double_barrier(&bench.path, 2).enter().within(SOON).wait());
    for polls in 0..4 {
        let mut entering = client.double_barrier(&bench.path, 2).enter();
        if polls > 0 {
            let mut more = 1..polls;
            poll_until(&mut entering, || more.next().is_none());
        }
    }
    // The server answers this after all requests that the client sent before.
    client.exists("/").wait().unwrap();
    eventually("nobody is there", || there(&bench) == 0);
    let one = enter(&bench, 2);
    expect_blocked([&one]);
    let other = enter(&bench, 2);
    let entered = [one, other].map(|one| one.join().unwrap().unwrap());
    // Those who leave do not wait for one that is gone.
    let [a, b] = entered;
    drop(a);
    b.leave().within(TIMEOUT).wait().unwrap();
}

#[test]
fn whatever_frame_is_lost_all_enter_and_all_leave() {
    for ops in
        [Ops::creates(), Op::GetData.into(), Op::SetData.into(), Ops::lists(), Op::Delete.into()]
    {
        for way in [Rule::request, Rule::reply] {
            let bench = Bench::shared();
            let other = enter_first(&bench, 2);
            let client = bench.client();
            let rule = way(ops.clone()).path_prefix(&bench.path).once();
            let lost = bench.proxy.on(rule, Action::Drop);
            let entering = client.double_barrier(&bench.path, 2).enter();
            let entered = entering.within(TIMEOUT).wait().unwrap();
            let other = in_background(other.join().unwrap().unwrap().leave());
            entered.leave().within(TIMEOUT).wait().unwrap();
            other.join().unwrap().unwrap();
            lost.wait_hits(1, TIMEOUT).unwrap();
            assert_eq!(there(&bench), 0, "{ops:?}");
        }
    }
}

#[test]
fn a_participant_whose_session_ends_waits_on_and_one_that_has_entered_has_left() {
    let bench = Bench::shared();
    let client = bench.client();
    let waiting = in_background(client.double_barrier(&bench.path, 2).enter());
    eventually("one is there", || there(&bench) == 1);
    let session = session_id(&client);
    bench.expire(&client);
    wait_for_another_session(&client, session);
    eventually("it is there again", || there(&bench) == 1);
    let other = enter(&bench, 2).join().unwrap().unwrap();
    let entered = waiting.join().unwrap().unwrap();
    bench.expire(&client);
    other.leave().within(TIMEOUT).wait().unwrap();
    entered.leave().within(TIMEOUT).wait().unwrap();
    assert_eq!(there(&bench), 0);
    let waiting = in_background(client.double_barrier(&bench.path, 2).enter());
    eventually("one is there", || there(&bench) == 1);
    client.close().wait().unwrap();
    assert!(waiting.join().unwrap().unwrap_err().is_session_over());
}

#[test]
fn a_participant_whose_session_ends_is_in_no_round_that_is_over_for_the_others() {
    let bench = Bench::shared();
    let client = bench.client();
    let late = in_background(client.double_barrier(&bench.path, 2).enter());
    let is_watched = || bench.server.watches().unwrap().contains_key(&bench.path);
    eventually("it watches the round", is_watched);
    let session = session_id(&client);
    bench.proxy.refuse();
    let entered = enter(&bench, 2).join().unwrap().unwrap();
    let left = in_background(entered.leave());
    expect_blocked([&left]);
    bench.expire(&client);
    left.join().unwrap().unwrap();
    bench.proxy.heal();
    wait_for_another_session(&client, session);
    eventually("it is there again", || there(&bench) == 1);
    expect_blocked([&late]);
    let another = enter(&bench, 2);
    for one in [late, another] {
        drop(one.join().unwrap().unwrap());
    }
}

#[test]
fn a_participant_in_a_new_session_does_not_count_its_znode_of_the_old_one() {
    let bench = Bench::shared();
    let client = bench.client();
    let waiting = in_background(client.double_barrier(&bench.path, 2).enter());
    eventually("one is there", || there(&bench) == 1);
    let session = session_id(&client);
    // What it may not delete has its session replaced, and the end of the old one is on its way for long.
    let forbidden = format!("{}-forbidden", bench.path);
    let acl = [Acl::new(Permissions::READ | Permissions::CREATE, "world", "anyone")];
    let other = bench.direct();
    other.create_with_acl(&forbidden, b"", CreateMode::Persistent, &acl).wait().unwrap();
    let end = bench.proxy.hold(Rule::request(Op::CloseSession));
    drop(client.lock(&forbidden).acquire().wait().unwrap());
    end.wait_reached(TIMEOUT).unwrap();
    wait_for_another_session(&client, session);
    expect_blocked([&waiting]);
    end.release();
    let other = enter(&bench, 2);
    for one in [waiting, other] {
        drop(one.join().unwrap().unwrap());
    }
}

#[test]
fn those_who_wait_for_the_next_round_look_again_once_this_one_is_over() {
    let bench = Bench::shared();
    let round = [(); 3].map(|()| enter(&bench, 3)).map(|one| one.join().unwrap().unwrap());
    let client = bench.client();
    let waiting = in_background(client.double_barrier(&bench.path, 3).enter());
    let watched = Rule::reply(Op::GetData).path_prefix(format!("{}/", bench.path));
    eventually("it waits for the last of the round", || bench.proxy.count(&watched) == 1);
    let looks = || bench.proxy.count(&Rule::request(Op::GetData).path(bench.path.as_str()));
    assert_eq!(looks(), 1);
    let leaving = round.map(|one| in_background(one.leave()));
    leaving.into_iter().for_each(|one| one.join().unwrap().unwrap());
    eventually("it waits for others", || looks() == 2);
    let others = [(); 2].map(|()| enter(&bench, 3));
    for one in others.into_iter().chain([waiting]) {
        drop(one.join().unwrap().unwrap());
    }
    assert_eq!(looks(), 3);
}

#[test]
fn a_waiting_participant_whose_znode_somebody_deletes_enters_all_the_same() {
    let bench = Bench::shared();
    let first = enter_first(&bench, 2);
    let znode = format!("{}/{}", bench.path, bench.children()[0]);
    bench.delete(&znode);
    let second = enter(&bench, 2);
    let entered = [first, second].map(|one| one.join().unwrap().unwrap());
    let leaving = entered.map(|one| in_background(one.leave()));
    leaving.into_iter().for_each(|one| one.join().unwrap().unwrap());
}

#[test]
fn a_latch_that_its_maker_may_not_count_down_is_made_all_the_same() {
    let bench = Bench::with_directory();
    let client = bench.direct();
    let world = |permissions| Acl::new(permissions, "world", "anyone");
    let acl = [world(Permissions::READ | Permissions::CREATE)];
    for n in 0..10 {
        let latch = client.latch(&format!("{}/{n}", bench.path)).acl(acl.clone());
        assert_eq!(latch.set(3).wait().unwrap(), 3);
        assert_eq!(latch.left().wait().unwrap(), 3);
    }
}
