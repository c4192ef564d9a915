//! A queue whose elements are delivered at least once, and to one consumer at a time.

use std::sync::Mutex;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use test_support::{
    Bench, TIMEOUT, eventually, expect_blocked, options, poll_unless, session_id, states_until,
    wait_for_another_session,
};
use zklock::recipes::{Delivery, WorkQueue};
use zklock::zookeeper::SessionState;
use zklock::{Code, LockError, Pending};
use zklock_testing::wire::{Op, Ops};
use zklock_testing::{Action, Rule};

use crate::{LOSSES, around, while_its_session_ends};

const SOON: Duration = Duration::from_millis(150);

fn queue(bench: &Bench) -> WorkQueue {
    bench.direct().queue(&bench.path)
}

fn take(queue: &WorkQueue) -> Delivery {
    queue.take().within(TIMEOUT).wait().unwrap()
}

/// Whether somebody waits for an element.
fn is_watched(bench: &Bench) -> bool {
    bench.server.watches().unwrap().iter().any(|(path, _)| *path == bench.path)
}

fn in_background(queue: &WorkQueue) -> JoinHandle<Delivery> {
    let queue = queue.clone();
    thread::spawn(move || take(&queue))
}

/// Puts the element `a`. A consumer has taken it and given it back, so the directory of claims is there.
fn put_back_once(bench: &Bench) {
    let queue = queue(bench);
    queue.put("a").wait().unwrap();
    drop(take(&queue));
    expect_no_claim(bench);
}

/// All that can be taken now, in order; it is removed.
fn drain(queue: &WorkQueue) -> Vec<String> {
    let mut data = Vec::new();
    while let Some(delivery) = queue.try_take().wait().unwrap() {
        data.push(String::from_utf8(delivery.data().to_vec()).unwrap());
        delivery.done().wait().unwrap();
    }
    data
}

fn elements(bench: &Bench) -> usize {
    bench.ask(|raw| raw.children(&bench.path)).map_or(0, |names| names.len())
}

/// The paths of all claims.
fn claims(bench: &Bench) -> Vec<String> {
    let (above, name) = bench.path.rsplit_once('/').unwrap();
    let directory = format!("{above}/zl-claims-{name}");
    let names = bench.ask(|raw| raw.children(&directory)).unwrap_or_default();
    names.into_iter().map(|name| format!("{directory}/{name}")).collect()
}

fn expect_no_claim(bench: &Bench) {
    eventually("no claim is left", || claims(bench).is_empty());
}

#[test]
fn elements_are_delivered_by_priority_and_then_in_order() {
    let bench = Bench::shared();
    let queue = queue(&bench);
    assert!(queue.try_take().wait().unwrap().is_none(), "nobody has made it");
    assert_eq!(queue.peek().wait().unwrap(), None);
    for (priority, data) in [(128, "a"), (200, "last"), (1, "first"), (128, "b"), (1, "second")] {
        queue.put_with_priority(priority, data).wait().unwrap();
    }
    queue.put("").wait().unwrap();
    assert_eq!(queue.peek().wait().unwrap(), Some(b"first".to_vec()));
    // As a C program has put it, and something else.
    let foreign = format!("{}/qn-0000001000", bench.path);
    bench.ask(|raw| raw.create(&foreign, b"c")).unwrap();
    bench.ask(|raw| raw.create(&format!("{}/readme", bench.path), b"x")).unwrap();
    assert_eq!(drain(&self::queue(&bench)), ["first", "second", "a", "b", "", "c", "last"]);
    assert_eq!(elements(&bench), 1);
    expect_no_claim(&bench);
    let deep = bench.direct().queue(&format!("{}/a/b", bench.path));
    deep.put("x").wait().unwrap();
    assert_eq!(drain(&deep), ["x"]);
    for path in ["no/path", "/", "/zklock"] {
        let unusable = bench.direct().queue(path);
        assert_eq!(unusable.put("x").wait().unwrap_err().code(), Code::BAD_ARGUMENTS);
        assert_eq!(unusable.peek().wait().unwrap_err().code(), Code::BAD_ARGUMENTS);
        assert!(matches!(unusable.take().wait().unwrap_err(), LockError::Unusable { .. }));
    }
}

