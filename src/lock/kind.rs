//! The kinds of claims, and which of them can hold at a time.

use super::strategy::Strategy;

/// What a claim is to others in its queue. A claim holds unless one before it keeps it out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Holds alone.
    #[default]
    Exclusive,
    /// Of a read/write lock: holds alone.
    Write,
    /// Of a read/write lock: holds with other readers.
    Read,
}

impl Kind {
    /// Whether a claim waits for an earlier one of that kind.
    pub(crate) fn waits_for(self, earlier: Kind) -> bool {
        !(self == Kind::Read && earlier == Kind::Read)
    }

    /// How many of a queue's claims hold, from the first on.
    pub(crate) fn holding(queue: impl IntoIterator<Item = Kind>) -> usize {
        let mut queue = queue.into_iter();
        match queue.next() {
            None => 0,
            Some(first) => 1 + queue.take_while(|kind| !kind.waits_for(first)).count(),
        }
    }

    /// Says what is wrong with contending for such a lock in that way, if anything is.
    pub(crate) fn check_strategy(self, strategy: Strategy) -> Result<(), &'static str> {
        if self == Kind::Exclusive || strategy == Strategy::Queue {
            return Ok(());
        }
        Err("readers and writers stand in a queue, so only the queue strategy knows them")
    }
}

#[cfg(test)]
mod tests {
    use super::Kind::{Exclusive, Read, Write};
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
            assert_eq!(Kind::holding(queue.clone()), holding, "{queue:?}");
        }
    }
}
