//! A counter: each change is made once, or not at all, or is of unknown outcome and says so.

use std::collections::BTreeSet;
use std::thread;

use test_support::{Bench, TIMEOUT, options, poll_unless, shared};
use zklock::recipes::Counter;
use zklock::{Code, Error, Result};
use zklock_testing::wire::{Op, Ops};
use zklock_testing::{Action, Rule};

use crate::{LOSSES, asked, while_its_session_ends};

/// The transactions that change this counter.
fn changes(bench: &Bench, way: fn(Ops) -> Rule) -> Rule {
    way(Op::Multi.into()).path(bench.path.as_str())
}

fn counter(bench: &Bench) -> Counter {
    bench.client().counter(&bench.path)
}

fn value(bench: &Bench) -> i64 {
    bench.direct().counter(&bench.path).get().wait().unwrap()
}

fn code<T: std::fmt::Debug>(result: Result<T>) -> Code {
    result.unwrap_err().code()
}

#[test]
fn its_operations_are_those_of_an_atomic_number() {
    let bench = Bench::shared();
    let counter = bench.direct().counter(&bench.path);
    assert_eq!(counter.get().wait().unwrap(), 0, "nobody has made it");
    assert_eq!(counter.compare_and_set(1, 7).wait().unwrap(), 0, "it was not what is expected");
    assert!(!bench.exists(&bench.path));
    assert_eq!(counter.add(5).wait().unwrap(), 5);
    assert_eq!(counter.get_and_add(-7).wait().unwrap(), 5);
    assert_eq!(counter.compare_and_set(-2, i64::MAX).wait().unwrap(), -2);
    assert_eq!(code(counter.add(1).wait()), Code::BAD_ARGUMENTS);
    assert_eq!(counter.compare_and_set(-2, 0).wait().unwrap(), i64::MAX);
    counter.set(i64::MIN).wait().unwrap();
    assert_eq!(code(counter.get_and_add(-1).wait()), Code::BAD_ARGUMENTS);
    assert_eq!(counter.get().wait().unwrap(), i64::MIN);
    let data = bench.ask(|raw| raw.get_data(&bench.path)).unwrap();
    assert_eq!(data.0, i64::MIN.to_string().into_bytes(), "others can read it");
    // As others write it.
    bench.ask(|raw| raw.set_data(&bench.path, b"41")).unwrap();
    assert_eq!(counter.add(1).wait().unwrap(), 42);
    bench.ask(|raw| raw.set_data(&bench.path, b"")).unwrap();
    assert_eq!(counter.add(1).wait().unwrap(), 1);
    bench.ask(|raw| raw.set_data(&bench.path, b"1.5")).unwrap();
    assert_eq!(code(counter.get().wait()), Code::BAD_ARGUMENTS);
    assert_eq!(code(counter.set(1).wait()), Code::BAD_ARGUMENTS, "it is something else's znode");
}

#[test]
fn what_is_missing_above_it_is_made() {
    let bench = Bench::shared();
    let path = format!("{}/a/b", bench.path);
    assert_eq!(bench.direct().counter(&path).add(3).wait().unwrap(), 3);
    assert!(bench.exists(&path));
    assert_eq!(code(bench.direct().counter("no/path").add(3).wait()), Code::BAD_ARGUMENTS);
}

#[test]
fn who_adds_at_once_with_others_gets_a_number_of_its_own() {
    let bench = Bench::shared();
    let counters: Vec<Counter> =
        (0..4).map(|_| bench.direct().counter(&bench.path).retries(10_000)).collect();
    let adding = counters.into_iter().map(|counter| {
        let add = move |_| counter.get_and_add(1).wait().unwrap();
        thread::spawn(move || (0..20).map(add).collect::<Vec<_>>())
    });
    let adding: Vec<_> = adding.collect();
    let got: Vec<i64> = adding.into_iter().flat_map(|adds| adds.join().unwrap()).collect();
    let each: BTreeSet<i64> = got.iter().copied().collect();
    assert_eq!((got.len(), each), (80, (0..80).collect()));
    assert_eq!(value(&bench), 80);
}

#[test]
fn a_change_whose_frames_are_lost_is_made_once() {
    let bench = Bench::shared();
    let other = bench.direct().counter(&bench.path);
    let mut expected = 0;
    for loss in LOSSES {
        for way in [Rule::request, Rule::reply] {
            // The first transaction of a session makes its receipt, the second uses it.
            let counter = counter(&bench);
            let what = format!("{:?} {:?}", changes(&bench, way), loss());
            for _ in 0..2 {
                let lost = bench.proxy.on(changes(&bench, way).once(), loss());
                assert_eq!(counter.get_and_add(1).wait().unwrap(), expected, "{what}");
                lost.wait_hits(1, TIMEOUT).unwrap();
                lost.remove();
                expected += 1;
                assert_eq!(other.get().wait().unwrap(), expected, "{what}");
            }
            let lost = bench.proxy.on(changes(&bench, way).once(), loss());
            assert_eq!(counter.compare_and_set(expected, 0).wait().unwrap(), expected, "{what}");
            lost.wait_hits(1, TIMEOUT).unwrap();
            lost.remove();
            expected = 0;
            assert_eq!(other.get().wait().unwrap(), 0, "{what}");
        }
    }
}

