//! A cache of a queue's head: the numbers of its oldest elements, as of a listing.
//!
//! New elements get higher numbers, so a long queue need not be listed for each element: the oldest is
//! the first known one that still exists. This has two exceptions. A recreated queue counts from zero
//! again. And a client may create an element under a number of its choice, for example to put one back.
//! So the cache is bound to the znode's czxid and to the count of its creates:
//! - Another czxid: all of it is forgotten.
//! - A short queue is listed together with the reading of its first elements.
//! - Of a long queue the stat is read together with them. Where something was created since the
//!   listing, it is listed again once enough elements were asked for to be worth it. So an element
//!   that was put back is found after a small part of the queue at the latest.
//!
//! All threads of a program share it, and nobody has a number for himself: each goes for the oldest
//! element, as consumers in different processes do.

use std::collections::VecDeque;

use crate::znode::Stat;

#[derive(Default)]
pub(super) struct HeadCache {
    /// When the queue's znode was created.
    czxid: i64,
    /// A count that grows with each create below it.
    creates: i32,
    /// Oldest first.
    numbers: VecDeque<i32>,
    /// How many there were in the listing.
    listed: usize,
    /// How many elements were asked for since, found or gone.
    asked: usize,
    /// How many were gone before the latest that was not.
    gone: usize,
}

/// Up to so many names cost no more than a stat.
const SHORT: usize = 16;
/// A listing is worth so many requests for one element, and one more for so many names.
const MISSES: usize = 2;
const NAMES_PER_MISS: usize = 64;
/// How many elements are read at once, at most.
const AT_ONCE: usize = 16;
/// How many numbers are kept.
const KEPT: usize = 4096;

impl HeadCache {
    /// The oldest known numbers: as many as are likely to be needed to find an element that still exists.
    pub(super) fn oldest(&self) -> Vec<i32> {
        self.numbers.iter().take((self.gone + 1).min(AT_ONCE)).copied().collect()
    }

    /// The first of them.
    pub(super) fn first(&self) -> Option<i32> {
        self.numbers.front().copied()
    }

    /// Whether to list the queue now; otherwise a look at its stat will do.
    pub(super) fn is_to_be_listed(&self) -> bool {
        self.numbers.is_empty() || self.listed <= SHORT
    }

    /// The queue was listed; `numbers` are in order.
    pub(super) fn listed(&mut self, stat: &Stat, numbers: &[i32]) {
        self.czxid = stat.czxid;
        self.creates = creates(stat);
        self.numbers = numbers.iter().take(KEPT).copied().collect();
        self.listed = numbers.len();
        self.asked = 0;
    }

    /// The queue's stat is this; forgets what does not fit to it.
    pub(super) fn seen(&mut self, stat: &Stat) {
        let is_anew = stat.czxid != self.czxid;
        if is_anew || self.creates != creates(stat) && self.is_spent() {
            self.forget();
        }
    }

    /// The elements of these numbers are gone, and the one after them is `found`, or may be gone too.
    pub(super) fn gone(&mut self, numbers: &[i32], found: bool) {
        for number in numbers {
            self.taken(*number);
        }
        self.asked += numbers.len() + usize::from(found);
        self.gone = if found { numbers.len() } else { self.gone + numbers.len() };
        if !numbers.is_empty() && self.is_spent() {
            self.forget();
        }
    }

    /// The element of that number was taken.
    pub(super) fn taken(&mut self, number: i32) {
        // Only the oldest are ever asked for.
        if let Some(at) = self.numbers.iter().take(AT_ONCE).position(|known| *known == number) {
            self.numbers.remove(at);
        }
    }

    /// Nothing is known any more.
    pub(super) fn forget(&mut self) {
        self.numbers = VecDeque::new();
    }

    /// Whether a listing has paid for itself.
    fn is_spent(&self) -> bool {
        self.asked > MISSES + self.listed / NAMES_PER_MISS
    }
}

/// Servers count the creates below a znode, and say twice that count less the number of children.
fn creates(stat: &Stat) -> i32 {
    stat.cversion.wrapping_add(stat.num_children)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(names: i32) -> HeadCache {
        let mut cache = HeadCache::default();
        cache.listed(&Stat::default(), &(0..names).collect::<Vec<_>>());
        cache
    }

    #[test]
    fn only_a_short_queue_is_listed_each_time() {
        assert!(HeadCache::default().is_to_be_listed());
        assert!(listed(SHORT as i32).is_to_be_listed());
        assert!(!listed(SHORT as i32 + 1).is_to_be_listed());
    }

    #[test]
    fn what_is_gone_is_not_asked_for_again_and_the_next_question_is_for_more() {
        let mut cache = listed(100);
        assert_eq!(cache.oldest(), [0]);
        cache.gone(&[0, 1], true);
        assert_eq!((cache.first(), cache.oldest()), (Some(2), vec![2, 3, 4]));
        cache.taken(2);
        cache.gone(&[], true);
        assert_eq!(cache.oldest(), [3]);
    }

    #[test]
    fn a_listing_is_used_until_too_much_of_it_is_gone() {
        let mut cache = listed(100);
        for _ in 0..100 {
            cache.gone(&[], true);
        }
        assert_eq!(cache.first(), Some(0), "nothing was gone");
        let mut cache = listed(100);
        let worth = (MISSES + 100 / NAMES_PER_MISS) as i32;
        for number in 0..worth {
            cache.gone(&[number], false);
            assert_eq!(cache.first(), Some(number + 1));
        }
        cache.gone(&[worth], false);
        assert!(cache.is_to_be_listed(), "it is spent");
    }
}
