//! A queue whose znode is deleted and made again, and elements that come back under their old names:
//! nothing that was known of the old ones counts for the new.

use test_support::TIMEOUT;
use zklock_testing::wire::{Op, Ops, RawClient};
use zklock_testing::{Action, Rule};

use crate::bench::Bench;
use crate::program::{element, empty};

/// Deletes the queue's znode with all its elements.
fn delete(bench: &Bench, raw: &mut RawClient) {
    for name in raw.children(&bench.path).unwrap() {
        raw.delete(&format!("{}/{name}", bench.path)).unwrap();
    }
    raw.delete(&bench.path).unwrap();
}

#[test]
fn a_queue_that_was_made_anew_is_taken_in_order() {
    // Short ones are listed for each element, long ones are not.
    for many in [9, 200_u8] {
        let bench = Bench::shared();
        let (mut consumer, mut producer) = (bench.direct(), bench.direct());
        for number in 0..many {
            assert_eq!(producer.offer(&[b'a', number]), 0);
        }
        for number in 0..5 {
            assert_eq!(consumer.remove(), element(&[b'a', number]));
        }
        delete(&bench, &mut bench.raw());
        for number in 0..many {
            assert_eq!(producer.offer(&[b'b', number]), 0);
        }
        for number in 0..many {
            assert_eq!(consumer.remove(), element(&[b'b', number]), "of {many}");
        }
        assert_eq!(consumer.remove(), empty());
    }
}

#[test]
fn an_element_that_was_put_back_under_its_old_name_is_the_first_again() {
    let bench = Bench::shared();
    let (mut consumer, mut producer) = (bench.direct(), bench.direct());
    for number in 0..5 {
        assert_eq!(producer.offer(&[number]), 0);
    }
    assert_eq!(consumer.remove(), element(&[0]));
    assert_eq!(consumer.remove(), element(&[1]));
    bench.raw().create(&format!("{}/qn-0000000000", bench.path), b"back").unwrap();
    assert_eq!(consumer.look("element", 10), element(b"back"));
    assert_eq!(consumer.remove(), element(b"back"));
    assert_eq!(consumer.remove(), element(&[2]));
}

#[test]
fn in_a_long_queue_an_element_that_was_put_back_is_first_again_soon() {
    let bench = Bench::shared();
    let (mut consumer, mut producer) = (bench.direct(), bench.direct());
    for number in 0..250 {
        assert_eq!(producer.offer(&[number]), 0);
    }
    assert_eq!(consumer.remove(), element(&[0]));
    bench.raw().create(&format!("{}/qn-0000000000", bench.path), b"back").unwrap();
    let taken: Vec<_> = (0..10).map(|_| consumer.remove()).collect();
    assert!(
        taken.contains(&element(b"back")),
        "a listing for every 64 names is worth it: {taken:?}"
    );
}

#[test]
fn a_removal_that_is_sent_again_takes_no_other_element_of_that_name() {
    let bench = Bench::shared();
    let mut slow = bench.tool();
    // Made by others, so nothing of ours tells the two queues apart.
    bench.raw().create(&bench.path, b"").unwrap();
    assert_eq!(slow.offer(b"old"), 0);
    let (mut fast, mut raw) = (bench.direct(), bench.raw());
    let path = bench.path.clone();
    let action = Action::run(move || {
        assert_eq!(fast.remove(), element(b"old"));
        raw.delete(&path).unwrap();
        raw.create(&path, b"").unwrap();
        assert_eq!(fast.offer(b"new"), 0);
    });
    let first = Rule::request(Op::Multi).path_prefix(format!("{}/qn-", bench.path)).once();
    let ran = bench.proxy.on(first.clone(), action);
    bench.proxy.on(first, Action::Drop);
    assert_eq!(slow.remove(), element(b"new"));
    ran.wait_hits(1, TIMEOUT).unwrap();
    assert_eq!(slow.remove(), empty());
}

#[test]
fn a_removal_whose_reply_was_lost_delivers_although_another_element_has_the_name_by_now() {
    let bench = Bench::shared();
    let (mut slow, mut fast, mut raw) = (bench.tool(), bench.direct(), bench.raw());
    raw.create(&bench.path, b"").unwrap();
    assert_eq!(slow.offer(b"old"), 0);
    let path = bench.path.clone();
    let action = Action::run(move || {
        raw.delete(&path).unwrap();
        raw.create(&path, b"").unwrap();
        assert_eq!(fast.offer(b"new"), 0);
    });
    let reply = Rule::reply(Op::Multi).path_prefix(format!("{}/qn-", bench.path)).once();
    let ran = bench.proxy.on(reply.clone(), action);
    bench.proxy.on(reply, Action::Drop);
    assert_eq!(slow.remove(), element(b"old"));
    ran.wait_hits(1, TIMEOUT).unwrap();
    assert_eq!(slow.remove(), element(b"new"));
    assert_eq!(slow.remove(), empty());
}

#[test]
fn a_removal_that_comes_late_takes_no_other_element_of_that_name() {
    let bench = Bench::shared();
    let (mut slow, mut fast, mut raw) = (bench.tool(), bench.direct(), bench.raw());
    assert_eq!(fast.offer(b"old"), 0);
    let before = raw.exists(&bench.path).unwrap().unwrap();
    let removal = Rule::request(Ops::any()).path(format!("{}/qn-0000000000", bench.path));
    let gate = bench.proxy.hold(removal.containing(Op::Delete));
    slow.tell("remove 10");
    gate.wait_reached(TIMEOUT).unwrap();
    assert_eq!(fast.remove(), element(b"old"));
    // What tells them apart is random, and the same once in many times.
    for _ in 0..100 {
        delete(&bench, &mut raw);
        assert_eq!(fast.offer(b"new"), 0);
        if raw.exists(&bench.path).unwrap().unwrap().version != before.version {
            break;
        }
    }
    gate.release();
    assert_eq!(slow.hear_answer(), element(b"new"));
    assert_eq!(slow.remove(), empty());
}
