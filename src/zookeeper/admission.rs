//! Who keeps a claim from holding, of those that are earlier in its queue.

/// A rule of admission. Claims are given by their names in the directory, nearest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Admission {
    /// One holds at a time: all who are earlier.
    #[default]
    Exclusive,
}

impl Admission {
    /// Those of the earlier claims that have to go before ours holds. The first is watched; once it is gone they
    /// are asked for anew.
    pub(super) fn blockers<'a>(
        self,
        earlier: impl Iterator<Item = &'a str>,
    ) -> impl Iterator<Item = &'a str> {
        match self {
            Admission::Exclusive => earlier,
        }
    }

    /// Whether every claim that is earlier blocks, whatever it is called. Then it is enough to know its number: the
    /// one before ours is what to watch, and who comes after the first is the next.
    pub(super) fn is_by_number_alone(self) -> bool {
        match self {
            Admission::Exclusive => true,
        }
    }
}