#[test]
fn it_is_made_once_where_the_reply_to_that_is_lost() {
    for loss in LOSSES {
        for way in [Rule::request, Rule::reply] {
            let bench = Bench::shared();
            let counter = counter(&bench);
            let lost = bench.proxy.on(changes(&bench, way).once(), loss());
            assert_eq!(counter.add(7).wait().unwrap(), 7);
            lost.wait_hits(1, TIMEOUT).unwrap();
            assert_eq!(value(&bench), 7);
        }
    }
}

#[test]
fn a_change_whose_reply_is_lost_does_not_undo_what_came_after_it() {
    let bench = Bench::shared();
    let (counter, other) = (counter(&bench), bench.direct().counter(&bench.path));
    counter.set(1).wait().unwrap();
    let first = changes(&bench, Rule::reply).once();
    let add = Action::run(move || assert_eq!(other.add(10).wait().unwrap(), 15));
    bench.proxy.on(first.clone(), add);
    let lost = bench.proxy.on(first, Action::Drop);
    counter.set(5).wait().unwrap();
    lost.wait_hits(1, TIMEOUT).unwrap();
    assert_eq!(value(&bench), 15);
}

#[test]
fn a_change_that_another_was_faster_with_while_it_was_lost_is_made_on_top_of_that() {
    let bench = Bench::shared();
    let (counter, other) = (counter(&bench), bench.direct().counter(&bench.path));
    counter.set(1).wait().unwrap();
    let first = changes(&bench, Rule::request).once();
    let add = Action::run(move || assert_eq!(other.add(10).wait().unwrap(), 11));
    bench.proxy.on(first.clone(), add);
    let lost = bench.proxy.on(first, Action::Drop);
    assert_eq!(counter.get_and_add(1).wait().unwrap(), 11);
    lost.wait_hits(1, TIMEOUT).unwrap();
    assert_eq!(value(&bench), 12);
}

#[test]
fn one_that_was_deleted_and_made_anew_in_between_is_read_again() {
    let bench = Bench::shared();
    let counter = counter(&bench);
    bench.ask(|raw| raw.create(&bench.path, b"100")).unwrap();
    let (mut raw, path) = (bench.raw(), bench.path.clone());
    let anew = Action::run(move || {
        raw.delete(&path).unwrap();
        raw.create(&path, b"3").unwrap();
    });
    let first = changes(&bench, Rule::request).once();
    bench.proxy.on(first.clone(), anew);
    let lost = bench.proxy.on(first, Action::Drop);
    assert_eq!(counter.add(1).wait().unwrap(), 4);
    lost.wait_hits(1, TIMEOUT).unwrap();
    assert_eq!(value(&bench), 4);
}

#[test]
fn a_number_is_added_though_a_server_that_lags_behind_shows_one_that_is_too_large() {
    for before in [i64::MAX.to_string(), "no number".to_owned()] {
        let bench = Bench::with_directory();
        let (mut raw, path) = (bench.raw(), format!("{}/counter", bench.path));
        raw.create(&path, before.as_bytes()).unwrap();
        let old = bench.proxy.hold(Rule::reply(Op::GetData).path(path.as_str()).once());
        let counter = bench.client().counter(&path);
        let added = thread::spawn(move || counter.add(1).wait());
        old.wait_reached(TIMEOUT).unwrap();
        raw.delete(&path).unwrap();
        raw.create(&path, b"7").unwrap();
        old.release();
        assert_eq!(added.join().unwrap().unwrap(), 8);
    }
}

#[test]
fn a_change_is_not_said_to_be_made_where_only_its_receipt_was_used() {
    let bench = Bench::shared();
    let counter = counter(&bench);
    // The directory of receipts is there from now on.
    let other = bench.direct().counter(&format!("{}-other", bench.path));
    other.set(1).wait().unwrap();
    bench.ask(|raw| raw.create(&bench.path, b"100")).unwrap();
    let (mut raw, path) = (bench.raw(), bench.path.clone());
    let anew = Action::run(move || {
        raw.delete(&path).unwrap();
        raw.create(&path, b"3").unwrap();
    });
    let first = changes(&bench, Rule::request).once();
    bench.proxy.on(first.clone(), anew);
    let change = bench.proxy.on(first, Action::Drop);
    // How it ended is asked by a transaction of the receipt, which is executed, and whose reply is lost as well.
    let asked = Rule::reply(Op::Multi).path_prefix("/zklock/receipts").once();
    let asked = bench.proxy.on(asked, Action::Drop);
    let error = counter.add(1).wait().unwrap_err();
    assert!(error.code() == Code::CONNECTION_LOSS && error.is_outcome_unknown(), "{error}");
    change.wait_hits(1, TIMEOUT).unwrap();
    asked.wait_hits(1, TIMEOUT).unwrap();
    assert_eq!(value(&bench), 3);
    assert_eq!(other.get().wait().unwrap(), 1);
}

