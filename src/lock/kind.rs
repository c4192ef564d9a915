//! The kinds of claims, and which of them can hold at a time.

use super::strategy::Strategy;

/// How a claim affects the others in its queue. A claim holds unless claims before it exclude it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    #[default]
    Exclusive,
    /// Of a read/write lock: holds alone.
    Write,
    /// Of a read/write lock: holds with other readers.
    Read,
    /// Of a read/write lock: holds with readers, one such at a time, and may become a writer.
    Upgradeable,
    /// Of a read/write lock: by this claim an upgradeable reader becomes a writer. It holds only together with that
    /// reader's claim.
    Upgrade,
    /// Of a semaphore: holds with others, if this number of permits is left for it.
    Permits(u32),
}

impl Kind {
    /// Whether an earlier one of that kind can keep a claim out.
    pub(crate) fn waits_for(self, earlier: Kind) -> bool {
        match self {
            Kind::Read => !earlier.reads(),
            Kind::Upgradeable => earlier != Kind::Read,
            // The one that it belongs to holds; others of that kind wait for that.
            Kind::Upgrade => earlier != Kind::Upgradeable,
            Kind::Exclusive | Kind::Write | Kind::Permits(_) => true,
        }
    }

    /// Whether it leaves room for readers.
    pub(crate) fn reads(self) -> bool {
        matches!(self, Kind::Read | Kind::Upgradeable)
    }

    /// Whether a hold of this kind may change to another kind.
    pub(crate) fn can_change(self) -> bool {
        matches!(self, Kind::Write | Kind::Upgradeable | Kind::Upgrade)
    }

    /// The places of the claims in a queue that hold, if the semaphore has `limit` permits.
    pub(crate) fn holding(
        limit: u32,
        queue: impl IntoIterator<Item = Kind>,
    ) -> impl Iterator<Item = usize> {
        let mut left = limit;
        let mut before = Before::Nobody;
        // Looks no further than where nobody behind can hold.
        let holds = move |(at, kind)| {
            let (holds, now) = match (&before, kind) {
                (Before::Nobody, Kind::Read) => (true, Before::Readers),
                (Before::Nobody, Kind::Upgradeable) => (true, Before::Upgradeable),
                (Before::Nobody | Before::Takers, Kind::Permits(number)) => {
                    left = left.checked_sub(number)?;
                    (true, Before::Takers)
                }
                (Before::Nobody, _) => (true, Before::Alone),
                (Before::Readers, Kind::Read) => (true, Before::Readers),
                (Before::Readers, Kind::Upgradeable) => (true, Before::Both),
                (Before::Upgradeable | Before::Both, Kind::Read) => (true, Before::Both),
                (Before::Upgradeable, Kind::Upgradeable) => (false, Before::Upgradeable),
                (Before::Both, Kind::Upgradeable) => (false, Before::Both),
                (Before::Upgradeable, Kind::Upgrade) => (true, Before::Alone),
                _ => return None,
            };
            before = now;
            Some(holds.then_some(at))
        };
        queue.into_iter().enumerate().map_while(holds).flatten()
    }

    /// Says what is wrong with contending for such a lock in that way, if anything is.
    pub(crate) fn check(
        self,
        strategy: Strategy,
        path: &str,
        limit: u32,
    ) -> Result<(), &'static str> {
        match self {
            Kind::Exclusive => Ok(()),
            _ if strategy != Strategy::Queue => {
                Err("only the queue strategy knows locks that are shared")
            }
            Kind::Permits(_) if path == "/" => Err("a semaphore needs a path of its own"),
            Kind::Permits(0) => Err("no permits are asked for"),
            Kind::Permits(_) if limit == 0 => Err("a semaphore has one permit at least"),
            Kind::Read | Kind::Upgradeable | Kind::Upgrade | Kind::Write | Kind::Permits(_) => {
                Ok(())
            }
        }
    }
}

/// The holders of a queue so far.
enum Before {
    Nobody,
    Readers,
    /// An upgradeable one, and nobody else.
    Upgradeable,
    /// An upgradeable one and readers.
    Both,
    Takers,
    /// One that leaves no room.
    Alone,
}

#[cfg(test)]
mod tests {
    use super::Kind::{Exclusive, Permits, Read, Upgrade, Upgradeable, Write};
    use super::*;

    fn holding(limit: u32, queue: &[Kind]) -> Vec<usize> {
        Kind::holding(limit, queue.iter().copied()).collect()
    }

    #[test]
    fn readers_hold_up_to_the_first_writer_and_all_others_alone() {
        for (queue, holding) in [
            (vec![], 0),
            (vec![Exclusive, Exclusive], 1),
            (vec![Write, Read], 1),
            (vec![Write, Write], 1),
            (vec![Read], 1),
            (vec![Read, Read, Read], 3),
            (vec![Read, Read, Write, Read], 2),
            (vec![Read, Exclusive, Read], 1),
        ] {
            assert_eq!(super::tests::holding(0, &queue).len(), holding, "{queue:?}");
        }
    }

    #[test]
    fn of_those_who_may_upgrade_one_holds_with_readers_and_one_that_upgrades_alone() {
        for (queue, holds) in [
            (vec![Upgradeable, Read, Upgradeable, Read], vec![0, 1, 3]),
            (vec![Read, Upgradeable, Upgradeable], vec![0, 1]),
            (vec![Upgradeable, Upgradeable, Write, Read], vec![0]),
            (vec![Upgradeable, Upgrade, Read], vec![0, 1]),
            (vec![Upgradeable, Read, Upgrade, Read], vec![0, 1]),
            // Another one that waits is not waited for.
            (vec![Upgradeable, Upgradeable, Upgrade, Write], vec![0, 2]),
            (vec![Read, Upgradeable, Upgrade], vec![0, 1]),
            (vec![Write, Upgradeable], vec![0]),
            (vec![Upgradeable, Permits(1)], vec![0]),
        ] {
            assert_eq!(holding(3, &queue), holds, "{queue:?}");
        }
    }

    #[test]
    fn permits_are_given_in_their_order_up_to_the_first_for_whom_there_are_too_few() {
        for (queue, holding) in [
            (vec![Permits(1), Permits(1), Permits(1), Permits(1)], 3),
            (vec![Permits(2), Permits(2), Permits(1)], 1),
            (vec![Permits(3), Permits(1)], 1),
            (vec![Permits(4), Permits(1)], 0),
            (vec![Permits(1), Write, Permits(1)], 1),
            (vec![Write, Permits(1)], 1),
            (vec![Permits(1), Permits(u32::MAX)], 1),
        ] {
            assert_eq!(super::tests::holding(3, &queue).len(), holding, "{queue:?}");
        }
    }
}
