//! How large an element can be: what the servers take, as without zklock.

use test_support::TIMEOUT;
use zklock_testing::wire::{Op, Ops};
use zklock_testing::{Action, Rule, Server};

use crate::bench::Bench;
use crate::program::{Tool, element, empty, nothing};

const CONNECTION_LOSS: i32 = -4;
const BAD_ARGUMENTS: i32 = -8;

/// The most bytes in a request, unless the servers' jute.maxbuffer says otherwise.
const USUAL: usize = 0xf_ffff;

/// How many bytes of data a lone create of an element has room for, in a request of that length.
fn room(bench: &Bench, request: usize) -> usize {
    const HEADER: usize = 8;
    const LENGTHS_AND_FLAGS: usize = 4 * 4;
    // Permissions, "world", "anyone".
    const OPEN_ACL: usize = 4 + 4 + 5 + 4 + 6;
    request - HEADER - LENGTHS_AND_FLAGS - OPEN_ACL - bench.path.len() - "/qn-".len()
}

fn expect_offer_and_removal(tool: &mut Tool, size: usize) {
    let data = vec![7; size];
    assert_eq!(tool.offer(&data), 0, "{size}: {}", tool.ask("error"));
    assert_eq!(tool.look("remove", size - 1), nothing(-5, i32::try_from(size).unwrap()));
    assert!(tool.look("remove", size) == element(&data), "{size}");
    assert_eq!(tool.remove(), empty());
}

#[test]
fn elements_may_be_as_large_as_the_servers_take_and_no_larger() {
    let bench = Bench::shared();
    let mut tool = bench.tool();
    let most = room(&bench, USUAL);
    // With a receipt, and without.
    for size in [most - 1_000, most - 600, most - 100, most - 1, most] {
        expect_offer_and_removal(&mut tool, size);
    }
    for size in [most + 1, USUAL + 1_000_000] {
        let sent = Rule::request(Ops::any()).containing(Op::Create);
        bench.proxy.clear_seen();
        assert_eq!(tool.offer(&vec![7; size]), BAD_ARGUMENTS);
        let why = tool.ask("error");
        assert!(why.contains("jute.maxbuffer"), "{why}");
        let tries = bench.proxy.count(&sent);
        assert!(tries < 5, "sent {tries} times");
    }
    assert!(bench.children().is_empty());
    assert_eq!((tool.offer(b"x"), tool.remove()), (0, element(b"x")));
}

#[test]
fn an_element_without_room_for_a_receipt_is_unknown_when_its_reply_is_lost() {
    let bench = Bench::shared();
    let mut tool = bench.tool();
    bench.raw().create(&bench.path, b"").unwrap();
    let most = room(&bench, USUAL);
    let reply = || Rule::reply(Ops::any()).path_prefix(format!("{}/qn-", bench.path)).once();
    for (room, code) in [(0, CONNECTION_LOSS), (700, 0)] {
        let lost = bench.proxy.on(reply(), Action::Drop);
        assert_eq!(tool.offer(&vec![7; most - room]), code);
        lost.wait_hits(1, TIMEOUT).unwrap();
        assert_eq!(bench.children().len(), 1);
        assert_eq!(tool.look("remove", most).code, 0);
    }
}

#[test]
fn where_servers_take_more_elements_may_be_larger_and_a_lost_reply_costs_none() {
    let server = Server::builder().jvm_arg("-Djute.maxbuffer=1900000").start().unwrap();
    let bench = Bench::with(server);
    let mut tool = bench.tool();
    expect_offer_and_removal(&mut tool, room(&bench, USUAL) + 1);
    let size = room(&bench, 1_900_000) - 200;
    expect_offer_and_removal(&mut tool, size);
    let reply = Rule::reply(Op::Multi).path_prefix(format!("{}/qn-", bench.path));
    let lost = bench.proxy.on(reply.once(), Action::Drop);
    expect_offer_and_removal(&mut tool, size);
    lost.wait_hits(1, TIMEOUT).unwrap();
    assert_eq!(tool.offer(&vec![7; 1_900_000]), BAD_ARGUMENTS);
}

#[test]
fn where_servers_take_less_the_error_says_so() {
    let server = Server::builder().jvm_arg("-Djute.maxbuffer=200000").start().unwrap();
    let bench = Bench::with(server);
    let mut tool = bench.tool();
    expect_offer_and_removal(&mut tool, 190_000);
    assert_eq!(tool.offer(&vec![7; 200_000]), BAD_ARGUMENTS);
    let why = tool.ask("error");
    assert!(why.contains("jute.maxbuffer"), "{why}");
    assert_eq!((tool.offer(b"x"), tool.remove()), (0, element(b"x")));
}

#[test]
fn a_long_chroot_leaves_no_element_without_a_way() {
    let bench = Bench::shared();
    let chroot = format!("/chroot-{}", "x".repeat(200));
    bench.raw().create(&chroot, b"").unwrap();
    let mut tool = Tool::start(&format!("{}{chroot}", bench.proxy.hosts()), &bench.path);
    let most = room(&bench, USUAL) - chroot.len();
    for size in [most - 1_000, most - 400, most - 200, most] {
        expect_offer_and_removal(&mut tool, size);
    }
}
