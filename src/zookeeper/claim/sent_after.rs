//! Which claims of a directory a look-up can leave out, because they are older than those that are looked for.

use crate::zookeeper::name;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SentAfter {
    #[default]
    Nothing,
    Number {
        directory: i64,
        number: i32,
    },
    Unknown,
}

impl SentAfter {
    pub(crate) fn and(self, other: SentAfter) -> SentAfter {
        match (self, other) {
            (SentAfter::Nothing, one) | (one, SentAfter::Nothing) => one,
            (
                SentAfter::Number { directory, number },
                SentAfter::Number { directory: also, number: another },
            ) if directory == also => {
                let is_earlier = another.wrapping_sub(number) < 0;
                SentAfter::Number { directory, number: if is_earlier { another } else { number } }
            }
            _ => SentAfter::Unknown,
        }
    }

    /// Whether a look-up for claims that were sent after this finds those that were sent after `other`.
    pub(crate) fn covers(self, other: SentAfter) -> bool {
        self.and(other) == self
    }

    /// Whether a claim of that name in that directory can be one of them.
    pub(crate) fn allows(self, directory: i64, name: &str) -> bool {
        match (self, name::sequence(name)) {
            (SentAfter::Number { directory: of, number }, Some(its)) if of == directory => {
                its.wrapping_sub(number) > 0
                    || name::is_out_of_turn(its)
                    || name::is_in_anothers_place(name)
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_up_covers_claims_that_were_sent_after_its_number_in_its_directory() {
        use SentAfter::{Nothing, Number, Unknown};
        let number = |directory, number| Number { directory, number };
        for (look_up, sought, covers) in [
            (number(1, 4), number(1, 4), true),
            (number(1, 4), number(1, 9), true),
            (number(1, 9), number(1, 4), false),
            (number(1, i32::MAX), number(1, i32::MIN), true),
            (number(1, i32::MIN), number(1, i32::MAX), false),
            (number(1, 4), number(2, 4), false),
            (number(1, 4), Unknown, false),
            (Unknown, number(1, 4), true),
            (Unknown, Unknown, true),
            (number(1, 4), Nothing, true),
        ] {
            assert_eq!(look_up.covers(sought), covers, "{look_up:?} {sought:?}");
        }
    }
}
