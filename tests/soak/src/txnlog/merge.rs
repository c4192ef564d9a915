//! The history that an ensemble has agreed on, out of what its members have logged.
//!
//! A member's log may hold less than that (it was down, and got a snapshot when it came back) and
//! more: proposals that died with their leader, which it keeps when it comes back by a snapshot.
//! Leaders tell which: with each transaction they log a digest of their whole tree. A session that
//! begins changes nothing in the tree; so where one begins an epoch, its digest is that of the last
//! transaction that counts of the epoch before. And all through the history, whenever a session
//! begins, its digest has to be the one before: so the history is the servers' own.
//!
//! Where an epoch begins with something else, its leader is one of the members that logged its first
//! transaction, and the leader's log holds the history before. Which of them it was shows by what it
//! did next: a leader proposes nothing that can't follow its own tree (`tree.rs`).

use std::collections::HashMap;

use super::tree::Tree;
use super::txn::{CREATE_SESSION, ERROR, Txn};

/// So many transactions show which tree they were made for.
const ENOUGH: usize = 5_000;

/// What the members agreed on, in order.
#[derive(Debug, Default)]
pub struct Agreed {
    pub txns: Vec<Txn>,
    /// Proposals that were never decided.
    pub discarded: usize,
    /// Transactions that a member does not have because it got a snapshot instead.
    pub holes: usize,
    /// How often the digests have confirmed the history.
    pub confirmed: usize,
    /// Where the members' logs contradict each other: their fault, not a lock's.
    pub disputes: Vec<String>,
}

/// `logs`: each member's transactions in the order of its files.
pub fn merge(logs: Vec<Vec<Txn>>) -> Agreed {
    let mut agreed = Agreed::default();
    let members: Vec<Member> = logs.into_iter().map(Member::new).collect();
    let mut zxids: Vec<i64> = members.iter().flat_map(|member| member.order.clone()).collect();
    zxids.sort_unstable();
    zxids.dedup();
    for of_epoch in zxids.chunk_by(|one, next| epoch(*one) == epoch(*next)) {
        let txns: Vec<Txn> =
            of_epoch.iter().filter_map(|zxid| vote(&members, *zxid, &mut agreed)).collect();
        let is_cut = beginning(&txns).is_some_and(|digest| cut_at_digest(&mut agreed, digest));
        if !is_cut {
            cut_by_what_follows(&mut agreed, &members, &txns);
        }
        agreed.txns.extend(txns);
    }
    let lacks = |member: &Member| {
        agreed.txns.iter().filter(|txn| !member.txns.contains_key(&txn.zxid)).count()
    };
    agreed.holes = members.iter().map(lacks).sum();
    confirm(&mut agreed);
    agreed
}

/// The transaction, as the members have it.
fn vote(members: &[Member], zxid: i64, agreed: &mut Agreed) -> Option<Txn> {
    let found: Vec<&Txn> = members.iter().filter_map(|member| member.txns.get(&zxid)).collect();
    if found.windows(2).any(|two| two[0].checksum != two[1].checksum) {
        agreed.disputes.push(format!("zxid {zxid:#x} is not the same on all members"));
    }
    found.first().map(|txn| (*txn).clone())
}

/// The digest of the tree at the beginning of an epoch, if its first transactions tell.
fn beginning(txns: &[Txn]) -> Option<i64> {
    let first = txns.iter().find(|txn| txn.kind != ERROR)?;
    first.digest.filter(|_| first.kind == CREATE_SESSION)
}

/// Ends the history with the last transaction that left the tree so. Whether there is one.
fn cut_at_digest(agreed: &mut Agreed, digest: i64) -> bool {
    let last = agreed.txns.iter().rposition(|txn| txn.digest == Some(digest));
    if let Some(last) = last {
        // Requests that failed change nothing, and need not be judged.
        let lost = agreed.txns.split_off(last + 1);
        agreed.discarded += lost.iter().filter(|txn| txn.kind != ERROR).count();
    }
    last.is_some()
}

