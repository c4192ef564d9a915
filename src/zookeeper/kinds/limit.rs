//! How many permits a semaphore has, as the data of its directory says.

use std::fmt::Write as _;

use crate::zookeeper::contenders::wanted;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) now: u32,
    pub(crate) most: u32,
}

const MAGIC: &str = "zklock/1 semaphore\n";

impl Limit {
    /// Where nobody knows what was before, there may have been any number.
    pub(crate) fn read(data: &[u8]) -> Option<Limit> {
        let text = std::str::from_utf8(data).ok()?;
        let value = |key| {
            let mut pairs = text.lines().filter_map(|line| line.split_once('='));
            pairs.find(|(its, _)| *its == key)?.1.trim().parse::<u32>().ok()
        };
        let now = value("limit").filter(|now| *now > 0)?;
        let most = if text.starts_with(MAGIC) { value("most") } else { None };
        Some(Limit { now, most: most.unwrap_or(u32::MAX).max(now) })
    }

    pub(crate) fn write(self) -> Vec<u8> {
        self.write_over(b"")
    }

    /// In place of what the directory's data said of it; what others want of holders stays.
    pub(crate) fn write_over(self, data: &[u8]) -> Vec<u8> {
        let mut text = MAGIC.to_owned();
        // Writing to a string does not fail.
        let _ = writeln!(text, "limit={}\nmost={}", self.now, self.most);
        text.push_str(&wanted::lines(data));
        text.into_bytes()
    }

    /// Of a directory that has said nothing so far.
    pub(crate) fn first(now: u32) -> Limit {
        Limit { now, most: now }
    }

    /// Another number after what the directory's data said.
    pub(crate) fn after(data: &[u8], is_untouched: bool, now: u32) -> Limit {
        let most = match Limit::read(data) {
            Some(before) => before.most,
            None if is_untouched => now,
            None => u32::MAX,
        };
        Limit { now, most: most.max(now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_read_as_it_was_written_or_by_hand() {
        for limit in [Limit::first(3), Limit { now: 2, most: 7 }] {
            assert_eq!(Limit::read(&limit.write()), Some(limit));
        }
        // What was before is not known.
        assert_eq!(Limit::read(b"limit=5"), Some(Limit { now: 5, most: u32::MAX }));
        for none in ["", "limit=0", "limit=x", "not a lock", "zklock/1 semaphore\nmost=3\n"] {
            assert_eq!(Limit::read(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn the_most_that_there_were_is_kept() {
        let three = Limit::first(3).write();
        assert_eq!(Limit::after(&three, false, 2), Limit { now: 2, most: 3 });
        assert_eq!(Limit::after(&three, false, 4), Limit { now: 4, most: 4 });
        assert_eq!(Limit::after(b"", true, 2), Limit { now: 2, most: 2 });
        assert_eq!(Limit::after(b"junk", false, 2), Limit { now: 2, most: u32::MAX });
    }
}
