//! What programs written against the C recipe count on, and what the recipe did wrong.

use test_support::{TIMEOUT, scaled};
use zklock_testing::Rule;
use zklock_testing::wire::{CreateMode, Op, Ops};

use crate::bench::Bench;
use crate::program::{Tool, element, empty, nothing};

pub const MARSHALLING_ERROR: i32 = -5;
const NO_NODE: i32 = -101;

#[test]
fn elements_come_in_the_order_of_their_offers_and_unchanged() {
    let bench = Bench::shared();
    let (mut first, mut second) = (bench.direct(), bench.direct());
    let data: [&[u8]; 4] = [b"one", &[0, 255, 0], &[7; 1_000], b"last"];
    for data in data {
        assert_eq!(first.offer(data), 0);
    }
    for data in data {
        assert_eq!(first.look("element", 1_000), element(data));
        assert_eq!(second.look("element", 1_000), element(data));
        assert_eq!(second.look("take", 1_000), element(data));
    }
    assert_eq!(first.remove(), empty());
    assert_eq!(first.ask("fields"), "right");
}

#[test]
fn an_empty_queue_and_one_that_does_not_exist_have_length_minus_one() {
    let bench = Bench::shared();
    let mut tool = bench.direct();
    for how in ["element", "remove"] {
        assert_eq!(tool.look(how, 10), empty(), "{how}");
    }
    bench.raw().create(&bench.path, b"").unwrap();
    for how in ["element", "remove"] {
        assert_eq!(tool.look(how, 10), empty(), "{how}");
    }
}

#[test]
fn an_element_without_data_is_an_element() {
    let bench = Bench::shared();
    let mut tool = bench.direct();
    for offered in ["null", "empty"] {
        for how in ["remove", "take"] {
            assert_eq!(tool.ask(&format!("offer {offered}")), "0");
            // Fits into no buffer at all.
            assert_eq!(tool.look("element", 0), element(b""), "{offered}");
            assert_eq!(tool.look(how, 0), element(b""), "{offered}");
            assert_eq!(tool.remove(), empty(), "{offered}");
        }
    }
}

#[test]
fn a_buffer_too_small_neither_removes_nor_cuts_the_element() {
    let bench = Bench::shared();
    let mut tool = bench.direct();
    tool.offer(b"0123456789");
    for how in ["element", "remove", "take"] {
        for size in [0, 1, 9] {
            assert_eq!(tool.look(how, size), nothing(MARSHALLING_ERROR, 10), "{how} {size}");
        }
    }
    assert!(tool.ask("error").contains("10 bytes"));
    assert_eq!(tool.look("take", 10), element(b"0123456789"));
}

#[test]
fn foreign_children_are_neither_taken_nor_counted() {
    let bench = Bench::shared();
    let mut tool = bench.direct();
    let mut raw = bench.raw();
    raw.create(&bench.path, b"").unwrap();
    let foreign = ["aa", "qn-", "qn-000000000x", "qn-1", "x-0000000001", "zz"];
    for name in foreign {
        raw.create(&format!("{}/{name}", bench.path), b"foreign").unwrap();
    }
    assert_eq!(tool.look("element", 1_000), empty());
    assert_eq!(tool.remove(), empty());
    tool.tell("take 1000");
    let mut other = bench.direct();
    assert_eq!(other.offer(b"own"), 0);
    assert_eq!(tool.hear_answer(), element(b"own"));
    assert_eq!(bench.children(), foreign);
}

#[test]
fn elements_of_an_old_producer_are_taken_and_ours_look_like_its_own() {
    let bench = Bench::shared();
    let mut tool = bench.direct();
    let mut raw = bench.raw();
    raw.create(&bench.path, b"").unwrap();
    let prefix = format!("{}/qn-", bench.path);
    raw.create_with(&prefix, b"old", CreateMode::PersistentSequential).unwrap();
    assert_eq!(tool.offer(b"new"), 0);
    assert_eq!(bench.children(), ["qn-0000000000", "qn-0000000001"]);
    assert_eq!(tool.look("take", 10), element(b"old"));
    let path = format!("{prefix}0000000001");
    let (data, stat) = raw.get_data(&path).unwrap();
    assert_eq!((data.as_slice(), stat.ephemeral_owner), (b"new".as_slice(), 0));
    raw.delete(&path).unwrap();
    assert_eq!(tool.remove(), empty());
}