/// Ends the history of the epoch before where the log of that member ends which best explains what
/// follows.
fn cut_by_what_follows(agreed: &mut Agreed, members: &[Member], next: &[Txn]) {
    let (Some(last), Some(first)) = (agreed.txns.last(), next.first()) else {
        return;
    };
    let start = agreed.txns.partition_point(|txn| epoch(txn.zxid) < epoch(last.zxid));
    let had_first = members.iter().filter(|member| member.txns.contains_key(&first.zxid));
    // Where it has nothing of that epoch at all, it was not there, and can't have led the next.
    let ends = had_first.filter_map(|member| member.last_of(epoch(last.zxid)));
    let mut cuts: Vec<usize> =
        ends.map(|end| agreed.txns.partition_point(|txn| txn.zxid <= end)).collect();
    cuts.sort_unstable();
    cuts.dedup();
    if cuts.is_empty() || cuts == [agreed.txns.len()] {
        return;
    }
    let mut tree = Tree::default();
    for txn in &agreed.txns[..start] {
        tree.apply(txn);
    }
    let contradictions = |cut: &usize| {
        let mut tree = tree.clone();
        for txn in &agreed.txns[start..*cut] {
            tree.apply(txn);
        }
        next.iter().take(ENOUGH).map(|txn| tree.apply(txn)).sum::<usize>()
    };
    // Of two that are as good, the longer one: what an epoch has of the one before is seldom less.
    let best = cuts.iter().rev().min_by_key(|cut| contradictions(cut)).copied();
    if let Some(best) = best {
        let lost = agreed.txns.split_off(best);
        agreed.discarded += lost.iter().filter(|txn| txn.kind != ERROR).count();
    }
}

/// Holds the history against the digests: a session that begins changes nothing.
fn confirm(agreed: &mut Agreed) {
    let mut before = None;
    for txn in agreed.txns.iter().filter(|txn| txn.digest.is_some()) {
        if txn.kind == CREATE_SESSION && before.is_some() {
            if txn.digest == before {
                agreed.confirmed += 1;
            } else {
                let what = format!(
                    "the digest at {:#x} does not follow from what was logged before",
                    txn.zxid
                );
                agreed.disputes.push(what);
            }
        }
        before = txn.digest;
    }
}

struct Member {
    /// Its zxids in order.
    order: Vec<i64>,
    txns: HashMap<i64, Txn>,
}

impl Member {
    fn new(log: Vec<Txn>) -> Member {
        // After a truncation the same zxid may be written again: the last one counts.
        let txns: HashMap<i64, Txn> = log.into_iter().map(|txn| (txn.zxid, txn)).collect();
        let mut order: Vec<i64> = txns.keys().copied().collect();
        order.sort_unstable();
        Member { order, txns }
    }

    /// The last that it has logged of an epoch.
    fn last_of(&self, of: i64) -> Option<i64> {
        let end = self.order.partition_point(|zxid| epoch(*zxid) <= of);
        let last = self.order.get(end.checked_sub(1)?)?;
        (epoch(*last) == of).then_some(*last)
    }
}

