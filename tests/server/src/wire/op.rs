//! The operations of the protocol.

use std::fmt;

/// An operation, as numbered on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names are ZooKeeper's own")]
pub enum Op {
    Create,
    Delete,
    Exists,
    GetData,
    SetData,
    GetAcl,
    SetAcl,
    GetChildren,
    Sync,
    Ping,
    GetChildren2,
    Check,
    Multi,
    Create2,
    Reconfig,
    CheckWatches,
    RemoveWatches,
    CreateContainer,
    DeleteContainer,
    CreateTtl,
    MultiRead,
    Auth,
    SetWatches,
    Sasl,
    GetEphemerals,
    GetAllChildrenNumber,
    SetWatches2,
    AddWatch,
    WhoAmI,
    CloseSession,
    /// The first frame of a connection in each direction, which has no number on the wire.
    Connect,
    /// A watch event, which answers no request.
    Event,
    /// A number that this crate does not know.
    Other(i32),
}

const NUMBERS: [(Op, i32); 31] = [
    (Op::Create, 1),
    (Op::Delete, 2),
    (Op::Exists, 3),
    (Op::GetData, 4),
    (Op::SetData, 5),
    (Op::GetAcl, 6),
    (Op::SetAcl, 7),
    (Op::GetChildren, 8),
    (Op::Sync, 9),
    (Op::Ping, 11),
    (Op::GetChildren2, 12),
    (Op::Check, 13),
    (Op::Multi, 14),
    (Op::Create2, 15),
    (Op::Reconfig, 16),
    (Op::CheckWatches, 17),
    (Op::RemoveWatches, 18),
    (Op::CreateContainer, 19),
    (Op::DeleteContainer, 20),
    (Op::CreateTtl, 21),
    (Op::MultiRead, 22),
    (Op::Auth, 100),
    (Op::SetWatches, 101),
    (Op::Sasl, 102),
    (Op::GetEphemerals, 103),
    (Op::GetAllChildrenNumber, 104),
    (Op::SetWatches2, 105),
    (Op::AddWatch, 106),
    (Op::WhoAmI, 107),
    (Op::Connect, -10),
    (Op::CloseSession, -11),
];

impl Op {
    pub(crate) fn from_number(number: i32) -> Op {
        let known = NUMBERS.iter().find(|(_, known)| *known == number);
        known.map_or(Op::Other(number), |(op, _)| *op)
    }

    pub(crate) fn number(self) -> i32 {
        match self {
            Op::Other(number) => number,
            Op::Event => 0,
            op => NUMBERS.iter().find(|(known, _)| *known == op).map_or(0, |(_, number)| *number),
        }
    }

    /// Whether the path is followed by whether to watch it.
    pub(crate) fn can_watch(self) -> bool {
        use Op::{Exists, GetChildren, GetChildren2, GetData};
        matches!(self, Exists | GetData | GetChildren | GetChildren2)
    }

    /// Whether the request's body starts with a path.
    pub(crate) fn starts_with_path(self) -> bool {
        use Op::{Auth, CloseSession, Connect, Event, Multi, MultiRead, Other, Ping, Reconfig};
        use Op::{Sasl, SetWatches, SetWatches2, WhoAmI};
        !matches!(
            self,
            Auth | CloseSession
                | Connect
                | Event
                | Multi
                | MultiRead
                | Other(_)
                | Ping
                | Reconfig
                | Sasl
                | SetWatches
                | SetWatches2
                | WhoAmI
        )
    }
}

/// A set of operations.
///
/// Made from one [`Op`], from an array of them, or named: [`Ops::any`], [`Ops::creates`], [`Ops::lists`].
#[derive(Clone, PartialEq, Eq)]
pub struct Ops {
    /// `None`: whatever a program asked for.
    list: Option<Vec<Op>>,
}

impl Ops {
    /// Whatever a program asked for: everything except pings and the opening of a session.
    pub fn any() -> Ops {
        Ops { list: None }
    }

    /// Every way to create a node.
    pub fn creates() -> Ops {
        [Op::Create, Op::Create2, Op::CreateContainer, Op::CreateTtl].into()
    }

    /// Both ways to list a node's children.
    pub fn lists() -> Ops {
        [Op::GetChildren, Op::GetChildren2].into()
    }

    /// Whether `op` belongs to the set.
    pub fn contains(&self, op: Op) -> bool {
        match &self.list {
            Some(list) => list.contains(&op),
            None => !matches!(op, Op::Ping | Op::Connect),
        }
    }
}

impl From<Op> for Ops {
    fn from(op: Op) -> Ops {
        [op].into()
    }
}

impl<const N: usize> From<[Op; N]> for Ops {
    fn from(ops: [Op; N]) -> Ops {
        Ops { list: Some(ops.to_vec()) }
    }
}

impl fmt::Debug for Ops {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.list.as_deref() {
            None => formatter.write_str("any"),
            Some([op]) => write!(formatter, "{op:?}"),
            Some(ops) => write!(formatter, "{ops:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_survives_its_number() {
        for (op, number) in NUMBERS {
            assert_eq!(Op::from_number(number), op);
            assert_eq!(op.number(), number);
        }
        assert_eq!(Op::from_number(9999), Op::Other(9999));
    }

    #[test]
    fn any_leaves_out_what_no_program_asked_for() {
        assert!(Ops::any().contains(Op::Multi));
        assert!(!Ops::any().contains(Op::Ping) && !Ops::any().contains(Op::Connect));
        assert!(Ops::from(Op::Ping).contains(Op::Ping));
    }
}
