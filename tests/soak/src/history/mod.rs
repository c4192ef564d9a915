//! Who held which lock, and what was written under it, by the servers' transaction log alone.
//!
//! A tenure begins with the transaction that makes a claim the first of its queue (or creates the
//! lock's only node), and ends with the one that takes the node away, be it a deletion or the end of
//! its session. Of a lock that is shared it begins with the one that admits the claim (`line.rs`). What clients say
//! plays no part in this.

mod line;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

pub use line::Part;
use line::{Claim, holders};

use crate::clock::{Moment, WallClock};
use crate::locks::{LockName, Sort, Stamp};
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
    pub part: Part,
    pub node: String,
    pub begin: Point,
    pub end: Option<Point>,
    /// Who took its node away at the end.
    pub ended_by: Option<Hand>,
    /// An operator has robbed the same session of a claim of this name before: a deletion of that one
    /// may still be on its way, and no request can tell the two apart.
    pub follows_a_robbery: bool,
    /// When an operator wrote into its claim that it is broken.
    pub broken: Option<Point>,
}

impl Tenure {
    /// When an operator took it away, or what an operator did led to it.
    pub fn robbed(&self) -> Option<Point> {
        let robbed = matches!(self.ended_by, Some(Hand::Operator | Hand::Namesake));
        self.end.filter(|_| robbed)
    }
}

/// By whom a claim's node went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hand {
    /// The servers, at the end of its session.
    Servers,
    /// Its own session deleted it.
    Owner,
    /// It was deleted on purpose.
    Operator,
    /// The session of a holder that an operator had robbed deleted it, for its own of that name,
    /// where no request can tell the two apart.
    Namesake,
    /// This session deleted it, which is not its own.
    Stranger(i64),
}

/// A claim that was deleted by a session that had no business with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Theft {
    pub node: String,
    pub token: i64,
    pub owner: i64,
    pub thief: i64,
    pub point: Point,
}

/// A write to a lock's register that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    pub stamp: Stamp,
    pub point: Point,
    /// The session that wrote.
    pub session: i64,
    /// The node that its token is of was gone by then, and another of the same name stood in its
    /// place: what checks a name can't tell the two.
    pub by_namesake: bool,
}

/// What happened to one lock.
#[derive(Debug, Default)]
pub struct LockHistory {
    /// In the order in which they begin. Those of a lock that is not shared can't overlap: each is ended before the
    /// next begins.
    pub tenures: Vec<Tenure>,
    pub writes: Vec<Write>,
    pub thefts: Vec<Theft>,
    /// Claims that an operator deleted, by the transactions that made them: when they were made, and when they went.
    pub robbed: HashMap<i64, (Point, Point)>,
    /// How many permits there were, from when on.
    pub limits: Vec<(Point, u32)>,
}

impl LockHistory {
    /// Who came to hold after that tenure, and could not before its end.
    pub fn successor(&self, place: usize) -> Option<&Tenure> {
        let Tenure { end, part, .. } = self.tenures.get(place)?;
        let end = (*end)?.zxid;
        let is_it = |next: &&Tenure| {
            let are_readers = (*part, next.part) == (Part::Reads, Part::Reads);
            next.begin.zxid >= end && !are_readers
        };
        self.tenures[place + 1..].iter().find(is_it)
    }

    /// How many permits there were when that was done.
    pub fn limit(&self, zxid: i64) -> u32 {
        let before = self.limits.iter().rfind(|(point, _)| point.zxid <= zxid);
        before.map_or(0, |(_, limit)| *limit)
    }
}

#[derive(Debug, Default)]
pub struct History {
    /// By lock, in the order in which they were named.
    pub locks: Vec<LockHistory>,
    /// When each session ended.
    pub ended: HashMap<i64, Point>,
    /// Claims that were there when the log ended.
    pub left: Vec<String>,
    /// What no client of a soak does.
    pub strange: Vec<String>,
}

impl History {
    /// `operators`: the sessions that delete claims of others on purpose.
    pub fn of(
        txns: &[Txn],
        locks: &[LockName],
        operators: &BTreeSet<i64>,
        wall: &WallClock,
    ) -> History {
        let mut replay = Replay::new(locks, operators, wall);
        txns.iter().for_each(|txn| replay.apply(txn));
        replay.finish()
    }
}

struct Replay<'a> {
    wall: &'a WallClock,
    locks: &'a [LockName],
    operators: &'a BTreeSet<i64>,
    /// Lock paths and registers, with the lock's number.
    paths: HashMap<String, usize>,
    registers: HashMap<String, usize>,
    claims: HashMap<String, Claim>,
    of_session: HashMap<i64, BTreeSet<String>>,
    /// For each lock the transaction that made its directory.
    directories: Vec<i64>,
    /// For each lock the nodes that stand in line.
    lines: Vec<BTreeMap<i32, String>>,
    /// For each lock the tenures that have not ended, by their place among all.
    running: Vec<Vec<usize>>,
    /// By whom the claims went that the present transaction takes away, by czxid.
    gone: HashMap<i64, Hand>,
    history: History,
}

