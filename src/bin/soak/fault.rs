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
    QuorumDown,
    ClientKilled,
    ClientFrozen,
    LinkCut,
}

use FaultKind::{
    ClientFrozen, ClientKilled, FollowerFrozen, FollowerKilled, LeaderFrozen, LeaderKilled,
    LinkCut, QuorumDown,
};

impl FaultKind {
    pub const ALL: [FaultKind; 8] = [
        LeaderKilled,
        FollowerKilled,
        LeaderFrozen,
        FollowerFrozen,
        QuorumDown,
        ClientKilled,
        ClientFrozen,
        LinkCut,
    ];

    pub fn is_of_servers(self) -> bool {
        !matches!(self, ClientKilled | ClientFrozen | LinkCut)
    }

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            LeaderKilled => "leader killed",
            FollowerKilled => "follower killed",
            LeaderFrozen => "leader frozen",
            FollowerFrozen => "follower frozen",
            QuorumDown => "all servers down",
            ClientKilled => "client killed -9",
            ClientFrozen => "client frozen",
            LinkCut => "client's link cut",
        }
    }

    /// For programs.
    pub fn key(self) -> &'static str {
        match self {
            LeaderKilled => "leader_killed",
            FollowerKilled => "follower_killed",
            LeaderFrozen => "leader_frozen",
            FollowerFrozen => "follower_frozen",
            QuorumDown => "quorum_down",
            ClientKilled => "client_killed",
            ClientFrozen => "client_frozen",
            LinkCut => "link_cut",
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
    /// The number of the member or of the client process; of no meaning for `QuorumDown`.
    pub target: u32,
}

impl Fault {
    pub fn parse(line: &str) -> Option<Fault> {
        let mut words = line.split('\t');
        let key = words.next()?;
        let kind = FaultKind::ALL.into_iter().find(|kind| kind.key() == key)?;
        let mut number = || words.next()?.parse::<i64>().ok();
        let (from, until) = (Moment(number()?), Moment(number()?));
        Some(Fault { kind, from, until, target: u32::try_from(number()?).ok()? })
    }

    pub fn lasted(&self) -> Duration {
        self.until.since(self.from)
    }

    /// Who it was done to.
    pub fn victim(&self) -> String {
        match self.kind {
            QuorumDown => "all servers".to_owned(),
            kind if kind.is_of_servers() => format!("server {}", self.target + 1),
            _ => format!("client {}", self.target),
        }
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
