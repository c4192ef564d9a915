//! The kinds of claims, and which of them can hold at a time.

use super::strategy::Strategy;

/// What a claim is to others in its queue. A claim holds unless those before it keep it out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Holds alone.
    #[default]
    Exclusive,
    /// Of a read/write lock: holds alone.
    Write,
    /// Of a read/write lock: holds with other readers.
    Read,
    /// Of a semaphore: holds with others, as long as there are so many permits for it.
    Permits(u32),
}

impl Kind {
    /// Whether an earlier one of that kind can keep a claim out.
    pub(crate) fn waits_for(self, earlier: Kind) -> bool {
        !(self == Kind::Read && earlier == Kind::Read)
    }

    /// How many of a queue's claims hold, from the first on, where there are so many permits.
    pub(crate) fn holding(limit: u32, queue: impl IntoIterator<Item = Kind>) -> usize {
        let mut queue = queue.into_iter().peekable();
        let mut left = limit;
        match queue.peek() {
            None => 0,
            Some(Kind::Exclusive | Kind::Write) => 1,
            Some(Kind::Read) => queue.take_while(|kind| *kind == Kind::Read).count(),
            Some(Kind::Permits(_)) => {
                let mut is_left_for = |kind: &Kind| match kind {
                    Kind::Permits(number) => left.checked_sub(*number).map(|less| left = less),
                    _ => None,
                };
                queue.take_while(|kind| is_left_for(kind).is_some()).count()
            }
        }
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
            Kind::Read | Kind::Write | Kind::Permits(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Kind::{Exclusive, Permits, Read, Write};
    use super::*;

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
            assert_eq!(Kind::holding(0, queue.clone()), holding, "{queue:?}");
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
            assert_eq!(Kind::holding(3, queue.clone()), holding, "{queue:?}");
        }
    }
}
