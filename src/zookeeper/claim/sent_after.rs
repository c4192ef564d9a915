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
