//! Who may hold together: the rule as the checks know it, apart from the code that is checked.

/// What a claim leaves to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Share {
    /// Nothing: so do writers, and whoever is called in a way that is not known.
    Alone,
    /// Whatever other readers need.
    Reads,
    /// That, and nothing to another that may become a writer.
    Looks,
    /// What is left of a semaphore's permits.
    Takes(u32),
}

impl Share {
    /// What a letter stands for in the name of a scenario.
    pub(super) fn named(letter: char) -> Share {
        match letter {
            'w' | 'd' | 'c' => Share::Alone,
            'r' => Share::Reads,
            'u' | 'v' => Share::Looks,
            '1'..='9' => Share::Takes(letter.to_digit(10).unwrap_or(1)),
            _ => panic!(
                "r reads, u looks and upgrades, v goes back and forth, w writes, d writes and downgrades, c in \
                 steps, 2 takes two permits, and {letter} does nothing"
            ),
        }
    }

    /// By the name of a claim.
    pub(super) fn of(name: &str) -> Share {
        if name.contains("-__READ__") {
            return if name.contains("-up-") { Share::Looks } else { Share::Reads };
        }
        let permits = name.rsplit_once("-permits-").and_then(|(_, rest)| rest.split('-').next());
        permits.and_then(|permits| permits.parse().ok()).map_or(Share::Alone, Share::Takes)
    }

    /// Whether two may hold at a time, where there are so many permits.
    pub(super) fn goes_with(self, other: Share, limit: u32) -> bool {
        match (self, other) {
            (Share::Reads, Share::Reads | Share::Looks) | (Share::Looks, Share::Reads) => true,
            (Share::Takes(one), Share::Takes(other)) => one + other <= limit,
            _ => false,
        }
    }

    /// Whether it may not hold beside those, all of whom may.
    pub(super) fn is_kept_out_by(
        self,
        others: impl IntoIterator<Item = Share>,
        limit: u32,
    ) -> bool {
        let mut taken = 0;
        others.into_iter().any(|other| {
            taken += if let Share::Takes(permits) = other { permits } else { 0 };
            let is_enough = !matches!(self, Share::Takes(permits) if taken + permits > limit);
            !(self.goes_with(other, limit) && is_enough)
        })
    }
}

/// Whether all of them may hold at a time.
pub(super) fn may_hold_together(holders: &[Share], limit: u32) -> bool {
    let earlier = |at: usize| holders[..at].iter().copied();
    holders.iter().enumerate().all(|(at, share)| !share.is_kept_out_by(earlier(at), limit))
}
