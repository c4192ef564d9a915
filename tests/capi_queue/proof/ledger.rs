//! Holds against each other what producers and consumers say, and what the servers know.
//!
//! A process that is killed in the middle of an operation can't say how that ended. But its session
//! goes on for a while, and the version of its receipt counts the transactions that were executed:
//! so it is known whether the last one was. For a consumer it is known less well: it uses up its
//! receipt also where it finds out that a removal was *not* executed, because the element was
//! another's by then. So an element that is missing must have been offered before such a process was
//! killed, and been in its turn while that process was in its last call.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::mover::{Call, Element, Record};

#[derive(Default)]
pub struct Ledger {
    /// They are in the queue, or were.
    offered: BTreeSet<Element>,
    /// When, where a process could still say so.
    offers: HashMap<Element, Call>,
    /// They may be, or may have been.
    perhaps: BTreeSet<Element>,
    taken: BTreeMap<Element, Vec<Call>>,
    /// The last calls of processes that were killed in them, and may each have removed an element; so
    /// may those whose outcome could not be found out.
    suspects: Vec<Call>,
    /// Offers that were executed although their process was killed before it could say so.
    pub survived_a_producer: usize,
    /// Offers with an outcome that could not be found out.
    pub offers_unknown: usize,
    /// Likewise of takes.
    pub takes_unknown: usize,
    /// Elements that were offered and came to nobody.
    pub missing: usize,
    pub violations: Vec<String>,
}

impl Ledger {
    /// A producer is over. `executed`: how many transactions of its session were, if that could be
    /// found out.
    pub fn enter_offers(&mut self, producer: usize, record: &Record, executed: Option<usize>) {
        for &(n, call) in &record.done {
            self.offered.insert((producer, n));
            self.offers.insert((producer, n), call);
        }
        self.offers_unknown += record.offers_unknown.len();
        self.perhaps.extend(record.offers_unknown.iter().map(|n| (producer, *n)));
        let Some(n) = record.in_flight() else { return };
        match executed {
            Some(executed) if record.offers_unknown.is_empty() => {
                match executed.checked_sub(record.executed()) {
                    Some(0) => {}
                    Some(1) => {
                        self.survived_a_producer += 1;
                        self.offered.insert((producer, n));
                    }
                    more => self.violations.push(format!(
                        "producer {producer} at {n}: {more:?} more transactions than it said"
                    )),
                }
            }
            _ => {
                self.offers_unknown += 1;
                self.perhaps.insert((producer, n));
            }
        }
    }

    /// A consumer is over; `end`: when.
    pub fn enter_takes(&mut self, record: &Record, executed: Option<usize>, end: u64) {
        self.takes_unknown += record.takes_unknown;
        let whenever = Call { from: 0, to: u64::MAX };
        self.suspects.extend(std::iter::repeat_n(whenever, record.takes_unknown));
        if executed.is_none_or(|executed| executed > record.executed()) {
            let from = record.taken.last().map_or(0, |(_, call)| call.to);
            self.suspects.push(Call { from, to: end });
        }
        if executed.is_some_and(|executed| executed < record.executed()) {
            self.violations.push(format!("only {executed:?} transactions: {record:?}"));
        }
        for &(element, call) in &record.taken {
            self.taken.entry(element).or_default().push(call);
        }
    }

    /// Everything is over, and the queue is empty.
    pub fn close(&mut self) {
        for (element, calls) in &self.taken {
            if calls.len() > 1 {
                self.violations.push(format!("{element:?} was taken twice: {calls:?}"));
            }
            if !self.offered.contains(element) && !self.perhaps.contains(element) {
                self.violations.push(format!("{element:?} was never offered"));
            }
        }
        self.blame_the_killed();
        self.check_order();
    }

    /// Has each missing element been taken by one that was killed.
    fn blame_the_killed(&mut self) {
        self.suspects.sort_unstable_by_key(|call| call.to);
        let is_missing = |element: &&Element| !self.taken.contains_key(element);
        let mut missing: Vec<Element> = self.offered.iter().filter(is_missing).copied().collect();
        missing.sort_unstable_by_key(|element| self.offers.get(element).map(|call| call.from));
        self.missing = missing.len();
        for element in missing {
            let offered = self.offers.get(&element).map_or(0, |call| call.from);
            let Some(at) = self.suspects.iter().position(|call| call.to >= offered) else {
                self.violations.push(format!("{element:?} is lost"));
                continue;
            };
            // Which of them it was is not known, so nothing follows from when it ended.
            let from = self.suspects.remove(at).from;
            self.taken.insert(element, vec![Call { from, to: u64::MAX }]);
        }
    }

    /// Of two elements, one of which was in the queue before the other was offered, the later one may
    /// not have been taken before somebody began to take the earlier one.
    fn check_order(&mut self) {
        let both = |(element, offer): (&Element, &Call)| {
            Some((*offer, *self.taken.get(element)?.first()?, *element))
        };
        let mut moved: Vec<(Call, Call, Element)> = self.offers.iter().filter_map(both).collect();
        moved.sort_unstable_by_key(|(offer, ..)| offer.from);
        // For each, who was taken first of it and those offered after it.
        let mut first = moved.clone();
        for at in (1..first.len()).rev() {
            if first[at].1.to < first[at - 1].1.to {
                first[at - 1] = first[at];
            }
        }
        for (offer, take, element) in &moved {
            let later = moved.partition_point(|(other, ..)| other.from <= offer.to);
            let Some((_, before, other)) = first.get(later) else { continue };
            if before.to < take.from {
                let early = take.from - before.to;
                let what =
                    format!("{other:?} was taken {early} ns before {element:?} was asked for");
                self.violations.push(what);
            }
        }
    }

    pub fn offered(&self) -> usize {
        self.offered.len()
    }

    pub fn taken(&self) -> usize {
        self.taken.len()
    }
}
