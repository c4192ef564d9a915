//! The names of claims in a queue, and their order.
//!
//! Our nodes are called `zl-`, the czxid of the lock's directory in hexadecimal, `-lock-` and a sequence
//! number. A directory that is deleted and recreated counts from zero again, but has another czxid. So each name is
//! unique, and a request by name can't hit another client's claim.
//!
//! Other libraries queue in one line with us by `lock-`: Curator orders by the text after the last one, go-zookeeper splits
//! there, zookeeper-client filters by it, and kazoo can be told to look for it. The names of the C recipe and the Java
//! recipe also end with the number.
//!
//! The claims of a read/write lock have Curator's marks for readers and writers in place of `lock-`, so both libraries
//! queue in one line. A claim without a mark counts as a writer's.
//!
//! Upgradeable readers, and holds that were upgraded or downgraded, have another word before that mark: `up`, `upgrade` or
//! `read`. Libraries that do not know the word see readers and writers. A claim that takes the place of another takes its
//! number too. Then 16 hexadecimal digits follow the word, so that this name is also unique:
//! `zl-2a-upgrade-00c5a1e27b9d4f36-__WRIT__0000000007`.

use std::fmt::Write as _;

use crate::lock::Kind;
use crate::path::after_directory;
pub(super) use crate::path::last;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// `zl-`, the directory's czxid, the mark of the kind and the sequence number: no name is given twice.
    Of(Kind),
    /// As an exclusive claim, with a second znode beside each: `pair.rs`.
    Pair,
    /// `x-`, the session in 16 hexadecimal digits, `-` and the sequence number: as the C recipe does,
    /// for programs that read the names.
    Recipe,
}

/// The words of upgradeable readers, of their claims to write, and of readers that were writers.
const UP: &str = "up";
const UPGRADE: &str = "upgrade";
const WAS_WRITER: &str = "read";
const READ: &str = "__READ__";
const WRITE: &str = "__WRIT__";
const KAZOO_READ: &str = "__rlock__";

impl Naming {
    /// The name of a claim of that session in that directory, without the sequence number, which the server appends.
    pub(super) fn prefix(self, session: i64, directory: i64) -> String {
        let mark = match self {
            Naming::Of(Kind::Exclusive) | Naming::Pair => "lock-",
            Naming::Of(Kind::Read) => "__READ__",
            Naming::Of(Kind::Write) => "__WRIT__",
            Naming::Of(Kind::Upgradeable) => "up-__READ__",
            Naming::Of(Kind::Upgrade) => "upgrade-__WRIT__",
            Naming::Of(Kind::Permits(number)) => {
                return format!("zl-{directory:x}-permits-{number}-");
            }
            Naming::Recipe => return format!("x-{session:016x}-"),
        };
        // At once as long as it becomes.
        let mut name = String::with_capacity("zl--".len() + 16 + mark.len());
        let _ = write!(name, "zl-{directory:x}-{mark}");
        name
    }

    /// The name of a claim that takes the place and the number of another. Each has its own `nonce`.
    pub(super) fn in_the_place_of(self, directory: i64, nonce: u64, number: i32) -> String {
        let (word, mark) = match self {
            Naming::Of(Kind::Upgradeable) => (UP, READ),
            Naming::Of(Kind::Upgrade) => (UPGRADE, WRITE),
            _ => (WAS_WRITER, READ),
        };
        numbered_name(&format!("zl-{directory:x}-{word}-{nonce:016x}-{mark}"), number)
    }

    /// Whether a claim of this session, by either naming and in whatever directory, may have that name.
    pub(super) fn may_be_ours(session: i64, name: &str) -> bool {
        name.strip_prefix('_').unwrap_or(name).starts_with("zl-")
            || name.starts_with(&Naming::Recipe.prefix(session, 0))
    }
}

