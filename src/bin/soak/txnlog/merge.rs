//! The history that an ensemble has agreed on, out of what its members have logged.
//!
//! A member's log may hold less than that (it was down, and got a snapshot when it came back) and
//! more (proposals of a leader that died before anyone else had them). What two of three members
//! have logged was decided. What a single one has logged was not if another one, whose own log has
//! no hole there, went past it.

use std::collections::HashMap;

use super::txn::Txn;

/// What the members agreed on, in order.
#[derive(Debug, Default)]
pub struct Agreed {
    pub txns: Vec<Txn>,
    /// Proposals that were never decided.
    pub discarded: usize,
    /// Transactions that a member does not have because it got a snapshot instead.
    pub holes: usize,
    /// Where two members have logged different things under one zxid: their fault, not a lock's.
    pub disputes: Vec<String>,
}

/// `logs`: each member's transactions in the order of its files.
pub fn merge(logs: Vec<Vec<Txn>>) -> Agreed {
    let mut agreed = Agreed::default();
    let mut members: Vec<Member> = logs.into_iter().map(Member::new).collect();
    let mut zxids: Vec<i64> = members.iter().flat_map(|member| member.order.clone()).collect();
    zxids.sort_unstable();
    zxids.dedup();
    for zxid in zxids {
        let votes: Vec<u32> =
            members.iter().filter_map(|member| Some(member.txns.get(&zxid)?.checksum)).collect();
        if votes.windows(2).any(|two| two[0] != two[1]) {
            agreed.disputes.push(format!("zxid {zxid:#x} is not the same on all members"));
        }
        let is_single = members.len() > 1 && votes.len() == 1;
        if is_single && members.iter().any(|member| member.went_past(zxid)) {
            agreed.discarded += 1;
            continue;
        }
        agreed.holes += members.len() - votes.len();
        agreed.txns.extend(members.iter_mut().find_map(|member| member.txns.remove(&zxid)));
    }
    agreed
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
        Txn { zxid, session: 1, time: 0, kind: -1, changes: Vec::new(), checksum: zxid as u32 }
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

    #[test]
    fn members_that_contradict_each_other_are_reported() {
        let other = Txn { checksum: 7, ..txn(A + 1) };
        assert_eq!(merge(vec![vec![txn(A + 1)], vec![other]]).disputes.len(), 1);
    }
}
