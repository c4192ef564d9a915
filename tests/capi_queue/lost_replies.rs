//! Whatever frame is lost, an element is in the queue once, or was taken once.

use test_support::{TIMEOUT, eventually};
use zklock_testing::wire::{Op, Ops};
use zklock_testing::{Action, Rule, expire_session};

use crate::bench::Bench;
use crate::program::{Tool, element, empty, nothing};

const CONNECTION_LOSS: i32 = -4;
const OPERATION_TIMEOUT: i32 = -7;
const SESSION_EXPIRED: i32 = -112;

/// How a frame is lost.
const LOSSES: [fn() -> Action; 2] = [|| Action::Drop, || Action::Reset];
const WAYS: [fn(Ops) -> Rule; 2] = [Rule::request, Rule::reply];

/// The transaction with which an element of this queue is made, or taken.
fn transaction(bench: &Bench, way: fn(Ops) -> Rule) -> Rule {
    way(Op::Multi.into()).path_prefix(format!("{}/qn-", bench.path))
}

#[test]
fn an_offer_whose_frames_are_lost_makes_one_element() {
    let bench = Bench::shared();
    let mut reader = bench.direct();
    for loss in LOSSES {
        for way in WAYS {
            // The first transaction of a session makes the receipt, the second uses it.
            let mut tool = bench.tool();
            let what = format!("{:?} {:?}", way(Op::Multi.into()), loss());
            for data in [b"first", b"other"] {
                let lost = bench.proxy.on(transaction(&bench, way).once(), loss());
                assert_eq!(tool.offer(data), 0, "{what}");
                lost.wait_hits(1, TIMEOUT).unwrap();
                lost.remove();
                assert_eq!(reader.look("remove", 5), element(data), "{what}");
                assert_eq!(reader.remove(), empty(), "{what}");
            }
        }
    }
}

#[test]
fn a_removal_whose_frames_are_lost_takes_one_element_and_delivers_it() {
    let bench = Bench::shared();
    let mut writer = bench.direct();
    for how in ["remove", "take"] {
        for loss in LOSSES {
            for way in WAYS {
                let mut tool = bench.tool();
                let what = format!("{how} {:?} {:?}", way(Op::Multi.into()), loss());
                for data in [b"first", b"other"] {
                    assert_eq!([writer.offer(data), writer.offer(b"behind")], [0, 0]);
                    let lost = bench.proxy.on(transaction(&bench, way).once(), loss());
                    assert_eq!(tool.look(how, 10), element(data), "{what}");
                    lost.wait_hits(1, TIMEOUT).unwrap();
                    lost.remove();
                    assert_eq!(writer.remove(), element(b"behind"), "{what}");
                    assert_eq!(writer.remove(), empty(), "{what}");
                }
            }
        }
    }
}

#[test]
fn replies_that_are_lost_again_and_again_only_take_longer() {
    let bench = Bench::shared();
    let mut tool = bench.tool();
    let rule = transaction(&bench, Rule::reply);
    for _ in 0..3 {
        let lost: Vec<_> =
            (1..4).map(|n| bench.proxy.on(rule.clone().nth(n), Action::Drop)).collect();
        assert_eq!(tool.offer(b"x"), 0);
        assert_eq!(tool.remove(), element(b"x"));
        assert_eq!(tool.remove(), empty());
        let hits: u64 = lost.iter().map(zklock_testing::InstalledRule::hits).sum();
        assert_eq!(hits, 3, "as many transactions as are lost, and two that are not");
        lost.iter().for_each(zklock_testing::InstalledRule::remove);
    }
}

#[test]
fn an_element_that_another_took_while_the_reply_was_lost_is_not_delivered_twice() {
    let bench = Bench::shared();
    let (mut slow, mut fast) = (bench.tool(), bench.direct());
    slow.offer(b"contested");
    slow.offer(b"next");
    let mut racing = bench.direct();
    // The removal is lost on its way there, and before it is sent again another one is made.
    let (taken, take) = std::sync::mpsc::channel();
    let action = Action::run(move || taken.send(racing.look("remove", 100)).unwrap());
    let first = transaction(&bench, Rule::request).once();
    bench.proxy.on(first.clone(), action);
    bench.proxy.on(first, Action::Drop);
    assert_eq!(slow.look("remove", 100), element(b"next"));
    assert_eq!(take.recv().unwrap(), element(b"contested"));
    assert_eq!(fast.remove(), empty());
}

#[test]
fn a_removal_that_is_sent_again_takes_no_data_that_it_has_not_read() {
    let bench = Bench::shared();
    let (mut slow, mut raw) = (bench.tool(), bench.raw());
    slow.offer(b"old");
    let path = format!("{}/qn-0000000000", bench.path);
    let action = Action::run(move || {
        raw.set_data(&path, b"new").unwrap();
    });
    let first = transaction(&bench, Rule::request).once();
    let ran = bench.proxy.on(first.clone(), action);
    bench.proxy.on(first, Action::Drop);
    assert_eq!(slow.remove(), element(b"new"));
    ran.wait_hits(1, TIMEOUT).unwrap();
    assert_eq!(slow.remove(), empty());
}