#[test]
fn what_is_claimed_is_left_out_and_delivered_again_when_it_is_given_back() {
    let bench = Bench::shared();
    let (queue, other) = (queue(&bench), queue(&bench));
    for data in ["a", "b"] {
        queue.put(data).wait().unwrap();
    }
    let (a, b) = (take(&queue), take(&other));
    assert_eq!((a.data(), b.data()), (b"a".as_slice(), b"b".as_slice()));
    assert!(other.try_take().wait().unwrap().is_none());
    let late = other.take().within(SOON).wait().unwrap_err();
    assert!(late.is_timeout(), "{late}");
    let waiting = in_background(&other);
    let (path, token) = (a.path().to_owned(), a.fencing_token());
    drop(a);
    let again = waiting.join().unwrap();
    assert_eq!((again.path(), again.data()), (path.as_str(), b"a".as_slice()));
    assert!(again.fencing_token() > token);
    b.done().wait().unwrap();
    again.done().wait().unwrap();
    assert_eq!(elements(&bench), 0);
    let waiting = in_background(&other);
    expect_blocked([&waiting]);
    queue.put("c").wait().unwrap();
    waiting.join().unwrap().done().wait().unwrap();
    expect_no_claim(&bench);
}

#[test]
fn an_element_whose_consumer_loses_its_session_is_delivered_to_another() {
    let bench = Bench::shared();
    let client = bench.client();
    let queue = queue(&bench);
    queue.put("a").wait().unwrap();
    let lost = take(&client.queue(&bench.path));
    let waiting = in_background(&queue);
    bench.expire(&client);
    let again = waiting.join().unwrap();
    assert_eq!(again.data(), b"a");
    eventually("it is lost", || lost.is_lost());
    assert!(lost.lost().get().is_some());
    let error = lost.done().wait().unwrap_err();
    assert!(matches!(error, LockError::NotHeld { .. }), "{error:?}");
    assert!(bench.exists(again.path()), "it is another's");
    again.done().wait().unwrap();
    assert_eq!(elements(&bench), 0);
}

#[test]
fn an_element_whose_frames_are_lost_is_put_once() {
    let bench = Bench::shared();
    let reader = queue(&bench);
    for loss in LOSSES {
        for way in [Rule::request, Rule::reply] {
            let queue = bench.client().queue(&bench.path);
            for data in ["first", "other"] {
                let rule = way(Ops::from(Op::Multi)).path_prefix(format!("{}/qn-", bench.path));
                let lost = bench.proxy.on(rule.once(), loss());
                queue.put(data).wait().unwrap();
                lost.wait_hits(1, TIMEOUT).unwrap();
                lost.remove();
                assert_eq!(drain(&reader), [data]);
            }
        }
    }
}

#[test]
fn a_claim_stays_when_the_look_after_it_is_lost() {
    let bench = Bench::shared();
    put_back_once(&bench);
    let consumer = bench.client().queue(&bench.path);
    let element = format!("{}/qn-", bench.path);
    let lost = bench.proxy.on(Rule::reply(Op::Exists).path_prefix(element).once(), Action::Drop);
    let delivery = take(&consumer);
    lost.wait_hits(1, TIMEOUT).unwrap();
    let claims = Rule::request(Ops::creates()).path_matching(|path| path.contains("/qn-"));
    assert_eq!(bench.proxy.count(&claims), 1);
    delivery.done().wait().unwrap();
}

