//! Where receipts can be had, where not, and what a lost reply means there.

use test_support::{TIMEOUT, eventually};
use zklock_testing::wire::{Op, Ops};
use zklock_testing::{Action, Rule};

use crate::bench::Bench;
use crate::program::{Tool, element, empty, nothing};

const CONNECTION_LOSS: i32 = -4;
const NO_NODE: i32 = -101;
const NO_AUTH: i32 = -102;

/// The next offer's reply is lost on its way, and then the element is in the queue once.
fn expect_an_offer_to_survive_a_lost_reply(bench: &Bench, tool: &mut Tool, chroot: &str) {
    let reply = Rule::reply(Op::Multi).path_prefix(format!("{chroot}{}/qn-", bench.path));
    let lost = bench.proxy.on(reply.once(), Action::Drop);
    assert_eq!(tool.offer(b"once"), 0, "{}", tool.ask("error"));
    lost.wait_hits(1, TIMEOUT).unwrap();
    assert_eq!(tool.remove(), element(b"once"));
    assert_eq!(tool.remove(), empty());
}

#[test]
fn a_handle_with_a_chroot_has_its_receipts_below_it_too() {
    let bench = Bench::own();
    let mut raw = bench.raw();
    raw.create("/app", b"").unwrap();
    // An offer that first makes the queue's znode leaves its receipt in doubt, and the next one may take another.
    raw.create(&format!("/app{}", bench.path), b"").unwrap();
    let mut tool = Tool::start(&format!("{}/app", bench.proxy.hosts()), &bench.path);
    let transaction = Rule::reply(Op::Multi).path_prefix(format!("/app{}/qn-", bench.path));
    for _ in 0..2 {
        for answer in [true, false] {
            let lost = bench.proxy.on(transaction.clone().once(), Action::Drop);
            if answer {
                assert_eq!(tool.offer(b"x"), 0);
            } else {
                assert_eq!(tool.remove(), element(b"x"));
            }
            lost.wait_hits(1, TIMEOUT).unwrap();
            lost.remove();
        }
        assert_eq!(tool.remove(), empty());
    }
    assert_eq!(raw.children("/app/zklock/receipts").unwrap().len(), 1);
    assert!(raw.exists("/zklock").unwrap().is_none());
}

#[test]
fn where_receipts_are_forbidden_a_lost_reply_is_unknown_and_the_rest_works() {
    let bench = Bench::own();
    // Nothing can be made below it.
    let mut raw = bench.raw();
    raw.create_with("/zklock", b"", zklock_testing::wire::CreateMode::Ephemeral).unwrap();
    let mut tool = bench.tool();
    for data in [b"1", b"2", b"3"] {
        assert_eq!(tool.offer(data), 0);
    }
    assert_eq!(tool.look("take", 10), element(b"1"));
    let lose = |op| {
        let done = Rule::reply(op).path_prefix(format!("{}/qn-", bench.path)).error(0);
        bench.proxy.on(done.once(), Action::Drop)
    };
    let lost = lose(Op::Create2);
    assert_eq!(tool.offer(b"4"), CONNECTION_LOSS);
    lost.wait_hits(1, TIMEOUT).unwrap();
    let lost = lose(Op::Multi);
    assert_eq!(tool.remove(), nothing(CONNECTION_LOSS, -1));
    lost.wait_hits(1, TIMEOUT).unwrap();
    assert_eq!(tool.remove(), element(b"3"));
    raw.ping().unwrap();
}

#[test]
fn receipts_go_with_their_session_and_their_directory_after_them() {
    let builder = zklock_testing::Server::builder();
    let server = builder.container_check_interval(std::time::Duration::from_millis(200));
    let bench = Bench::with(server.start().unwrap());
    let mut tool = bench.direct();
    assert_eq!(tool.offer(b"x"), 0);
    assert_eq!(bench.raw().children("/zklock/receipts").unwrap().len(), 1);
    let mut raw = bench.raw();
    assert!(tool.leave());
    eventually("it is gone", || raw.exists("/zklock").unwrap().is_none());
}

#[test]
fn an_offer_before_the_handles_chroot_exists_costs_no_later_one_its_receipt() {
    let bench = Bench::own();
    let mut tool = Tool::start(&format!("{}/app", bench.proxy.hosts()), &bench.path);
    for _ in 0..4 {
        assert_eq!(tool.offer(b"early"), NO_NODE);
    }
    bench.raw().create("/app", b"").unwrap();
    expect_an_offer_to_survive_a_lost_reply(&bench, &mut tool, "/app");
}

/// Lets nobody but one identity write at `path`. The client is to be kept.
fn protect(bench: &Bench, path: &str) -> zklock::Client {
    let options = zklock::Client::options().auth("digest", IDENTITY);
    let owner = options.connect(&bench.server.hosts()).wait().unwrap();
    owner.make_path(path).wait().unwrap();
    let mut acl = zklock::zookeeper::Acl::read_only();
    acl.extend(zklock::zookeeper::Acl::creator());
    owner.set_acl(path, &acl, None).wait().unwrap();
    owner
}

const IDENTITY: &str = "receipts:secret";

#[test]
fn an_identity_that_comes_after_the_first_offers_brings_receipts() {
    let bench = Bench::own();
    let _owner = protect(&bench, "/zklock/receipts");
    // It is forbidden to make receipts at first, then to do anything.
    for (offers, code, forbidden) in [(1, 0, None), (6, NO_AUTH, Some(&bench.path))] {
        let _owner = forbidden.map(|path| {
            let owner = protect(&bench, path);
            for name in owner.children(path).wait().unwrap().names {
                owner.delete(&format!("{path}/{name}"), None).wait().unwrap();
            }
            owner
        });
        let mut tool = bench.tool();
        for _ in 0..offers {
            assert_eq!(tool.offer(b"early"), code);
        }
        assert_eq!(tool.ask(&format!("auth digest {IDENTITY}")), "0");
        while code == 0 && tool.remove() != empty() {}
        expect_an_offer_to_survive_a_lost_reply(&bench, &mut tool, "");
    }
}

#[test]
fn receipts_that_were_forbidden_for_long_are_had_soon_after_they_are_allowed() {
    let bench = Bench::own();
    let mut raw = bench.raw();
    raw.create_with("/zklock", b"", zklock_testing::wire::CreateMode::Ephemeral).unwrap();
    let mut tool = bench.tool();
    let tries = Rule::request(Ops::any()).path_prefix("/zklock/receipts");
    for _ in 0..100 {
        assert_eq!((tool.offer(b"x"), tool.remove()), (0, element(b"x")));
    }
    let tried = bench.proxy.count(&tries);
    assert!(tried < 100, "{tried} requests about receipts for 200 transactions");
    raw.delete("/zklock").unwrap();
    eventually("receipts", || {
        assert_eq!((tool.offer(b"x"), tool.remove()), (0, element(b"x")));
        raw.exists("/zklock/receipts").unwrap().is_some()
    });
    expect_an_offer_to_survive_a_lost_reply(&bench, &mut tool, "");
}

#[test]
fn a_queue_whose_znode_may_not_be_written_to_is_made_all_the_same() {
    let bench = Bench::shared();
    let mut tool = bench.tool();
    assert_eq!(tool.ask("narrow"), "ok");
    expect_an_offer_to_survive_a_lost_reply(&bench, &mut tool, "");
    assert_eq!(bench.raw().exists(&bench.path).unwrap().unwrap().version, 0);
}
