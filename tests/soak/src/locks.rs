//! The locks of a soak, and the register that belongs to each.

use std::fmt;

use zklock::Strategy;

/// What all nodes of a soak lie under.
pub const ROOT: &str = "/soak";
/// The parent of the registers.
pub const REGISTERS: &str = "/soak/registers";

/// What is contended for, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    Queue,
    Watch,
    Poll,
    ReadWrite,
    Semaphore,
    Election,
}

impl Sort {
    pub const ALL: [Sort; 6] =
        [Sort::Queue, Sort::Watch, Sort::Poll, Sort::ReadWrite, Sort::Semaphore, Sort::Election];

    pub fn strategy(self) -> Strategy {
        match self {
            Sort::Watch => Strategy::Watch,
            Sort::Poll => Strategy::Poll,
            _ => Strategy::Queue,
        }
    }

    /// Whether the lock's path is the claim, and not the directory of claims.
    pub fn is_one_node(self) -> bool {
        self.strategy() != Strategy::Queue
    }

    /// Whether several can hold it at a time.
    pub fn is_shared(self) -> bool {
        matches!(self, Sort::ReadWrite | Sort::Semaphore)
    }

    /// What the library keeps beside the claims.
    pub fn keeps(self, name: &str) -> bool {
        match self {
            // The claim of who hands over is below it.
            Sort::Election => name == HANDOVER,
            // Comes and goes, to wake the next one.
            Sort::Semaphore => name == "zl-limit",
            _ => false,
        }
    }
}

/// How many permits a semaphore has at first.
pub const PERMITS: u32 = 3;
/// Where the one who hands over an election names the next.
pub const HANDOVER: &str = "zl-handover";

impl fmt::Display for Sort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Sort::Queue => "queue",
            Sort::Watch => "watch",
            Sort::Poll => "poll",
            Sort::ReadWrite => "read-write",
            Sort::Semaphore => "semaphore",
            Sort::Election => "election",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockName {
    pub sort: Sort,
    /// Such as `queue-1`.
    pub name: String,
}

impl LockName {
    pub fn path(&self) -> String {
        format!("{ROOT}/{}", self.name)
    }

    /// The node that holders write their token to.
    pub fn register(&self) -> String {
        format!("{REGISTERS}/{}", self.name)
    }
}

/// So many locks of each sort, in an order that all processes share.
pub fn all(of_each: u16) -> Vec<LockName> {
    let numbered = |sort: Sort| {
        (1..=of_each).map(move |number| LockName { sort, name: format!("{sort}-{number}") })
    };
    Sort::ALL.into_iter().flat_map(numbered).collect()
}

/// What a holder writes to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub token: i64,
    /// Which of its writes this is, from 1.
    pub number: u32,
    pub process: u32,
    pub thread: u16,
}

impl Stamp {
    pub fn encode(self) -> Vec<u8> {
        let Stamp { token, number, process, thread } = self;
        format!("{token} {number} {process} {thread}").into_bytes()
    }

    pub fn decode(data: &[u8]) -> Option<Stamp> {
        let mut words = std::str::from_utf8(data).ok()?.split(' ');
        Some(Stamp {
            token: words.next()?.parse().ok()?,
            number: words.next()?.parse().ok()?,
            process: words.next()?.parse().ok()?,
            thread: words.next()?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_as_it_was_written() {
        let stamp = Stamp { token: 0x3_0000_0001, number: 2, process: 11, thread: 7 };
        assert_eq!(Stamp::decode(&stamp.encode()), Some(stamp));
        assert_eq!(Stamp::decode(b""), None);
    }

    #[test]
    fn every_sort_has_as_many_locks() {
        let names: Vec<String> = all(2).into_iter().map(|lock| lock.name).collect();
        assert_eq!(names[..3], ["queue-1", "queue-2", "watch-1"]);
        assert_eq!(names.len(), 2 * Sort::ALL.len());
        assert_eq!(names.last().map(String::as_str), Some("election-2"));
    }
}