#[test]
fn an_element_that_is_claimed_in_a_later_session_than_it_was_read_in_is_delivered() {
    let bench = Bench::shared();
    put_back_once(&bench);
    let client = bench.client();
    let queue = client.queue(&bench.path);
    let claim = Rule::request(Ops::creates()).path_prefix(around(&bench));
    let delivery = while_its_session_ends(&bench, &client, claim, || take(&queue));
    assert_eq!(delivery.data(), b"a");
    delivery.done().wait().unwrap();
    assert_eq!(elements(&bench), 0);
}

#[test]
fn a_take_without_a_limit_outlasts_the_operation_timeout_of_its_claim() {
    let bench = Bench::shared();
    put_back_once(&bench);
    let limit = Duration::from_secs(1);
    let client = options().operation_timeout(limit).connect(&bench.proxy.hosts()).wait().unwrap();
    let claim = Rule::request(Ops::creates()).path_prefix(around(&bench));
    let gate = bench.proxy.hold(claim.once());
    let taking = in_background(&client.queue(&bench.path));
    gate.wait_reached(TIMEOUT).unwrap();
    thread::sleep(limit * 2);
    assert!(!taking.is_finished());
    gate.release();
    let delivery = taking.join().unwrap();
    assert_eq!(delivery.data(), b"a");
    delivery.done().wait().unwrap();
}

#[test]
fn whatever_frame_is_lost_an_element_is_taken_and_removed_once() {
    for ops in
        [Ops::creates(), Ops::lists(), Op::GetData.into(), Op::Exists.into(), Op::Multi.into()]
    {
        for way in [Rule::request, Rule::reply] {
            for loss in LOSSES {
                let bench = Bench::shared();
                let (queue, other) = (queue(&bench), queue(&bench));
                for data in ["a", "b"] {
                    queue.put(data).wait().unwrap();
                }
                drop(take(&other));
                expect_no_claim(&bench);
                let consumer = bench.client().queue(&bench.path);
                let lost =
                    bench.proxy.on(way(ops.clone()).path_prefix(around(&bench)).once(), loss());
                let delivery = take(&consumer);
                assert_eq!(delivery.data(), b"a", "{ops:?}");
                let next = take(&other);
                assert_eq!(next.data(), b"b", "{ops:?}: a is claimed");
                delivery.done().wait().unwrap();
                assert_eq!(elements(&bench), 1, "{ops:?}");
                lost.wait_hits(1, TIMEOUT).unwrap();
                next.done().wait().unwrap();
                assert_eq!(elements(&bench), 0);
                expect_no_claim(&bench);
            }
        }
    }
}

#[test]
fn a_removal_whose_session_ends_before_its_reply_is_of_unknown_outcome() {
    let bench = Bench::shared();
    let client = bench.client();
    let queue = client.queue(&bench.path);
    queue.put("a").wait().unwrap();
    let delivery = take(&queue);
    let frame = Rule::reply(Op::Multi).path_prefix(&bench.path);
    let done = while_its_session_ends(&bench, &client, frame, || delivery.done().wait());
    let error = done.unwrap_err();
    assert!(error.is_outcome_unknown(), "{error:?}");
    assert_eq!(elements(&bench), 0, "it was removed");
}

#[test]
fn a_removal_in_doubt_stays_so_if_the_claim_is_lost_before_it_is_repeated() {
    let bench = Bench::shared();
    let queue = bench.client().queue(&bench.path);
    queue.put("a").wait().unwrap();
    let delivery = take(&queue);
    let removal = || Rule::request(Op::Multi).path_prefix(&bench.path);
    let lost = bench.proxy.on(removal().once(), Action::Reset);
    let again = bench.proxy.hold(removal().nth(2));
    let done = thread::spawn(|| delivery.done().wait());
    again.wait_reached(TIMEOUT).unwrap();
    assert_eq!(lost.hits(), 1);
    let [claim] = &claims(&bench)[..] else { panic!("one consumer") };
    bench.delete(claim);
    again.release();
    let error = done.join().unwrap().unwrap_err();
    assert!(error.is_outcome_unknown(), "{error:?}");
}

