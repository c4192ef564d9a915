//! Who keeps a claim from holding, of those that are earlier in its queue.

use crate::lock::Kind;
use crate::zookeeper::name;

/// A rule of admission. Claims are given by their names in the directory, nearest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Admission {
    /// One holds at a time: all who are earlier.
    #[default]
    Exclusive,
    /// All who are earlier; they may be called in several ways.
    Writer,
    /// Those who are earlier and are no readers.
    Reader,
    /// Those who are earlier and are no plain readers.
    Upgradeable,
    /// Those who are earlier, but for the one that it belongs to and others of that kind (`upgrade.rs`).
    Upgrade,
    /// Nobody: in the place of a claim that holds.
    InPlace,
    /// Those who are earlier, unless there are so many permits for ours beside theirs (`permits.rs`).
    Permits(u32),
}

impl Admission {
    pub(crate) fn of(kind: Kind) -> Admission {
        match kind {
            Kind::Exclusive => Admission::Exclusive,
            Kind::Write => Admission::Writer,
            Kind::Read => Admission::Reader,
            Kind::Upgradeable => Admission::Upgradeable,
            Kind::Upgrade => Admission::Upgrade,
            Kind::Permits(number) => Admission::Permits(number),
        }
    }

    /// Those of the earlier claims that have to go before ours holds. The first is watched; once it is gone they
    /// are asked for anew.
    pub(crate) fn blockers<'a>(
        self,
        earlier: impl Iterator<Item = &'a str>,
    ) -> impl Iterator<Item = &'a str> {
        earlier.filter(move |claim| match self {
            Admission::Exclusive | Admission::Writer | Admission::Permits(_) => true,
            Admission::Reader => Kind::Read.waits_for(name::kind(claim)),
            Admission::Upgradeable => Kind::Upgradeable.waits_for(name::kind(claim)),
            Admission::Upgrade => Kind::Upgrade.waits_for(name::kind(claim)),
            Admission::InPlace => false,
        })
    }

    /// Whether every claim that is earlier blocks, whatever it is called, and is called as ours is. Then it is
    /// enough to know its number: the one before ours is what to watch, and who comes after the first is the next.
    pub(crate) fn is_by_number_alone(self) -> bool {
        self == Admission::Exclusive
    }
}