#[test]
fn a_change_whose_session_ends_before_its_reply_is_of_unknown_outcome_and_made_at_most_once() {
    for way in [Rule::request, Rule::reply] {
        let bench = Bench::shared();
        let client = bench.client();
        let counter = client.counter(&bench.path);
        counter.set(1).wait().unwrap();
        let frame = changes(&bench, way);
        let changed = while_its_session_ends(&bench, &client, frame, || counter.add(1).wait());
        let error = changed.unwrap_err();
        assert_eq!(error.code(), Code::CONNECTION_LOSS, "{error}");
        assert!(error.is_outcome_unknown());
        assert_eq!(value(&bench), if lost_on_its_way(way) { 1 } else { 2 });
        // The next session counts on.
        let before = counter.get_and_add(1).wait().unwrap();
        assert_eq!(value(&bench), before + 1);
    }
}

fn lost_on_its_way(way: fn(Ops) -> Rule) -> bool {
    format!("{:?}", way(Ops::any())) == format!("{:?}", Rule::request(Ops::any()))
}

#[test]
fn who_is_overtaken_again_and_again_gives_up_and_has_changed_nothing() {
    let bench = Bench::shared();
    let counter = counter(&bench).retries(3);
    counter.set(1).wait().unwrap();
    let (mut raw, path) = (bench.raw(), bench.path.clone());
    let mut others = 100;
    let faster = Action::run(move || {
        others += 1;
        raw.set_data(&path, others.to_string().as_bytes()).unwrap();
    });
    let overtaken = bench.proxy.on(changes(&bench, Rule::request), faster);
    let error: Error = counter.add(1).wait().unwrap_err();
    assert_eq!((error.code(), error.is_outcome_unknown()), (Code::BAD_VERSION, false), "{error}");
    assert_eq!((overtaken.hits(), value(&bench)), (4, 104));
}

#[test]
fn a_change_that_is_dropped_is_made_once_or_not_at_all() {
    let bench = Bench::shared();
    let counter = counter(&bench);
    counter.set(0).wait().unwrap();
    let mut most = 0;
    for polls in 0..6 {
        let mut adding = counter.add(1);
        most += 1;
        let mut polls = 0..polls;
        poll_unless(&mut adding, || polls.next().is_none());
    }
    // What was on its way is done before this.
    let last = counter.add(1).wait().unwrap();
    assert!((1..=most + 1).contains(&last), "{last}");
    assert_eq!(value(&bench), last);
}

#[test]
fn a_closed_client_changes_nothing() {
    let bench = Bench::shared();
    let client = bench.client();
    let counter = client.counter(&bench.path);
    counter.set(1).wait().unwrap();
    client.close().wait().unwrap();
    let error = counter.add(1).wait().unwrap_err();
    assert!(error.is_session_over(), "{error}");
    assert_eq!(value(&bench), 1);
}

#[test]
fn it_costs_two_requests_to_read_and_two_to_change() {
    let bench = Bench::shared();
    let counter = counter(&bench);
    counter.set(0).wait().unwrap();
    for (cost, expected) in [
        (|counter: &Counter| counter.get().wait().unwrap(), vec![Op::Sync, Op::GetData]),
        (|counter: &Counter| counter.add(1).wait().unwrap(), vec![Op::GetData, Op::Multi]),
    ] as [(fn(&Counter) -> i64, Vec<Op>); 2]
    {
        bench.proxy.clear_seen();
        cost(&counter);
        assert_eq!(asked(&bench), expected);
    }
}

#[test]
fn long_paths_make_no_difference() {
    let bench = Bench::with_directory();
    let client = bench.direct();
    for n in 0..10 {
        let path = format!("{}/{n}{}", bench.path, "x".repeat(20_000));
        assert_eq!(client.counter(&path).add(1).wait().unwrap(), 1);
    }
}

#[test]
fn below_a_chroot_that_is_missing_nothing_is_made() {
    let server = shared().hosts();
    let client = options().connect(&format!("{server}/nobody/made/this")).wait().unwrap();
    assert_eq!(code(client.counter("/a").add(1).wait()), Code::NO_NODE);
    assert_eq!(code(client.counter("/a/b").add(1).wait()), Code::NO_NODE);
    assert_eq!(code(client.group("/").join("x").within(TIMEOUT).wait()), Code::NO_NODE);
}