pub(super) fn kind(name: &str) -> Kind {
    let before = name.trim_end_matches(|it: char| it == '-' || it.is_ascii_digit());
    if before.ends_with(READ) || before.ends_with(KAZOO_READ) {
        if word(name).is_some_and(|(word, _)| word == UP) { Kind::Upgradeable } else { Kind::Read }
    } else if before.ends_with(WRITE) {
        if is_upgrade(name) { Kind::Upgrade } else { Kind::Write }
    } else {
        permits(name).map_or(Kind::Exclusive, Kind::Permits)
    }
}

/// The word before the mark in a name of ours, and what follows that up to the mark.
fn word(name: &str) -> Option<(&str, &str)> {
    let (words, _) = after_directory(name)?.split_once("-__")?;
    Some(words.split_once('-').unwrap_or((words, "")))
}

/// Whether it is the claim by which an upgradeable reader becomes a writer.
pub(super) fn is_upgrade(name: &str) -> bool {
    word(name).is_some_and(|(word, _)| word == UPGRADE)
}

/// Whether it has the place and the number of another claim. Then the number does not tell when it was made.
pub(super) fn is_in_anothers_place(name: &str) -> bool {
    let is_nonce = |text: &str| text.len() == 16 && text.bytes().all(|it| it.is_ascii_hexdigit());
    word(name).is_some_and(|(_, nonce)| is_nonce(nonce))
}

/// Whether the hold that it belongs to has the token of another claim, which its data name.
pub(super) fn has_anothers_token(name: &str) -> bool {
    is_upgrade(name) || is_in_anothers_place(name)
}

fn permits(name: &str) -> Option<u32> {
    let (number, _) = after_directory(name)?.strip_prefix("permits-")?.split_once('-')?;
    number.parse().ok().filter(|number| *number > 0)
}

/// The sequence number at the end of a name, if it is one of a lock's: a `-` or `__`, then a number
/// as the server writes it.
pub(super) fn sequence(name: &str) -> Option<i32> {
    // The first separator that fits decides: in `lock--000000005` the minus is the number's, and
    // in `lock-0000000005` it is the separator's.
    let after = |separator: &'static str| {
        name.match_indices(separator).map(move |(at, found)| (at, &name[at + found.len()..]))
    };
    let fits = after("-").chain(after("__")).filter_map(|(at, rest)| Some((at, written(rest)?)));
    fits.min_by_key(|(at, _)| *at).map(|(_, number)| number)
}

/// Reads a number as the server writes it: ten characters with leading zeroes and a minus sign, or eleven for the smallest
/// numbers. Any other text is no number: the `-` in `x--0000000007` ends a prefix.
fn written(text: &str) -> Option<i32> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    // Zeroes fill up to ten characters, and no further.
    let is_filled = text.len() == 10 || is_negative && text.len() == 11 && !digits.starts_with('0');
    let is_written = is_filled && digits.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_written && !(is_negative && *number == 0))
}

/// The number of a claim, unless it may have been given out of turn.
pub(super) fn number_in_turn(path: &str) -> Option<i32> {
    sequence(last(path)).filter(|number| !is_out_of_turn(*number))
}

/// A name with its number, as the server writes it: ten characters, a minus sign included.
pub(super) fn numbered_name(prefix: &str, sequence: i32) -> String {
    format!("{prefix}{sequence:010}")
}

/// Whether a counter that has reached its end may have given that number twice or out of turn.
///
/// Servers of version 3.4 count on from the smallest number. Since then the data tree takes a new count only if it is
/// larger, so servers give the largest number again and again. Creates in quick succession get the numbers after it,
/// because the tree is not asked in between. Then the count falls back.
pub(super) fn is_out_of_turn(number: i32) -> bool {
    /// More than can be in flight at once.
    const RUN_ON: i32 = 1 << 20;
    number == i32::MAX || number < i32::MIN + RUN_ON
}

pub(super) fn join(parent: &str, child: &str) -> String {
    let above = if parent == "/" { "" } else { parent };
    [above, "/", child].concat()
}

