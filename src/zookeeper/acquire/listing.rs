//! The claims in a queue's directory and their order, as one listing shows them.

use crate::znode::Stat;
use crate::zookeeper::name;

/// Claims are children whose names end in a sequence number; others are ignored.
///
/// Sequence numbers are serial numbers: after the largest comes the smallest. Of two numbers less than
/// half the circle apart, the one behind is earlier. Pairwise comparison gives no order for numbers from
/// all around the circle. Their distances from one of them do.
pub(crate) struct Listing {
    claims: Vec<Claim>,
    /// The first child that was listed, from which the order of all is measured.
    origin: i32,
    pub(crate) directory: Stat,
    /// Whether the numbers say nothing of the order any more.
    pub(crate) is_out_of_turn: bool,
}

/// A claim in the place of another that waits goes before that.
type Claim = (i32, bool, String);

fn claim(name: String) -> Option<Claim> {
    let is_behind = !(name::is_upgrade(&name) && name::is_in_anothers_place(&name));
    Some((name::sequence(&name)?, is_behind, name))
}

impl Listing {
    pub(crate) fn new(children: Vec<String>, directory: Stat) -> Listing {
        let mut claims: Vec<_> = children.into_iter().filter_map(claim).collect();
        let origin = claims.first().map_or(0, |(number, ..)| *number);
        claims.sort_unstable();
        let is_out_of_turn = claims.iter().any(|(number, ..)| name::is_out_of_turn(*number));
        Listing { claims, origin, directory, is_out_of_turn }
    }

    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.claims.binary_search(&claim(name.to_owned())?).ok()
    }

    /// The claims before the one that stands there, nearest first.
    pub(crate) fn before(&self, place: usize) -> impl Iterator<Item = &str> {
        let (own, count) = (self.claims[place].0, self.claims.len());
        let around = (1..count).map(move |step| &self.claims[(place + count - step) % count]);
        // Of two with one number, the name decides.
        around.enumerate().map_while(move |(step, (number, _, name))| {
            let is_before = match number.wrapping_sub(own) {
                0 => step < place,
                distance => distance < 0,
            };
            is_before.then_some(name.as_str())
        })
    }

    /// Whether `other` is before `own`, if one of the two is in the place of another claim; otherwise `None`.
    pub(crate) fn is_placed_before(&self, other: &str, own: &str) -> Option<bool> {
        let [placed, also] = [other, own].map(name::is_in_anothers_place);
        let in_turn = |name| name::number_in_turn(name).is_some();
        match (placed || also, in_turn(other), in_turn(own)) {
            (true, true, true) => {
                let place = self.find(own)?;
                Some(self.before(place).any(|before| before == other))
            }
            (true, other, _) => Some(other),
            (false, ..) => None,
        }
    }

    pub(crate) fn rank(&self, place: usize) -> usize {
        let start = self.claims[place].0.wrapping_add(i32::MIN);
        let from = self.claims.partition_point(|(number, ..)| *number < start);
        if from <= place { place - from } else { place + self.claims.len() - from }
    }

    pub(crate) fn in_order(&self) -> impl Iterator<Item = &str> {
        let start = self.origin.wrapping_add(i32::MIN);
        let from = self.claims.partition_point(|(number, ..)| *number < start);
        let (after, first) = self.claims.split_at(from);
        first.iter().chain(after).map(|(.., name)| name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::Kind;
    use crate::zookeeper::name::{Naming, numbered_name};

    fn ours(sequence: i32) -> String {
        numbered_name(&Naming::Of(Kind::Exclusive).prefix(1, 0x2a), sequence)
    }

    fn listing(names: &[String]) -> Listing {
        Listing::new(names.to_vec(), Stat::default())
    }

    fn names(numbers: &[i32]) -> Vec<String> {
        numbers.iter().map(|number| ours(*number)).collect()
    }

    fn before(listing: &Listing, name: &str) -> Vec<String> {
        listing.before(listing.find(name).unwrap()).map(String::from).collect()
    }

    #[test]
    fn order_survives_the_wrap_of_the_counter() {
        let listing = listing(&names(&[i32::MIN + 1, i32::MAX, i32::MIN, i32::MAX - 1]));
        let ordered = names(&[i32::MAX - 1, i32::MAX, i32::MIN, i32::MIN + 1]);
        assert_eq!(listing.in_order().collect::<Vec<_>>(), ordered);
        assert_eq!(before(&listing, &ordered[2]), [&*ordered[1], &*ordered[0]]);
        assert_eq!(before(&listing, &ordered[0]), [""; 0]);
    }

    #[test]
    fn at_the_end_of_the_counter_numbers_are_not_trusted() {
        for at_the_end in [i32::MAX, i32::MIN, i32::MIN + 1] {
            assert!(listing(&names(&[7, at_the_end])).is_out_of_turn);
        }
        let ordinary = listing(&names(&[0, 7, i32::MAX - 1, -1, i32::MIN / 2]));
        assert!(!ordinary.is_out_of_turn);
    }

    #[test]
    fn numbers_from_all_around_the_circle_are_put_in_some_line() {
        for _ in 0..5 {
            let mut numbers: Vec<i32> = (0..60).map(|_| fastrand::i32(..)).collect();
            numbers.sort_unstable();
            numbers.dedup();
            let listing = listing(&names(&numbers));
            assert_eq!(listing.in_order().count(), numbers.len());
            for own in &numbers {
                let before = before(&listing, &ours(*own));
                let number = |name: &String| name::sequence(name).unwrap();
                let distances: Vec<i32> =
                    before.iter().map(|name| own.wrapping_sub(number(name))).collect();
                assert!(distances.is_sorted(), "nearest first: {distances:?}");
                let behind = numbers.iter().filter(|other| other.wrapping_sub(*own) < 0).count();
                assert_eq!(distances.len(), behind);
            }
        }
    }

    #[test]
    fn a_prefix_that_sorts_otherwise_changes_nothing() {
        let listing = listing(
            &[
                "zz-lock-0000000001",
                "zl-lock-0000000003",
                "aa-lock-0000000002",
                "readme",
                "aa-lock-0000000003",
            ]
            .map(String::from),
        );
        assert_eq!(
            before(&listing, "zl-lock-0000000003"),
            ["aa-lock-0000000003", "aa-lock-0000000002", "zz-lock-0000000001"]
        );
        assert_eq!(
            before(&listing, "aa-lock-0000000003"),
            ["aa-lock-0000000002", "zz-lock-0000000001"]
        );
        assert_eq!(listing.find("zl-lock-0000000009"), None);
        assert_eq!(listing.find("readme"), None);
    }
}