#[test]
fn an_element_that_was_taken_with_a_lost_reply_is_delivered_although_another_looks_for_it() {
    let bench = Bench::shared();
    let (mut slow, mut fast) = (bench.tool(), bench.direct());
    slow.offer(b"ours");
    bench.proxy.on(transaction(&bench, Rule::reply).once(), Action::Drop);
    let seen = Rule::reply(Op::Multi).path_prefix(format!("{}/qn-0", bench.path));
    bench.proxy.clear_seen();
    slow.tell("remove 100");
    bench.proxy.wait_for(&seen, 1, TIMEOUT).unwrap();
    assert_eq!(fast.remove(), empty());
    assert_eq!(slow.hear_answer(), element(b"ours"));
}

/// Ends the program's session at the moment when the reply to its next transaction is lost.
fn expire_with_the_reply(bench: &Bench, session: (i64, [u8; 16])) {
    let hosts = bench.server.hosts();
    let rule = transaction(bench, Rule::reply).once();
    let expire = move || expire_session(&hosts, session.0, &session.1).unwrap();
    bench.proxy.on(rule.clone(), Action::run(expire));
    bench.proxy.on(rule, Action::Drop);
}

#[test]
fn an_offer_whose_session_ends_with_its_reply_is_unknown_and_says_so() {
    let bench = Bench::shared();
    let mut tool = bench.tool();
    tool.offer(b"first");
    let session = tool.session();
    expire_with_the_reply(&bench, session);
    assert_eq!(tool.offer(b"second"), CONNECTION_LOSS);
    let why = tool.ask("error");
    assert!(why.contains("unknown") && why.contains("/qn-"), "{why}");
    assert_eq!(bench.children().len(), 2);
}

#[test]
fn a_removal_whose_session_ends_with_its_reply_is_unknown_and_delivers_nothing() {
    let bench = Bench::shared();
    let mut tool = bench.tool();
    for data in [b"1", b"2", b"3"] {
        tool.offer(data);
    }
    assert_eq!(tool.remove(), element(b"1"));
    let session = tool.session();
    expire_with_the_reply(&bench, session);
    assert_eq!(tool.remove(), nothing(CONNECTION_LOSS, -1));
    let why = tool.ask("error");
    assert!(why.contains("/qn-0000000001"), "{why}");
    assert_eq!(bench.children(), ["qn-0000000002"]);
}

#[test]
fn a_session_that_is_over_does_nothing_and_says_so() {
    let bench = Bench::shared();
    let mut tool = bench.direct();
    tool.offer(b"x");
    let (id, password) = tool.session();
    expire_session(&bench.server.hosts(), id, &password).unwrap();
    for _ in 0..2 {
        let answer = tool.remove();
        assert!([SESSION_EXPIRED, -9].contains(&answer.code), "{answer:?}");
        assert_eq!(answer.length, -1);
        assert!([SESSION_EXPIRED, -9].contains(&tool.offer(b"y")));
    }
    assert_eq!(bench.children().len(), 1);
}

#[test]
fn a_take_that_waits_returns_when_its_session_is_over() {
    let bench = Bench::own();
    let mut tool = bench.direct();
    tool.offer(b"x");
    assert_eq!(tool.look("take", 10), element(b"x"));
    let (id, password) = tool.session();
    let watches = bench.server.stats().unwrap().watches;
    tool.tell("take 10");
    eventually("it watches", || bench.server.stats().unwrap().watches > watches);
    expire_session(&bench.server.hosts(), id, &password).unwrap();
    assert_eq!(tool.hear_answer(), nothing(SESSION_EXPIRED, -1));
}

#[test]
fn a_take_waits_through_a_lost_connection() {
    let bench = Bench::own();
    let (mut tool, mut writer) = (bench.tool(), bench.direct());
    tool.tell("take 10");
    let watches = Rule::reply(Ops::lists()).path(&bench.path).error(0);
    bench.proxy.wait_for(&watches, 1, TIMEOUT).unwrap();
    bench.proxy.refuse();
    assert_eq!(writer.offer(b"meanwhile"), 0);
    bench.proxy.heal();
    assert_eq!(tool.hear_answer(), element(b"meanwhile"));
}

#[test]
fn every_call_ends_also_when_no_server_can_be_reached() {
    let bench = Bench::shared();
    bench.proxy.refuse();
    let hosts = bench.proxy.hosts();
    let start = || Tool::with_session_timeout(&hosts, &bench.path, 1_000);
    let mut tools = [start(), start(), start(), start()];
    for (tool, what) in tools.iter_mut().zip(["offer 61", "element 5", "remove 5", "take 5"]) {
        tool.tell(what);
    }
    let [offers, lookers @ ..] = &mut tools;
    assert_eq!(offers.hear_code(), OPERATION_TIMEOUT);
    for tool in lookers {
        assert_eq!(tool.hear_answer(), nothing(OPERATION_TIMEOUT, -1));
    }
}

#[test]
fn what_was_sent_before_the_servers_went_out_of_reach_is_unknown() {
    let bench = Bench::own();
    let hosts = bench.proxy.hosts();
    let mut tool = Tool::with_session_timeout(&hosts, &bench.path, 1_000);
    assert_eq!(tool.offer(b"first"), 0);
    // The answer stands at the gate when the link is cut for good.
    let gate = bench.proxy.hold(transaction(&bench, Rule::reply));
    tool.tell_offer(b"second");
    gate.wait_reached(TIMEOUT).unwrap();
    bench.proxy.refuse();
    assert_eq!(tool.hear_code(), CONNECTION_LOSS);
    assert_eq!(bench.children().len(), 2);
}
