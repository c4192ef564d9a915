//! Crafted logs: who held, by whom a claim went, and what is reported as strange.

use super::*;
use crate::locks;

fn create(zxid: i64, session: i64, path: &str) -> Txn {
    txn(zxid, session, vec![Change::Create { path: path.to_owned(), ephemeral: true }])
}

fn delete(zxid: i64, session: i64, path: &str) -> Txn {
    txn(zxid, session, vec![Change::Delete { path: path.to_owned() }])
}

fn txn(zxid: i64, session: i64, changes: Vec<Change>) -> Txn {
    Txn { zxid, session, time: zxid, kind: 0, changes, checksum: 0, digest: None }
}

fn history(txns: &[Txn]) -> History {
    let operators = BTreeSet::from([OPERATOR]);
    History::of(txns, &locks::all(1), &operators, &WallClock::default())
}

/// Token, begin and end of the tenures of the first lock of a strategy.
fn tenures(txns: &[Txn], lock: usize) -> Vec<(i64, i64, Option<i64>)> {
    let history = history(txns);
    assert!(history.strange.is_empty(), "{:?}", history.strange);
    let tenures = history.locks[lock].tenures.iter();
    tenures.map(|it| (it.token, it.begin.zxid, it.end.map(|end| end.zxid))).collect()
}

const OPERATOR: i64 = 99;
const A: &str = "/soak/queue-1/zl-0-lock-0000000001";
const B: &str = "/soak/queue-1/zl-0-lock-0000000002";
const C: &str = "/soak/queue-1/zl-0-lock-0000000003";

#[test]
fn a_tenure_begins_when_its_claim_becomes_the_first_of_the_queue() {
    let txns = [
        create(1, 7, A),
        create(2, 8, B),
        create(3, 9, C),
        // Gave up: it never held.
        delete(4, 8, B),
        delete(5, 7, A),
        delete(6, 9, C),
    ];
    assert_eq!(tenures(&txns, 0), [(1, 1, Some(5)), (3, 5, Some(6))]);
}

#[test]
fn the_end_of_a_session_ends_its_tenures_and_takes_its_waiting_claims() {
    let close = |paths| txn(5, 7, vec![Change::Close { paths }]);
    for paths in [vec![], vec![A.to_owned(), B.to_owned()]] {
        let txns = [create(1, 7, A), create(2, 7, B), create(3, 9, C), close(paths)];
        assert_eq!(tenures(&txns, 0), [(1, 1, Some(5)), (3, 5, None)]);
    }
}

#[test]
fn where_the_lock_is_one_node_its_life_is_the_tenure() {
    let path = "/soak/watch-1";
    let txns = [create(1, 7, path), delete(4, 7, path), create(9, 8, path)];
    assert_eq!(tenures(&txns, 1), [(1, 1, Some(4)), (9, 9, None)]);
}

#[test]
fn what_is_left_and_what_is_strange_is_told() {
    let txns = [create(1, 7, A), create(2, 7, "/soak/queue-1/notes")];
    let history = history(&txns);
    assert_eq!(history.left, [A]);
    assert_eq!(history.strange.len(), 1);
}

#[test]
fn by_whom_a_claim_went_is_told() {
    let close = |session| txn(5, session, vec![Change::Close { paths: vec![A.to_owned()] }]);
    for (gone, hand) in [
        (close(7), Hand::Servers),
        (delete(5, 7, A), Hand::Owner),
        (delete(5, OPERATOR, A), Hand::Operator),
        (delete(5, 8, A), Hand::Stranger(8)),
    ] {
        let history = history(&[create(1, 7, A), gone]);
        let tenure = &history.locks[0].tenures[0];
        assert_eq!(tenure.ended_by, Some(hand));
        assert_eq!(tenure.robbed().is_some(), hand == Hand::Operator);
        let thefts = history.locks[0].thefts.len();
        assert_eq!(thefts == 1, matches!(hand, Hand::Stranger(_)));
    }
}

#[test]
fn a_robbed_holder_is_excused_where_names_are_given_again() {
    let watch = "/soak/watch-1";
    let of_an_earlier_directory = "/soak/queue-1/zl-5-lock-0000000001";
    for (lock, first, second, is_excused) in [
        (1, watch, watch, true),
        (0, A, of_an_earlier_directory, true),
        // Of this directory: nobody has had that name before.
        (0, A, B, false),
    ] {
        let robbed = [create(1, 7, first), delete(2, OPERATOR, first)];
        let stolen = [create(3, 8, second), delete(4, 7, second)];
        let history = history(&[robbed, stolen].concat());
        let lock = &history.locks[lock];
        assert_eq!(lock.tenures[1].robbed().is_some(), is_excused, "{second}");
        assert_eq!(lock.thefts.is_empty(), is_excused, "{second}");
    }
}

#[test]
fn a_waiting_claim_can_be_stolen_too() {
    let history = history(&[create(1, 7, A), create(2, 8, B), delete(3, 7, B)]);
    let theft = &history.locks[0].thefts[0];
    assert_eq!((theft.token, theft.owner, theft.thief), (2, 8, 7));
}

#[test]
fn a_write_for_a_node_whose_name_is_anothers_by_now_is_told() {
    let write = |zxid, token| {
        let data = Stamp { token, number: 1, process: 1, thread: 0 }.encode();
        let path = "/soak/registers/queue-1".to_owned();
        txn(zxid, 7, vec![Change::Set { path, data, version: 0 }])
    };
    let deleted = delete(3, OPERATOR, A);
    let txns = [create(1, 7, A), write(2, 1), deleted, write(4, 1), create(5, 8, A), write(6, 1)];
    let history = history(&txns);
    let writes: Vec<bool> = history.locks[0].writes.iter().map(|it| it.by_namesake).collect();
    assert_eq!(writes, [false, false, true]);
}
