//! Who may hold together: the rule as the checks know it, apart from the code that is checked.

/// What a claim leaves to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Share {
    /// Nothing: so do writers, and whoever is called in a way that is not known.
    Alone,
    /// Whatever other readers need.
    Reads,
}

impl Share {
    /// What a letter stands for in the name of a scenario.
    pub(super) fn named(letter: char) -> Share {
        match letter {
            'w' => Share::Alone,
            'r' => Share::Reads,
            _ => panic!("r reads, w writes, and {letter} does nothing"),
        }
    }

    /// By the name of a claim.
    pub(super) fn of(name: &str) -> Share {
        if name.contains("-__READ__") { Share::Reads } else { Share::Alone }
    }

    /// Whether two may hold at a time.
    pub(super) fn goes_with(self, other: Share) -> bool {
        self == Share::Reads && other == Share::Reads
    }
}

/// Whether all of them may hold at a time.
pub(super) fn may_hold_together(holders: &[Share]) -> bool {
    let pairs = holders.iter().enumerate();
    pairs
        .flat_map(|(at, one)| holders[at + 1..].iter().map(move |other| (one, other)))
        .all(|(one, other)| one.goes_with(*other))
}