impl<'a> Replay<'a> {
    fn new(locks: &'a [LockName], operators: &'a BTreeSet<i64>, wall: &'a WallClock) -> Replay<'a> {
        let numbered = |path: fn(&LockName) -> String| {
            locks.iter().enumerate().map(|(number, lock)| (path(lock), number)).collect()
        };
        let mut history = History::default();
        history.locks.resize_with(locks.len(), LockHistory::default);
        Replay {
            wall,
            locks,
            operators,
            paths: numbered(LockName::path),
            registers: numbered(LockName::register),
            claims: HashMap::new(),
            of_session: HashMap::new(),
            directories: vec![0; locks.len()],
            lines: vec![BTreeMap::new(); locks.len()],
            running: vec![Vec::new(); locks.len()],
            gone: HashMap::new(),
            history,
        }
    }

    fn apply(&mut self, txn: &Txn) {
        let point = Point { zxid: txn.zxid, at: self.wall.moment(txn.time) };
        // Who is first shows when the whole transaction is done.
        let mut touched = BTreeSet::new();
        self.gone.clear();
        for change in &txn.changes {
            match change {
                Change::Create { path, ephemeral, data } => {
                    self.set_limit(path, data, point);
                    touched.extend(self.create(path, *ephemeral, txn));
                }
                Change::Delete { path } => touched.extend(self.delete(path, txn, point)),
                Change::Close { paths } => {
                    self.history.ended.entry(txn.session).or_insert(point);
                    let known = self.of_session.remove(&txn.session).unwrap_or_default();
                    let gone: BTreeSet<&String> = known.iter().chain(paths).collect();
                    touched.extend(
                        gone.into_iter().filter_map(|path| self.remove(path, |_| Hand::Servers)),
                    );
                }
                Change::Set { path, data, .. } => {
                    touched.extend(self.set_limit(path, data, point));
                    self.set(path, data, txn, point);
                }
                Change::Check { .. } | Change::Open { .. } => {}
            }
        }
        touched.into_iter().for_each(|lock| self.settle(lock, point));
    }

    /// A semaphore's directory says how many permits there are. Gives which it is.
    fn set_limit(&mut self, path: &str, data: &[u8], point: Point) -> Option<usize> {
        let lock = *self.paths.get(path)?;
        if self.locks[lock].sort != Sort::Semaphore {
            return None;
        }
        match line::limit(data) {
            Some(limit) => self.history.locks[lock].limits.push((point, limit)),
            None => self.history.strange.push(format!("{path} does not say how many permits")),
        }
        Some(lock)
    }

    /// Where a node stands in a lock's line, if it does.
    fn place(&mut self, path: &str, ephemeral: bool) -> Option<(usize, i32, Part)> {
        if let Some(&lock) = self.paths.get(path) {
            // Or the directory.
            return self.locks[lock].sort.is_one_node().then_some((lock, 0, Part::Alone));
        }
        let (parent, name) = path.rsplit_once('/')?;
        let lock = *self.paths.get(parent)?;
        let sort = self.locks[lock].sort;
        if sort.keeps(name) {
            return None;
        }
        let number = line::number(name);
        if number.is_none() || !ephemeral || sort.is_one_node() {
            self.history.strange.push(format!("{path} is no claim"));
        }
        Some((lock, number?, Part::of(sort, name)))
    }

    fn create(&mut self, path: &str, ephemeral: bool, txn: &Txn) -> Option<usize> {
        if let Some(&lock) = self.paths.get(path) {
            self.directories[lock] = txn.zxid;
        }
        let (lock, place, part) = self.place(path, ephemeral)?;
        let made = Point { zxid: txn.zxid, at: self.wall.moment(txn.time) };
        let claim = Claim { lock, place, part, session: txn.session, made };
        self.lines[lock].insert(place, path.to_owned());
        self.of_session.entry(txn.session).or_default().insert(path.to_owned());
        if self.claims.insert(path.to_owned(), claim).is_some() {
            self.history.strange.push(format!("{path} was created twice, at {:#x}", txn.zxid));
        }
        Some(lock)
    }

    fn delete(&mut self, path: &str, txn: &Txn, point: Point) -> Option<usize> {
        let Claim { lock, made, session: owner, .. } = *self.claims.get(path)?;
        let token = made.zxid;
        let hand = match txn.session {
            session if session == owner => Hand::Owner,
            session if self.operators.contains(&session) => Hand::Operator,
            session if self.may_be_taken_for_its_own(lock, path, session) => Hand::Namesake,
            session => Hand::Stranger(session),
        };
        let lock = self.remove(path, |_| hand)?;
        if hand == Hand::Operator {
            self.history.locks[lock].robbed.insert(token, (made, point));
        }
        if let Some(Hand::Stranger(thief)) = self.gone.get(&token).copied() {
            let theft = Theft { node: path.to_owned(), token, owner, thief, point };
            self.history.locks[lock].thefts.push(theft);
        }
        Some(lock)
    }

    /// Whether that session had a claim of this name of which an operator has robbed it, and a
    /// name like this is given again: that of a lock that is its own claim, and in a queue that of
    /// a claim that is named for an earlier directory, and never holds.
    fn may_be_taken_for_its_own(&self, lock: usize, path: &str, session: i64) -> bool {
        let name = path.rsplit('/').next().unwrap_or_default();
        let directory = format!("zl-{:x}-", self.directories[lock]);
        let is_given_again = self.locks[lock].sort.is_one_node() || !name.starts_with(&directory);
        let mut tenures = self.history.locks[lock].tenures.iter();
        is_given_again && tenures.any(|it| it.session == session && it.robbed().is_some())
    }

    /// Takes a claim away; `hand` says by whom, told whose it was.
    fn remove(&mut self, path: &str, hand: impl FnOnce(i64) -> Hand) -> Option<usize> {
        let claim = self.claims.remove(path)?;
        self.lines[claim.lock].remove(&claim.place);
        if let Some(paths) = self.of_session.get_mut(&claim.session) {
            paths.remove(path);
        }
        self.gone.insert(claim.made.zxid, hand(claim.session));
        Some(claim.lock)
    }

    fn set(&mut self, path: &str, data: &[u8], txn: &Txn, point: Point) {
        if self.operators.contains(&txn.session) {
            return self.break_hold(path, point);
        }
        let Some(&lock) = self.registers.get(path) else {
            return;
        };
        match Stamp::decode(data) {
            Some(stamp) => {
                let by_namesake = self.has_namesake(lock, stamp.token);
                let write = Write { stamp, point, session: txn.session, by_namesake };
                self.history.locks[lock].writes.push(write);
            }
            None => self.history.strange.push(format!("{path} was set to something else")),
        }
    }

    /// An operator writes into a claim only to break its hold. Who waits does not read it.
    fn break_hold(&mut self, path: &str, point: Point) {
        let Some(Claim { lock, made, .. }) = self.claims.get(path) else {
            return;
        };
        let tenures = &mut self.history.locks[*lock].tenures;
        if let Some(tenure) = tenures.iter_mut().rfind(|it| it.token == made.zxid) {
            tenure.broken.get_or_insert(point);
        }
    }

    /// Whether the node of this tenure has gone, and there is another of its name.
    fn has_namesake(&self, lock: usize, token: i64) -> bool {
        let tenure = self.history.locks[lock].tenures.iter().rfind(|it| it.token == token);
        let present = tenure.and_then(|tenure| self.claims.get(&tenure.node));
        present.is_some_and(|claim| claim.made.zxid != token)
    }

    /// Ends the tenures of those who do not hold any more, and begins those of who do now.
    fn settle(&mut self, lock: usize, point: Point) {
        let LockHistory { tenures, limits, .. } = &mut self.history.locks[lock];
        let running = &mut self.running[lock];
        let held: HashSet<i64> = running.iter().map(|place| tenures[*place].token).collect();
        let line = self.lines[lock].values();
        let line = line.filter_map(|path| Some((path.as_str(), self.claims.get(path)?)));
        let limit = limits.last().map_or(0, |(_, limit)| *limit);
        let holders = holders(line, limit, &held);
        running.retain(|place| {
            let tenure = &mut tenures[*place];
            let goes_on = holders.contains_key(&tenure.token);
            if !goes_on {
                tenure.end = Some(point);
                tenure.ended_by = self.gone.get(&tenure.token).copied();
            }
            goes_on
        });
        for (token, node) in holders.into_iter().filter(|(token, _)| !held.contains(token)) {
            let Claim { session, part, .. } = self.claims[node];
            let follows_a_robbery = self.locks[lock].sort.is_one_node()
                && tenures.iter().any(|it| it.session == session && it.robbed().is_some());
            running.push(tenures.len());
            tenures.push(Tenure {
                token,
                session,
                part,
                node: node.to_owned(),
                begin: point,
                end: None,
                ended_by: None,
                follows_a_robbery,
                broken: None,
            });
        }
    }

    fn finish(mut self) -> History {
        let mut left: Vec<String> = self.claims.into_keys().collect();
        left.sort();
        self.history.left = left;
        self.history
    }
}