#[test]
fn a_removal_that_was_never_sent_was_not_done() {
    let bench = Bench::shared();
    let client = bench.client();
    let queue = client.queue(&bench.path);
    queue.put("a").wait().unwrap();
    let delivery = take(&queue);
    let mut states = client.states();
    bench.proxy.refuse();
    states_until(&mut states, SessionState::Suspended);
    let done = thread::spawn(|| delivery.done().wait());
    bench.expire(&client);
    bench.proxy.heal();
    let error = done.join().unwrap().unwrap_err();
    assert!(matches!(error, LockError::NotHeld { .. }), "{error:?}");
    assert_eq!(elements(&bench), 1, "it is delivered again");
}

#[test]
fn a_removal_for_which_there_is_no_room_is_sent_later() {
    let bench = Bench::untouched();
    let client = bench.direct();
    let queue = client.queue("/queue");
    queue.put("a").wait().unwrap();
    let delivery = take(&queue);
    bench.server.freeze().unwrap();
    let gets: Vec<_> = (0..20_000).map(|_| client.get("/")).collect();
    let done = delivery.done();
    bench.server.thaw().unwrap();
    let refused = |get: Pending<_>| get.wait().is_err_and(|e| e.code() == Code::THROTTLED_OP);
    assert!(gets.into_iter().map(refused).fold(false, |any, one| any | one));
    done.wait().unwrap();
    assert_eq!(client.children("/queue").wait().unwrap().names, Vec::<String>::new());
}