#[test]
fn a_consumer_that_knew_of_many_elements_finds_those_that_came_after_others_took_them() {
    let bench = Bench::shared();
    let (mut idle, mut busy) = (bench.direct(), bench.direct());
    for number in 0..60_u8 {
        assert_eq!(busy.offer(&[number]), 0);
    }
    assert_eq!(idle.remove(), element(&[0]));
    for number in 1..60 {
        assert_eq!(busy.remove(), element(&[number]));
    }
    assert_eq!(busy.offer(b"after"), 0);
    assert_eq!(idle.remove(), element(b"after"));
}

#[test]
fn who_loses_an_element_to_another_gets_the_next_with_the_whole_buffer() {
    let bench = Bench::shared();
    let (mut slow, mut fast) = (bench.tool(), bench.direct());
    slow.offer(b"short");
    slow.offer(&[9; 900]);
    // What it has read is taken by another before its own removal arrives.
    let deletion = Rule::request(Ops::any()).path(format!("{}/qn-0000000000", bench.path));
    let gate = bench.proxy.hold(deletion.containing(zklock_testing::wire::Op::Delete));
    slow.tell("remove 1000");
    gate.wait_reached(TIMEOUT).unwrap();
    assert_eq!(fast.look("remove", 5), element(b"short"));
    gate.release();
    assert_eq!(slow.hear_answer(), element(&[9; 900]));
    assert_eq!(fast.remove(), empty());
}

#[test]
fn an_element_that_is_rewritten_under_its_removal_comes_with_its_new_data() {
    for how in ["remove", "take"] {
        let bench = Bench::shared();
        let (mut slow, mut raw) = (bench.tool(), bench.raw());
        assert_eq!(slow.offer(b"old"), 0);
        let rewritten = format!("{}/qn-0000000000", bench.path);
        let deletion = Rule::request(Ops::any()).path(&rewritten).containing(Op::Delete);
        let gate = bench.proxy.hold(deletion.once());
        slow.tell(&format!("{how} 10"));
        gate.wait_reached(TIMEOUT).unwrap();
        raw.set_data(&rewritten, b"new").unwrap();
        gate.release();
        assert_eq!(slow.hear_answer(), element(b"new"), "{how}");
        assert_eq!(slow.remove(), empty(), "{how}");

        // Longer than the buffer by then, it stays.
        assert_eq!(slow.offer(b"short"), 0);
        let rewritten = format!("{}/qn-0000000001", bench.path);
        let deletion = Rule::request(Ops::any()).path(&rewritten).containing(Op::Delete);
        let gate = bench.proxy.hold(deletion.once());
        slow.tell(&format!("{how} 10"));
        gate.wait_reached(TIMEOUT).unwrap();
        raw.set_data(&rewritten, &[7; 900]).unwrap();
        gate.release();
        assert_eq!(slow.hear_answer(), nothing(MARSHALLING_ERROR, 900), "{how}");
        assert_eq!(slow.look(how, 900), element(&[7; 900]), "{how}");
    }
}

