//! Crafted logs: who held, by whom a claim went, and what is reported as strange.

use super::*;
use crate::locks;

fn create(zxid: i64, session: i64, path: &str) -> Txn {
    txn(
        zxid,
        session,
        vec![Change::Create { path: path.to_owned(), ephemeral: true, data: vec![] }],
    )
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

#[test]
fn who_deletes_its_claim_twice_has_stolen_the_next_one() {
    let watch = "/soak/watch-1";
    let own = [create(1, 7, watch), delete(2, 7, watch)];
    let history = history(&[own, [create(3, 8, watch), delete(4, 7, watch)]].concat());
    let theft = &history.locks[1].thefts[0];
    assert_eq!((theft.token, theft.owner, theft.thief), (3, 8, 7));
}

const READ_WRITE: usize = 3;
const SEMAPHORE: usize = 4;
const ELECTION: usize = 5;

#[test]
fn readers_hold_together_and_a_writer_after_the_last_of_them() {
    let reader = |number: u32| format!("/soak/read-write-1/zl-0-__READ__{number:010}");
    let writer = "/soak/read-write-1/zl-0-__WRIT__0000000003";
    let txns = [
        create(1, 7, &reader(1)),
        create(2, 8, &reader(2)),
        create(3, 9, writer),
        create(4, 7, &reader(4)),
        delete(5, 7, &reader(1)),
        delete(6, 8, &reader(2)),
        delete(7, 9, writer),
    ];
    let held = [(1, 1, Some(5)), (2, 2, Some(6)), (3, 6, Some(7)), (4, 7, None)];
    assert_eq!(tenures(&txns, READ_WRITE), held);
    let lock = &history(&txns).locks[READ_WRITE];
    let after: Vec<Option<i64>> =
        (0..4).map(|place| lock.successor(place).map(|next| next.token)).collect();
    assert_eq!(after, [Some(3), Some(3), Some(4), None]);
}

#[test]
fn permits_are_those_of_the_limit_at_that_moment() {
    let path = "/soak/semaphore-1";
    let data = |limit: u32| format!("zklock/1 semaphore\nlimit={limit}\nmost=9\n").into_bytes();
    let directory = Change::Create { path: path.to_owned(), ephemeral: false, data: data(3) };
    let set = |zxid, limit| {
        let set = Change::Set { path: path.to_owned(), data: data(limit), version: 1 };
        let child = || format!("{path}/zl-limit");
        let create = Change::Create { path: child(), ephemeral: true, data: vec![] };
        txn(zxid, 9, vec![set, create, Change::Delete { path: child() }])
    };
    let claim = |number: u32, permits| format!("{path}/zl-1-permits-{permits}-{number:010}");
    let txns = [
        txn(1, 7, vec![directory]),
        create(2, 7, &claim(0, 2)),
        create(3, 8, &claim(1, 2)),
        set(4, 4),
        // Those who hold go on to, and nobody else may.
        set(5, 2),
        create(6, 9, &claim(2, 1)),
        delete(7, 7, &claim(0, 2)),
        delete(8, 8, &claim(1, 2)),
    ];
    assert_eq!(tenures(&txns, SEMAPHORE), [(2, 2, Some(7)), (3, 4, Some(8)), (6, 8, None)]);
    let lock = &history(&txns).locks[SEMAPHORE];
    let limits: Vec<u32> = [1, 4, 5, 9].map(|zxid| lock.limit(zxid)).to_vec();
    assert_eq!(limits, [3, 4, 2, 2]);
    // Nobody else's claim is asked for the permits of one that is left.
    assert_eq!(lock.successor(0).map(|next| next.token), Some(6));
}

#[test]
fn the_name_of_who_is_to_lead_next_is_no_claim_to_lead() {
    let below = "/soak/election-1/zl-handover";
    let directory = Change::Create { path: below.to_owned(), ephemeral: false, data: vec![] };
    let leads = "/soak/election-1/zl-0-lock-0000000001";
    let named = format!("{below}/zl-3-lock-0000000000");
    let txns = [
        create(1, 7, leads),
        txn(2, 7, vec![directory]),
        create(3, 7, &named),
        delete(4, 7, leads),
        delete(5, 7, &named),
    ];
    assert_eq!(tenures(&txns, ELECTION), [(1, 1, Some(4))]);
    assert_eq!(history(&txns).left, [""; 0]);
}

#[test]
fn what_an_operator_writes_into_the_claim_of_a_holder_breaks_it() {
    let write = |zxid, session, path: &str| {
        txn(zxid, session, vec![Change::Set { path: path.to_owned(), data: vec![], version: 1 }])
    };
    let txns = [
        create(1, 7, A),
        create(2, 8, B),
        write(3, 7, A),
        write(4, OPERATOR, B),
        write(5, OPERATOR, A),
        delete(6, 7, A),
    ];
    let history = history(&txns);
    let broken: Vec<_> =
        history.locks[0].tenures.iter().map(|it| it.broken.map(|at| at.zxid)).collect();
    // Who waits does not read it: its claim is broken when it comes to hold, by another order.
    assert_eq!(broken, [Some(5), None]);
}
