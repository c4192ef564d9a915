//! Receipts: what tells whether a change was made. Operations that are abandoned leave none behind.

use std::pin::Pin;
use std::task::{Context, Waker};

use test_support::{Bench, TIMEOUT, eventually, options, session_id};
use zklock::zookeeper::CreateMode;
use zklock::{Client, Code, Pending};
use zklock_testing::wire::{Op, Ops};
use zklock_testing::{Rule, Server};

use crate::LOSSES;

const DIRECTORY: &str = "/zklock/receipts";
/// How many a session keeps for its next operations.
const KEPT: usize = 64;

/// How many the client's session has.
fn receipts(bench: &Bench, client: &Client) -> usize {
    let session = session_id(client);
    let names = bench.ask(|raw| raw.children(DIRECTORY)).unwrap();
    let is_its = |name: &&String| bench.owner(&format!("{DIRECTORY}/{name}")) == Some(session);
    names.iter().filter(is_its).count()
}

type Operation = Pin<Box<dyn Future<Output = ()>>>;

fn without_result<T: 'static>(pending: Pending<T>) -> Operation {
    Box::pin(async { drop(pending.await) })
}

#[test]
fn a_burst_of_operations_leaves_no_more_receipts_than_a_session_keeps() {
    for are_abandoned in [true, false] {
        let bench = Bench::shared();
        let client = bench.direct();
        let queue = client.queue(&bench.path);
        queue.put("first").wait().unwrap();
        let burst: Vec<Pending<()>> = (0..200).map(|_| queue.put("x")).collect();
        if are_abandoned {
            drop(burst);
        } else {
            burst.into_iter().for_each(|put| put.wait().unwrap());
        }
        eventually("the burst is over", || {
            bench.ask(|raw| raw.children(&bench.path)).unwrap().len() == 201
        });
        eventually("the others are deleted", || receipts(&bench, &client) <= KEPT);
        assert_eq!(receipts(&bench, &client), KEPT, "abandoned: {are_abandoned}");
    }
}

#[test]
fn what_waited_to_be_sent_when_the_connection_was_lost_leaves_no_receipt_in_doubt() {
    // So many requests of a client are in flight at most.
    const IN_FLIGHT: usize = 512;
    let bench = Bench::shared();
    let client = bench.client();
    let queue = client.queue(&bench.path);
    queue.put("first").wait().unwrap();
    let gate = bench.proxy.hold(Rule::reply(Op::Multi).path_prefix(&bench.path).once());
    let burst: Vec<Pending<()>> = (0..3 * IN_FLIGHT).map(|_| queue.put("x")).collect();
    gate.wait_reached(TIMEOUT).unwrap();
    let sent = Rule::request(Op::Multi).path_prefix(&bench.path);
    eventually("no more are sent", || bench.proxy.count(&sent) >= IN_FLIGHT);
    bench.proxy.reset_all();
    gate.release();
    burst.into_iter().for_each(|put| put.wait().unwrap());
    eventually("the others are deleted", || receipts(&bench, &client) <= IN_FLIGHT + KEPT);
    let elements = bench.ask(|raw| raw.children(&bench.path)).unwrap().len();
    assert_eq!(elements, 3 * IN_FLIGHT + 1);
}

/// Whether the transaction is answered of which that frame was lost, or a later one with its receipt.
fn is_settled(bench: &Bench, lost: &Rule) -> bool {
    let mut seen = bench.proxy.seen();
    let Some(at) = seen.iter().position(|seen| lost.matches(seen)) else { return false };
    let after = seen.split_off(at + 1);
    let answered = Rule::reply(Op::Multi).path(seen[at].paths[0].as_str());
    after.iter().any(|seen| answered.matches(seen))
}