#[cfg(all(test, not(zklock_loom)))]
#[path = "../../tests/inside/properties/names.rs"]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(sequence: i32) -> String {
        numbered_name(&Naming::Of(Kind::Exclusive).prefix(1, 0x2a), sequence)
    }

    #[test]
    fn the_sequence_of_every_peer_is_read() {
        for (name, number) in [
            ("zl-lock-0000000007", Some(7)),
            ("zl-1000000000-lock-0000000007", Some(7)),
            ("_c_8a7ed3a3-3e4f-44c2-a8f0-3b6e6d0a9c11-lock-0000000012", Some(12)),
            ("_c_8a7ed3a3-3e4f-44c2-a8f0-3b6e6d0a9c11-__WRIT__0000000003", Some(3)),
            ("0123456789abcdef0123456789abcdef__lock__0000000004", Some(4)),
            ("0123456789abcdef0123456789abcdef__lock__-000000004", Some(-4)),
            ("x-0000000000abcdef-0000000009", Some(9)),
            ("zl-lock--000000001", Some(-1)),
            ("zl-lock--2147483648", Some(i32::MIN)),
            ("zl-lock-2147483647", Some(i32::MAX)),
            ("zl-lock-9999999999", None),
            // A prefix may end in a minus sign: ten digits after it are a negative number only from
            // ten digits' worth on.
            ("job--0000000007", Some(7)),
            ("job--1000000000", Some(-1_000_000_000)),
            ("job--0999999999", Some(999_999_999)),
            ("job-+000000007", None),
            ("zl-lock-", None),
            ("lock-123", None),
            ("config", None),
            ("0000000001", None),
            ("", None),
            ("-", None),
            ("é-000000000é", None),
        ] {
            assert_eq!(sequence(name), number, "{name}");
        }
    }

    #[test]
    fn a_claim_without_a_mark_before_its_number_is_taken_for_an_exclusive_one() {
        for (name, is) in [
            ("zl-1f-__READ__0000000007", Kind::Read),
            ("zl-1f-__READ__-000000007", Kind::Read),
            ("zl-1f-__WRIT__0000000007", Kind::Write),
            ("_c_8a7ed3a3-3e4f-44c2-a8f0-3b6e6d0a9c11-__READ__0000000003", Kind::Read),
            ("_c_8a7ed3a3-3e4f-44c2-a8f0-3b6e6d0a9c11-__WRIT__-000000003", Kind::Write),
            ("0123456789abcdef0123456789abcdef__rlock__0000000004", Kind::Read),
            ("0123456789abcdef0123456789abcdef__lock__0000000004", Kind::Exclusive),
            ("zl-1f-lock-0000000007", Kind::Exclusive),
            ("__READ__-lock-0000000007", Kind::Exclusive),
            ("__READ__", Kind::Read),
            ("zl-1f-permits-3-0000000007", Kind::Permits(3)),
            ("zl-1f-permits-3--000000007", Kind::Permits(3)),
            ("zl-1f-permits-0-0000000007", Kind::Exclusive),
            ("zl-1f-permits-0000000007", Kind::Exclusive),
            ("zl-1f-permits-4294967296-0000000007", Kind::Exclusive),
            ("zl-x-permits-3-0000000007", Kind::Exclusive),
            ("aa-permits-3-0000000007", Kind::Exclusive),
            ("", Kind::Exclusive),
        ] {
            assert_eq!(kind(name), is, "{name}");
        }
        for its in [Kind::Read, Kind::Write, Kind::Permits(3), Kind::Permits(u32::MAX)] {
            for number in [0, 7, i32::MAX, -1, i32::MIN] {
                let name = numbered_name(&Naming::Of(its).prefix(1, 0x2a), number);
                assert_eq!((kind(&name), sequence(&name)), (its, Some(number)), "{name}");
            }
        }
    }

    #[test]
    fn a_name_is_written_as_the_server_writes_it() {
        for number in [0, 7, i32::MAX, -1, -999_999_999, i32::MIN] {
            assert_eq!(sequence(&ours(number)), Some(number));
        }
        assert_eq!(ours(-1), "zl-2a-lock--000000001");
    }
}