#[test]
fn two_consumers_with_buffers_of_different_sizes_cut_nothing_and_lose_nothing() {
    let bench = Bench::shared();
    let mut producer = bench.direct();
    let offered: Vec<Vec<u8>> =
        (0..100_u8).map(|n| vec![n; if n % 3 == 0 { 600 } else { 6 }]).collect();
    let consume = |size: usize| {
        let mut tool = bench.direct();
        std::thread::spawn(move || {
            let mut taken = Vec::new();
            while taken.last().is_none_or(|last| last != b"end") {
                let answer = tool.look("take", size);
                if answer.code == MARSHALLING_ERROR {
                    // The other one's. It is told how much it would take.
                    assert_eq!((answer.length, size), (600, 10));
                } else {
                    assert_eq!(answer.code, 0);
                    taken.push(answer.data);
                }
            }
            taken
        })
    };
    let consumers = [consume(10), consume(1_000)];
    for data in &offered {
        assert_eq!(producer.offer(data), 0);
    }
    assert_eq!([producer.offer(b"end"), producer.offer(b"end")], [0, 0]);
    let mut taken: Vec<Vec<u8>> =
        consumers.into_iter().flat_map(|consumer| consumer.join().unwrap()).collect();
    taken.retain(|data| data != b"end");
    taken.sort();
    assert_eq!(taken, offered);
}

#[test]
fn an_offer_takes_one_round_trip_and_a_removal_after_another_two() {
    let bench = Bench::shared();
    let mut tool = bench.tool();
    for _ in 0..3 {
        tool.offer(b"x");
    }
    tool.remove();
    let ours = |ops: Ops| Rule::request(ops).path_prefix(&bench.path);
    bench.proxy.clear_seen();
    tool.offer(b"x");
    assert_eq!(bench.proxy.count(&ours(Ops::any())), 1);
    bench.proxy.clear_seen();
    // The queue and its first element are read at once.
    let gate = bench.proxy.hold(Rule::reply(Ops::any()).path(&bench.path).once());
    tool.tell("remove 10");
    gate.wait_reached(TIMEOUT).unwrap();
    bench.proxy.wait_for(&ours(Op::GetData.into()), 1, TIMEOUT).unwrap();
    gate.release();
    assert_eq!(tool.hear_answer(), element(b"x"));
    assert_eq!(bench.proxy.count(&ours(Ops::any())), 3);
}

#[test]
fn a_take_that_waits_sends_nothing() {
    let bench = Bench::shared();
    let mut tool = Tool::with_session_timeout(&bench.proxy.hosts(), &bench.path, 5_000);
    bench.raw().create(&bench.path, b"").unwrap();
    tool.tell("take 10");
    let listed = Rule::reply(Ops::lists()).path(&bench.path);
    bench.proxy.wait_for(&listed, 1, TIMEOUT).unwrap();
    // Only that the session lives is asked for meanwhile.
    bench.proxy.clear_seen();
    bench.proxy.wait_for(&Rule::request(Op::Sync), 2, TIMEOUT).unwrap();
    assert_eq!(bench.proxy.count(&Rule::request(Ops::any()).path_prefix(&bench.path)), 0);
    assert_eq!(bench.direct().offer(b"x"), 0);
    assert_eq!(tool.hear_answer(), element(b"x"));
}

#[test]
fn a_queue_needs_its_parent_and_makes_nothing_else() {
    let bench = Bench::shared();
    let path = format!("{}/below/it", bench.path);
    let mut tool = Tool::start(&bench.server.hosts(), &path);
    assert_eq!(tool.offer(b"x"), NO_NODE);
    assert_eq!(tool.look("take", 10), nothing(NO_NODE, -1));
    assert!(tool.ask("error").contains(&path));
    assert!(bench.raw().exists(&bench.path).unwrap().is_none());
}

#[test]
fn what_is_remembered_of_queues_does_not_grow_with_their_number() {
    let bench = Bench::shared();
    let mut tool = bench.direct();
    let mut look_at =
        |others: usize| tool.ask(&format!("paths {others}")).parse::<usize>().unwrap();
    // Up to 2,048 unused ones are kept.
    let others = scaled(2_200, 10_000);
    let few = look_at(2_200);
    let many = look_at(others);
    assert!(few > 0 && many > 0, "a look failed");
    let more = many.saturating_sub(few);
    assert!(more < others * 50, "{more} bytes more");
}