#[test]
fn many_consumers_that_give_back_now_and_then_finish_each_element_once() {
    const ELEMENTS: usize = 40;
    let bench = Bench::shared();
    let queue = queue(&bench);
    for number in 0..ELEMENTS {
        queue.put(number.to_string()).wait().unwrap();
    }
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for consumer in 0..4 {
            let (queue, done) = (self::queue(&bench), &done);
            scope.spawn(move || {
                let mut deliveries = 0;
                while done.lock().unwrap().len() < ELEMENTS {
                    let Some(delivery) = queue.try_take().wait().unwrap() else { continue };
                    deliveries += 1;
                    if (deliveries + consumer) % 3 == 0 {
                        drop(delivery);
                        continue;
                    }
                    let data = String::from_utf8(delivery.data().to_vec()).unwrap();
                    delivery.done().wait().unwrap();
                    done.lock().unwrap().push(data.parse::<usize>().unwrap());
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_unstable();
    assert_eq!(done, (0..ELEMENTS).collect::<Vec<_>>());
    assert_eq!(elements(&bench), 0);
    expect_no_claim(&bench);
}

#[test]
fn a_take_that_is_dropped_takes_nothing() {
    let bench = Bench::shared();
    let client = bench.client();
    let queue = client.queue(&bench.path);
    queue.put("a").wait().unwrap();
    for stop in 0..12 {
        // To requests for its claim, too.
        let replies = || bench.proxy.count(&Rule::reply(Ops::any()).path_prefix(around(&bench)));
        let before = replies();
        let mut taking = queue.take();
        poll_unless(&mut taking, || replies() >= before + stop);
        drop(taking);
        // The server answers this after all requests that the client sent before.
        client.exists("/").wait().unwrap();
        expect_no_claim(&bench);
    }
    assert_eq!(drain(&self::queue(&bench)), ["a"]);
    let waiting = queue.take();
    client.close().wait().unwrap();
    let error = waiting.wait().unwrap_err();
    assert!(matches!(error, LockError::Closed { .. }), "{error:?}");
}

#[test]
fn an_element_that_is_removed_between_a_read_and_a_claim_is_not_delivered() {
    let bench = Bench::shared();
    let (slow, fast) = (bench.client().queue(&bench.path), queue(&bench));
    fast.put("a").wait().unwrap();
    // The slow consumer has read the element and is about to claim it.
    let claim = bench.proxy.hold(Rule::request(Ops::creates()).path_prefix(around(&bench)));
    let taking = thread::spawn(move || slow.try_take().wait().unwrap());
    claim.wait_reached(TIMEOUT).unwrap();
    assert_eq!(drain(&fast), ["a"]);
    expect_no_claim(&bench);
    claim.release();
    assert!(taking.join().unwrap().is_none(), "it was done");
    expect_no_claim(&bench);
}

#[test]
fn an_element_that_is_changed_between_a_read_and_a_claim_is_delivered_as_it_is_by_then() {
    let bench = Bench::shared();
    let slow = bench.client().queue(&bench.path);
    slow.put("a").wait().unwrap();
    let claim = bench.proxy.hold(Rule::request(Ops::creates()).path_prefix(around(&bench)));
    let taking = in_background(&slow);
    claim.wait_reached(TIMEOUT).unwrap();
    let element = bench.ask(|raw| raw.children(&bench.path)).unwrap().remove(0);
    bench.ask(|raw| raw.set_data(&format!("{}/{element}", bench.path), b"b")).unwrap();
    claim.release();
    let delivery = taking.join().unwrap();
    assert_eq!(delivery.data(), b"b");
    delivery.done().wait().unwrap();
}

#[test]
fn what_another_program_does_to_an_element_that_is_claimed_is_reported() {
    let bench = Bench::shared();
    let queue = queue(&bench);
    for data in ["removed", "changed"] {
        queue.put(data).wait().unwrap();
    }
    let (removed, changed) = (take(&queue), take(&queue));
    bench.delete(removed.path());
    bench.ask(|raw| raw.set_data(changed.path(), b"other")).unwrap();
    assert_eq!(removed.done().wait().unwrap_err().code(), Code::NO_NODE);
    assert_eq!(changed.done().wait().unwrap_err().code(), Code::BAD_VERSION);
    let again = take(&queue);
    assert_eq!(again.data(), b"other");
    again.done().wait().unwrap();
}

#[test]
fn a_consumer_that_waits_goes_on_in_its_next_session() {
    let bench = Bench::shared();
    let client = bench.client();
    let waiting = in_background(&client.queue(&bench.path));
    eventually("it waits", || is_watched(&bench));
    let session = session_id(&client);
    bench.expire(&client);
    wait_for_another_session(&client, session);
    queue(&bench).put("a").wait().unwrap();
    assert_eq!(waiting.join().unwrap().data(), b"a");
}

#[test]
fn a_consumer_that_waits_lists_elements_and_claims_once_after_each_change() {
    let bench = Bench::with_directory();
    let client = bench.client();
    let consumer = in_background(&client.queue(&bench.path));
    let lists = Rule::reply(Ops::lists()).path_prefix(around(&bench));
    eventually("it waits", || bench.proxy.count(&lists) == 4);
    for change in 1..=3 {
        bench.raw().create(&format!("{}/no-element-{change}", bench.path), b"").unwrap();
        eventually("it has looked", || bench.proxy.count(&lists) >= 4 + 2 * change);
        client.exists("/").wait().unwrap();
        assert_eq!(bench.proxy.count(&lists), 4 + 2 * change);
    }
    bench.direct().queue(&bench.path).put("x").wait().unwrap();
    drop(consumer.join().unwrap());
}

#[test]
fn an_element_costs_one_request_to_put_five_to_take_and_three_to_remove() {
    let bench = Bench::shared();
    let queue = bench.client().queue(&bench.path);
    for _ in 0..2 {
        bench.proxy.clear_seen();
        queue.put("a").wait().unwrap();
        take(&queue).done().wait().unwrap();
        expect_no_claim(&bench);
    }
    let asked = crate::asked(&bench);
    assert_eq!(asked.len(), 9, "{asked:?}");
}