fn epoch(zxid: i64) -> i64 {
    zxid >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::txnlog::Change;

    fn txn(zxid: i64) -> Txn {
        let checksum = zxid as u32;
        Txn { zxid, session: 1, time: 0, kind: 1, changes: Vec::new(), checksum, digest: None }
    }

    fn merged(logs: &[&[i64]]) -> (Vec<i64>, usize, usize) {
        let logs = logs.iter().map(|log| log.iter().map(|zxid| txn(*zxid)).collect()).collect();
        let agreed = merge(logs);
        (agreed.txns.iter().map(|txn| txn.zxid).collect(), agreed.discarded, agreed.holes)
    }

    const A: i64 = 1 << 32;
    const B: i64 = 2 << 32;

    fn set(zxid: i64, version: i32) -> Txn {
        let (path, data) = ("/a".to_owned(), Vec::new());
        Txn { changes: vec![Change::Set { path, data, version }], ..txn(zxid) }
    }

    #[test]
    fn a_proposal_that_died_with_its_leader_is_not_history() {
        // The old leader is back, too, and was told the first of the next epoch.
        let old = vec![set(A + 1, 1), set(A + 2, 2), set(B + 1, 2)];
        let new = vec![set(A + 1, 1), set(B + 1, 2)];
        let agreed = merge(vec![old, new.clone(), new]);
        let zxids: Vec<i64> = agreed.txns.iter().map(|txn| txn.zxid).collect();
        assert_eq!((zxids, agreed.discarded), (vec![A + 1, B + 1], 1));
    }

    #[test]
    fn a_proposal_of_one_member_that_leads_the_next_epoch_is_history() {
        // The others got it with a snapshot.
        let new = vec![set(A + 1, 1), set(A + 2, 2), set(B + 1, 3)];
        let others = vec![set(A + 1, 1), set(B + 1, 3)];
        let agreed = merge(vec![new, others.clone(), others]);
        let zxids: Vec<i64> = agreed.txns.iter().map(|txn| txn.zxid).collect();
        assert_eq!((zxids, agreed.discarded, agreed.holes), (vec![A + 1, A + 2, B + 1], 0, 2));
    }

    #[test]
    fn a_proposal_that_nobody_takes_into_the_next_epoch_is_not_history() {
        let (history, discarded, _) = merged(&[&[A + 1, A + 2], &[A + 1, B + 1], &[A + 1, B + 1]]);
        assert_eq!((history, discarded), (vec![A + 1, B + 1], 1));
    }

    #[test]
    fn the_newest_transactions_of_a_single_member_are_kept() {
        let (history, discarded, _) = merged(&[&[A + 1, A + 2], &[A + 1], &[A + 1]]);
        assert_eq!((history, discarded), (vec![A + 1, A + 2], 0));
    }

    /// The tree as it is after the transaction.
    fn tree(zxid: i64, digest: i64) -> Txn {
        Txn { digest: Some(digest), ..txn(zxid) }
    }

    fn session(zxid: i64, digest: i64) -> Txn {
        Txn { kind: CREATE_SESSION, ..tree(zxid, digest) }
    }

    #[test]
    fn a_leader_whose_tree_lacks_what_two_members_have_logged_decides() {
        let before = vec![tree(A + 1, 10), tree(A + 2, 20), tree(A + 3, 30)];
        let after = vec![session(B + 1, 10), tree(B + 2, 40), session(B + 3, 40)];
        let both = [before.clone(), after.clone()].concat();
        let alone = [vec![tree(A + 1, 10)], after].concat();
        let agreed = merge(vec![both.clone(), before, alone]);
        let zxids: Vec<i64> = agreed.txns.iter().map(|txn| txn.zxid).collect();
        assert_eq!(zxids, [A + 1, B + 1, B + 2, B + 3]);
        assert_eq!((agreed.discarded, agreed.confirmed, agreed.disputes.len()), (2, 2, 0));
    }

    #[test]
    fn a_leader_that_has_what_only_one_member_has_logged_decides_too() {
        let log = vec![tree(A + 1, 10), tree(A + 2, 20), session(B + 1, 20)];
        let short = vec![tree(A + 1, 10), session(B + 1, 20)];
        let agreed = merge(vec![log, short.clone(), short]);
        assert_eq!((agreed.txns.len(), agreed.discarded, agreed.confirmed), (3, 0, 1));
    }

    #[test]
    fn a_history_that_the_digests_do_not_bear_out_is_reported() {
        let log = vec![tree(A + 1, 10), session(A + 3, 20)];
        assert_eq!(merge(vec![log]).disputes.len(), 1);
    }

    #[test]
    fn members_that_contradict_each_other_are_reported() {
        let other = Txn { checksum: 7, ..txn(A + 1) };
        assert_eq!(merge(vec![vec![txn(A + 1)], vec![other]]).disputes.len(), 1);
    }
}
