//! The history that an ensemble has agreed on, out of what its members have logged.
//!
//! A member's log may hold less than that (it was down, and got a snapshot when it came back) and
//! more: proposals that died with their leader, which it keeps when it comes back by a snapshot.
//! Leaders tell which: with each transaction they log a digest of their whole tree. A session that
//! begins changes nothing in the tree; so where one begins an epoch, its digest is that of the last
//! transaction that counts of the epoch before. And all through the history, whenever a session
//! begins, its digest has to be the one before: so the history is the servers' own.
//!
//! Where an epoch begins with something else, what two members have logged counts, and what a single
//! one has logged does not if another one's log goes straight on with the next epoch.

use std::collections::HashMap;

use super::txn::{CREATE_SESSION, ERROR, Txn};

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
        let cut = beginning(&txns).map(|digest| cut_at_digest(&mut agreed, digest));
        if cut != Some(true) {
            cut_by_vote(&mut agreed, &members);
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

fn cut_by_vote(agreed: &mut Agreed, members: &[Member]) {
    let Some(last) = agreed.txns.last().map(|txn| epoch(txn.zxid)) else {
        return;
    };
    let is_lost = |txn: &Txn| {
        let votes = members.iter().filter(|member| member.txns.contains_key(&txn.zxid)).count();
        let is_single = members.len() > 1 && votes == 1 && epoch(txn.zxid) == last;
        is_single && members.iter().any(|member| member.went_past(txn.zxid))
    };
    let before = agreed.txns.len();
    agreed.txns.retain(|txn| !is_lost(txn));
    agreed.discarded += before - agreed.txns.len();
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

    /// Whether it goes on, without that transaction, with the very first one of a later epoch.
    fn went_past(&self, zxid: i64) -> bool {
        let next = self.order.get(self.order.partition_point(|one| *one < zxid));
        // Numbers within an epoch begin with 1 and have no gaps: what follows a snapshot begins
        // somewhere else.
        next.is_some_and(|next| epoch(*next) > epoch(zxid) && counter(*next) == 1)
    }
}

fn epoch(zxid: i64) -> i64 {
    zxid >> 32
}

fn counter(zxid: i64) -> i64 {
    zxid & 0xffff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_proposal_that_died_with_its_leader_is_not_history() {
        let (history, discarded, holes) =
            merged(&[&[A + 1, A + 2, A + 3], &[A + 1, B + 1], &[A + 1, B + 1]]);
        assert_eq!((history, discarded, holes), (vec![A + 1, B + 1], 2, 1));
    }

    #[test]
    fn the_newest_transactions_of_a_single_member_are_kept() {
        let (history, discarded, _) = merged(&[&[A + 1, A + 2], &[A + 1], &[A + 1]]);
        assert_eq!((history, discarded), (vec![A + 1, A + 2], 0));
    }

    #[test]
    fn a_member_that_got_a_snapshot_is_no_witness() {
        let (history, discarded, holes) =
            merged(&[&[A + 1, A + 2, A + 3, B + 1], &[A + 1, B + 7], &[A + 1, B + 9]]);
        assert_eq!((history.len(), discarded), (6, 0));
        assert_eq!(holes, 2 + 2 + 2 + 2 + 2);
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
