//! The locks of a soak, and the register that belongs to each.

use zklock::Strategy;

/// What all nodes of a soak lie under.
pub const ROOT: &str = "/soak";
/// The parent of the registers.
pub const REGISTERS: &str = "/soak/registers";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockName {
    pub strategy: Strategy,
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

/// So many locks of each strategy, in an order that all processes share.
pub fn all(of_each: u16) -> Vec<LockName> {
    let strategies = [Strategy::Queue, Strategy::Watch, Strategy::Poll];
    let numbered = |strategy: Strategy| {
        (1..=of_each).map(move |number| LockName { strategy, name: format!("{strategy}-{number}") })
    };
    strategies.into_iter().flat_map(numbered).collect()
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
    fn every_strategy_has_as_many_locks() {
        let names: Vec<String> = all(2).into_iter().map(|lock| lock.name).collect();
        assert_eq!(names, ["queue-1", "queue-2", "watch-1", "watch-2", "poll-1", "poll-2"]);
    }
}
