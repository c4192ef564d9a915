//! Who held which lock, and what was written under it, by the servers' transaction log alone.
//!
//! A tenure begins with the transaction that makes a claim the first of its queue (or creates the
//! lock's only node), and ends with the one that takes the node away, be it a deletion or the end of
//! its session. What clients say plays no part in this.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use zklock::Strategy;

use crate::clock::{Moment, WallClock};
use crate::locks::{LockName, Stamp};
use crate::txnlog::{Change, Txn};

/// A place in the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub zxid: i64,
    /// When the leader prepared the transaction: no later than anyone could see its effect.
    pub at: Moment,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenure {
    /// The node's czxid.
    pub token: i64,
    pub session: i64,
    pub node: String,
    pub begin: Point,
    pub end: Option<Point>,
}

/// A write to a lock's register that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    pub stamp: Stamp,
    pub point: Point,
    /// The session that wrote.
    pub session: i64,
}

/// What happened to one lock.
#[derive(Debug, Default)]
pub struct LockHistory {
    /// In their order. They can't overlap: each is ended before the next begins.
    pub tenures: Vec<Tenure>,
    pub writes: Vec<Write>,
}

#[derive(Debug, Default)]
pub struct History {
    /// By lock, in the order in which they were named.
    pub locks: Vec<LockHistory>,
    /// Claims that were there when the log ended.
    pub left: Vec<String>,
    /// What no client of a soak does.
    pub strange: Vec<String>,
}

impl History {
    pub fn of(txns: &[Txn], locks: &[LockName], wall: &WallClock) -> History {
        let mut replay = Replay::new(locks, wall);
        txns.iter().for_each(|txn| replay.apply(txn));
        replay.finish()
    }
}

/// A node that stands in a lock's line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Claim {
    lock: usize,
    place: i32,
    session: i64,
    czxid: i64,
}

struct Replay<'a> {
    wall: &'a WallClock,
    locks: &'a [LockName],
    /// Lock paths and registers, with the lock's number.
    paths: HashMap<String, usize>,
    registers: HashMap<String, usize>,
    claims: HashMap<String, Claim>,
    of_session: HashMap<i64, BTreeSet<String>>,
    /// For each lock the nodes that stand in line.
    lines: Vec<BTreeMap<i32, String>>,
    history: History,
}

