//! What is done to servers and clients, and the record of it.

use std::fmt;
use std::time::Duration;

use crate::clock::Moment;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    LeaderKilled,
    FollowerKilled,
    LeaderFrozen,
    FollowerFrozen,
    /// Stopped until about the time at which its followers give it up.
    LeaderStalled,
    /// Stopped again and again, with a few milliseconds between.
    LeaderStutters,
    /// A follower stopped, and links of clients cut with it: what it has heard of them lately, the
    /// leader never hears.
    FollowerSevered,
    QuorumDown,
    ClientKilled,
    ClientFrozen,
    LinkCut,
    /// An operator deleted a lock with all its claims.
    LockDeleted,
    /// An operator broke a hold.
    HoldBroken,
}

use FaultKind::{
    ClientFrozen, ClientKilled, FollowerFrozen, FollowerKilled, FollowerSevered, HoldBroken,
    LeaderFrozen, LeaderKilled, LeaderStalled, LeaderStutters, LinkCut, LockDeleted, QuorumDown,
};

/// Who a fault is done to. Each has a lane of faults of its own, so those of different ones overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victims {
    Servers,
    Clients,
    Locks,
}

impl FaultKind {
    pub const ALL: [FaultKind; 13] = [
        LeaderKilled,
        FollowerKilled,
        LeaderFrozen,
        FollowerFrozen,
        LeaderStalled,
        LeaderStutters,
        FollowerSevered,
        QuorumDown,
        ClientKilled,
        ClientFrozen,
        LinkCut,
        LockDeleted,
        HoldBroken,
    ];

    pub fn victims(self) -> Victims {
        match self {
            ClientKilled | ClientFrozen | LinkCut => Victims::Clients,
            LockDeleted | HoldBroken => Victims::Locks,
            _ => Victims::Servers,
        }
    }

    pub fn of_key(key: &str) -> Option<FaultKind> {
        FaultKind::ALL.into_iter().find(|kind| kind.key() == key)
    }

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            LeaderKilled => "leader killed",
            FollowerKilled => "follower killed",
            LeaderFrozen => "leader frozen",
            FollowerFrozen => "follower frozen",
            LeaderStalled => "leader stalled",
            LeaderStutters => "leader stutters",
            FollowerSevered => "follower severed",
            QuorumDown => "all servers down",
            ClientKilled => "client killed -9",
            ClientFrozen => "client frozen",
            LinkCut => "client's link cut",
            LockDeleted => "lock deleted",
            HoldBroken => "hold broken",
        }
    }

    /// For programs.
    pub fn key(self) -> &'static str {
        match self {
            LeaderKilled => "leader_killed",
            FollowerKilled => "follower_killed",
            LeaderFrozen => "leader_frozen",
            FollowerFrozen => "follower_frozen",
            LeaderStalled => "leader_stalled",
            LeaderStutters => "leader_stutters",
            FollowerSevered => "follower_severed",
            QuorumDown => "quorum_down",
            ClientKilled => "client_killed",
            ClientFrozen => "client_frozen",
            LinkCut => "link_cut",
            LockDeleted => "lock_deleted",
            HoldBroken => "hold_broken",
        }
    }
}

/// One fault that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub kind: FaultKind,
    /// Just before it was done.
    pub from: Moment,
    /// Just after it was undone.
    pub until: Moment,
    /// The number of the member, of the client process or of the lock; of no meaning for
    /// `QuorumDown`.
    pub target: u32,
}

impl Fault {
    pub fn parse(line: &str) -> Option<Fault> {
        let mut words = line.split('\t');
        let kind = FaultKind::of_key(words.next()?)?;
        let mut number = || words.next()?.parse::<i64>().ok();
        let (from, until) = (Moment(number()?), Moment(number()?));
        Some(Fault { kind, from, until, target: u32::try_from(number()?).ok()? })
    }

    pub fn lasted(&self) -> Duration {
        self.until.since(self.from)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\t{}\t{}\t{}", self.kind.key(), self.from.0, self.until.0, self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_read_as_it_was_written() {
        for kind in FaultKind::ALL {
            let fault = Fault { kind, from: Moment(5), until: Moment(9), target: 2 };
            assert_eq!(Fault::parse(&fault.to_string()), Some(fault));
        }
        assert_eq!(Fault::parse("leader_killed\t1\t2"), None);
    }
}