#[test]
fn what_is_abandoned_while_its_connection_is_cut_gives_its_receipt_back() {
    let bench = Bench::shared();
    let client = bench.client();
    let (queue, counter, latch) = (
        client.queue(&format!("{}-queue", bench.path)),
        client.counter(&format!("{}-counter", bench.path)),
        client.latch(&format!("{}-latch", bench.path)),
    );
    latch.set(1_000).wait().unwrap();
    counter.set(0).wait().unwrap();
    queue.put("first").wait().unwrap();
    let mut abandoned = 0;
    let operations: [(&str, &dyn Fn() -> Operation); 3] = [
        (queue.path(), &|| without_result(queue.put("x"))),
        (counter.path(), &|| without_result(counter.add(1))),
        (latch.path(), &|| without_result(latch.count_down())),
    ];
    for (path, operation) in operations {
        for loss in LOSSES {
            for way in [Rule::request, Rule::reply] as [fn(Ops) -> Rule; 2] {
                let frame = way(Op::Multi.into()).path_prefix(path);
                bench.proxy.clear_seen();
                let lost = bench.proxy.on(frame.clone().once(), loss());
                let mut under_way = operation();
                eventually("it is lost", || {
                    let mut nobody = Context::from_waker(Waker::noop());
                    // It can be done before the loss is counted.
                    under_way.as_mut().poll(&mut nobody).is_ready() || lost.hits() > 0
                });
                lost.wait_hits(1, TIMEOUT).unwrap();
                drop(under_way);
                abandoned += 1;
                eventually("it is settled", || is_settled(&bench, &frame));
            }
        }
    }
    // Two are in use where one is not back when the next operation begins.
    let left = receipts(&bench, &client);
    assert!(left <= abandoned / 2, "{left} of {abandoned} that were abandoned");
    // What was abandoned is done once, or not at all.
    let counted = counter.get().wait().unwrap();
    assert!((0..=4).contains(&counted), "{counted}");
    assert!((996..=1_000).contains(&latch.left().wait().unwrap()));
    let elements = bench.ask(|raw| raw.children(queue.path())).unwrap().len();
    assert!((1..=5).contains(&elements), "{elements}");
}

/// A counter works, and its changes are not in doubt as long as no reply is lost.
fn expect_to_count(client: &Client) {
    let counter = client.counter("/counter");
    for value in 1..=5 {
        assert_eq!(counter.add(1).wait().unwrap(), value);
    }
    let queue = client.queue("/queue");
    queue.put("x").wait().unwrap();
    assert_eq!(queue.peek().wait().unwrap().as_deref(), Some(&b"x"[..]));
}

#[test]
fn where_a_quota_forbids_receipts_changes_do_without() {
    let server = Server::builder().property("enforceQuota", "true").start().unwrap();
    let client = options().connect(&server.hosts()).wait().unwrap();
    let limits = format!("/zookeeper/quota{DIRECTORY}/zookeeper_");
    client.make_path(DIRECTORY).wait().unwrap();
    client.make_path(&format!("/zookeeper/quota{DIRECTORY}")).wait().unwrap();
    let none = b"count=-1,bytes=-1;countHardLimit=1;byteHardLimit=-1";
    for (name, data) in [("limits", &none[..]), ("stats", b"count=1,bytes=0")] {
        let path = format!("{limits}{name}");
        client.create(&path, data, CreateMode::Persistent).wait().unwrap();
    }
    let error = client.create(&format!("{DIRECTORY}/x"), b"", CreateMode::Ephemeral).wait();
    assert_eq!(error.unwrap_err().code(), Code::QUOTA_EXCEEDED);
    expect_to_count(&client);
}

#[test]
fn on_a_local_session_changes_do_without_receipts_until_it_is_a_global_one() {
    for becomes_global in [false, true] {
        let builder = Server::builder().property("localSessionsEnabled", "true");
        let upgrading = ("localSessionsUpgradingEnabled", becomes_global.to_string());
        let ensemble = builder.property(upgrading.0, upgrading.1).start_ensemble(3).unwrap();
        let client = options().connect(&ensemble.hosts()).wait().unwrap();
        expect_to_count(&client);
        let acquired = client.lock("/lock").acquire().within(TIMEOUT).wait();
        if !becomes_global {
            let error = acquired.unwrap_err();
            assert_eq!(error.code(), Code::EPHEMERAL_ON_LOCAL_SESSION);
            assert!(error.to_string().contains("localSessionsUpgradingEnabled"), "{error}");
            continue;
        }
        eventually("receipts are tried again", || {
            client.counter("/global").add(1).wait().unwrap();
            client.children(DIRECTORY).wait().is_ok_and(|there| !there.names.is_empty())
        });
    }
}