impl<'a> Replay<'a> {
    fn new(locks: &'a [LockName], wall: &'a WallClock) -> Replay<'a> {
        let numbered = |path: fn(&LockName) -> String| {
            locks.iter().enumerate().map(|(number, lock)| (path(lock), number)).collect()
        };
        let mut history = History::default();
        history.locks.resize_with(locks.len(), LockHistory::default);
        Replay {
            wall,
            locks,
            paths: numbered(LockName::path),
            registers: numbered(LockName::register),
            claims: HashMap::new(),
            of_session: HashMap::new(),
            lines: vec![BTreeMap::new(); locks.len()],
            history,
        }
    }

    fn apply(&mut self, txn: &Txn) {
        let point = Point { zxid: txn.zxid, at: self.wall.moment(txn.time) };
        // Who is first shows when the whole transaction is done.
        let mut touched = BTreeSet::new();
        for change in &txn.changes {
            match change {
                Change::Create { path, ephemeral } => {
                    touched.extend(self.create(path, *ephemeral, txn));
                }
                Change::Delete { path } => touched.extend(self.delete(path)),
                Change::Close { paths } => {
                    let known = self.of_session.remove(&txn.session).unwrap_or_default();
                    let gone: BTreeSet<&String> = known.iter().chain(paths).collect();
                    touched.extend(gone.into_iter().filter_map(|path| self.delete(path)));
                }
                Change::Set { path, data, .. } => self.set(path, data, txn, point),
                Change::Check { .. } | Change::Open { .. } => {}
            }
        }
        touched.into_iter().for_each(|lock| self.settle(lock, point));
    }

    /// Where a node stands in a lock's line, if it does.
    fn place(&mut self, path: &str, ephemeral: bool) -> Option<(usize, i32)> {
        if let Some(&lock) = self.paths.get(path) {
            return match self.locks[lock].strategy {
                // The directory.
                Strategy::Queue => None,
                _ => Some((lock, 0)),
            };
        }
        let (parent, name) = path.rsplit_once('/')?;
        let lock = *self.paths.get(parent)?;
        let number = name.rsplit('-').next().and_then(|digits| digits.parse().ok());
        if number.is_none() || !ephemeral || self.locks[lock].strategy != Strategy::Queue {
            self.history.strange.push(format!("{path} is no claim"));
        }
        Some((lock, number?))
    }

    fn create(&mut self, path: &str, ephemeral: bool, txn: &Txn) -> Option<usize> {
        let (lock, place) = self.place(path, ephemeral)?;
        let claim = Claim { lock, place, session: txn.session, czxid: txn.zxid };
        self.lines[lock].insert(place, path.to_owned());
        self.of_session.entry(txn.session).or_default().insert(path.to_owned());
        if self.claims.insert(path.to_owned(), claim).is_some() {
            self.history.strange.push(format!("{path} was created twice, at {:#x}", txn.zxid));
        }
        Some(lock)
    }

    fn delete(&mut self, path: &str) -> Option<usize> {
        let claim = self.claims.remove(path)?;
        self.lines[claim.lock].remove(&claim.place);
        if let Some(paths) = self.of_session.get_mut(&claim.session) {
            paths.remove(path);
        }
        Some(claim.lock)
    }

    fn set(&mut self, path: &str, data: &[u8], txn: &Txn, point: Point) {
        let Some(&lock) = self.registers.get(path) else {
            return;
        };
        match Stamp::decode(data) {
            Some(stamp) => {
                let write = Write { stamp, point, session: txn.session };
                self.history.locks[lock].writes.push(write);
            }
            None => self.history.strange.push(format!("{path} was set to something else")),
        }
    }

    /// Ends the tenure of whoever is not first any more, and begins that of whoever is.
    fn settle(&mut self, lock: usize, point: Point) {
        let first = self.lines[lock].values().next();
        let first = first.and_then(|path| Some((path.clone(), self.claims.get(path)?.clone())));
        let tenures = &mut self.history.locks[lock].tenures;
        let current = tenures.last_mut().filter(|tenure| tenure.end.is_none());
        let is_same =
            |tenure: &Tenure| first.as_ref().is_some_and(|(_, claim)| claim.czxid == tenure.token);
        match current {
            Some(tenure) if is_same(tenure) => return,
            Some(tenure) => tenure.end = Some(point),
            None => {}
        }
        if let Some((node, claim)) = first {
            let Claim { session, czxid, .. } = claim;
            tenures.push(Tenure { token: czxid, session, node, begin: point, end: None });
        }
    }

    fn finish(mut self) -> History {
        let mut left: Vec<String> = self.claims.into_keys().collect();
        left.sort();
        self.history.left = left;
        self.history
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks;

    fn create(zxid: i64, session: i64, path: &str) -> Txn {
        txn(zxid, session, vec![Change::Create { path: path.to_owned(), ephemeral: true }])
    }

    fn delete(zxid: i64, path: &str) -> Txn {
        txn(zxid, 0, vec![Change::Delete { path: path.to_owned() }])
    }

    fn txn(zxid: i64, session: i64, changes: Vec<Change>) -> Txn {
        Txn { zxid, session, time: zxid, kind: 0, changes, checksum: 0, digest: None }
    }

    /// Token, begin and end of the tenures of the first lock of a strategy.
    fn tenures(txns: &[Txn], lock: usize) -> Vec<(i64, i64, Option<i64>)> {
        let history = History::of(txns, &locks::all(1), &WallClock::default());
        assert!(history.strange.is_empty(), "{:?}", history.strange);
        let tenures = history.locks[lock].tenures.iter();
        tenures.map(|it| (it.token, it.begin.zxid, it.end.map(|end| end.zxid))).collect()
    }

    const A: &str = "/soak/queue-1/zl-lock-0000000001";
    const B: &str = "/soak/queue-1/zl-lock-0000000002";
    const C: &str = "/soak/queue-1/zl-lock-0000000003";

    #[test]
    fn a_tenure_begins_when_its_claim_becomes_the_first_of_the_queue() {
        let txns = [
            create(1, 7, A),
            create(2, 8, B),
            create(3, 9, C),
            // Gave up: it never held.
            delete(4, B),
            delete(5, A),
            delete(6, C),
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
        let txns = [create(1, 7, path), delete(4, path), create(9, 8, path)];
        assert_eq!(tenures(&txns, 1), [(1, 1, Some(4)), (9, 9, None)]);
    }

    #[test]
    fn what_is_left_and_what_is_strange_is_told() {
        let txns = [create(1, 7, A), create(2, 7, "/soak/queue-1/notes")];
        let history = History::of(&txns, &locks::all(1), &WallClock::default());
        assert_eq!(history.left, [A]);
        assert_eq!(history.strange.len(), 1);
    }
}
