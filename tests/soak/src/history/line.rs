//! Which claims of a lock hold at a time: as their names and their order have it.

use std::collections::{BTreeMap, HashSet};

use super::Point;
use crate::locks::Sort;

/// What a claim is to others in its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Holds alone: a writer too.
    Alone,
    /// Holds with other readers.
    Reads,
    /// Holds with others, as long as there are so many permits.
    Permits(u32),
}

impl Part {
    /// By the mark in the claim's name.
    pub fn of(sort: Sort, name: &str) -> Part {
        let permits = || name.split_once("-permits-")?.1.split_once('-')?.0.parse().ok();
        match sort {
            Sort::ReadWrite if name.contains("__READ__") => Part::Reads,
            Sort::Semaphore => permits().map_or(Part::Alone, Part::Permits),
            _ => Part::Alone,
        }
    }

    /// Whether the two can hold at one time, if there are permits enough.
    pub fn goes_with(self, other: Part) -> bool {
        use Part::{Permits, Reads};
        matches!((self, other), (Reads, Reads) | (Permits(_), Permits(_)))
    }
}

/// The number at the end of a claim's name, as servers write it.
pub fn number(name: &str) -> Option<i32> {
    name.get(name.len().checked_sub(10)?..)?.parse().ok()
}

/// How many permits the data of a semaphore's directory speak of.
pub fn limit(data: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(data).ok()?;
    text.lines().find_map(|line| line.strip_prefix("limit="))?.parse().ok()
}

/// One claim in line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub lock: usize,
    pub place: i32,
    pub part: Part,
    pub session: i64,
    /// The transaction that made it.
    pub made: Point,
}

/// Those that hold, of a line in its order. Who held before, of `held`, goes on to: also when there are fewer permits
/// than there were.
pub fn holders<'a>(
    line: impl Iterator<Item = (&'a str, &'a Claim)>,
    limit: u32,
    held: &HashSet<i64>,
) -> BTreeMap<i64, &'a str> {
    let mut holders = BTreeMap::new();
    let mut left = limit;
    let mut first = None;
    for (path, claim) in line {
        let part = *first.get_or_insert(claim.part);
        let is_first = holders.is_empty();
        let holds = match (part, claim.part) {
            (Part::Permits(_), Part::Permits(number)) => {
                let is_left = left >= number || held.contains(&claim.made.zxid);
                left = left.saturating_sub(number);
                is_left
            }
            (Part::Reads, Part::Reads) => true,
            _ => is_first,
        };
        if !holds {
            break;
        }
        holders.insert(claim.made.zxid, path);
    }
    holders
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Moment;

    /// How many hold of such a line, with three permits, where the claims of `held` did before.
    fn holding(parts: &[Part], held: &[i64]) -> usize {
        let claims: Vec<Claim> = (1..)
            .zip(parts)
            .map(|(place, part)| {
                let (lock, session) = (0, 1);
                let made = Point { zxid: i64::from(place), at: Moment::default() };
                Claim { lock, place, part: *part, session, made }
            })
            .collect();
        holders(claims.iter().map(|it| ("", it)), 3, &held.iter().copied().collect()).len()
    }

    #[test]
    fn names_carry_the_part_of_a_claim_and_its_number() {
        for (sort, name, part) in [
            (Sort::ReadWrite, "zl-1f-__READ__0000000007", Part::Reads),
            (Sort::ReadWrite, "zl-1f-__WRIT__0000000007", Part::Alone),
            (Sort::Semaphore, "zl-1f-permits-3-0000000007", Part::Permits(3)),
            (Sort::Queue, "zl-1f-lock-0000000007", Part::Alone),
        ] {
            assert_eq!((Part::of(sort, name), number(name)), (part, Some(7)), "{name}");
        }
        assert_eq!((number("limit"), number("handover-x")), (None, None));
        assert_eq!(limit(b"zklock/1 semaphore\nlimit=4\nmost=9\n"), Some(4));
    }

    #[test]
    fn readers_hold_up_to_the_first_writer_and_permits_up_to_the_limit() {
        use Part::{Alone, Permits, Reads};
        for (line, held, count) in [
            (&[][..], &[][..], 0),
            (&[Reads, Reads, Alone, Reads], &[], 2),
            (&[Alone, Reads], &[], 1),
            (&[Permits(1), Permits(2), Permits(1)], &[], 2),
            (&[Permits(2), Permits(2), Permits(1)], &[], 1),
            // There were more.
            (&[Permits(2), Permits(2), Permits(1)], &[1, 2], 2),
            (&[Permits(4)], &[], 0),
        ] {
            assert_eq!(holding(line, held), count, "{line:?}");
        }
    }
}
