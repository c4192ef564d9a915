//! Whose claim a znode is, by its name. All libraries end the names of claims with the servers' sequence number.

use std::collections::HashSet;

/// What a znode's name says of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    pub library: Library,
    pub kind: Kind,
    pub sequence: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Library {
    Zklock,
    /// Or the crate zookeeper-client: both name them alike.
    Curator,
    Kazoo,
    Go,
    JavaRecipe,
    CRecipe,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Exclusive,
    Read,
    /// Reads, and may become a writer.
    Upgradeable,
    Write,
    Permit,
}

impl Library {
    pub fn name(self) -> &'static str {
        match self {
            Library::Zklock => "zklock",
            Library::Curator => "Curator or zookeeper-client",
            Library::Kazoo => "kazoo",
            Library::Go => "go-zookeeper",
            Library::JavaRecipe => "ZooKeeper's Java recipe",
            Library::CRecipe => "ZooKeeper's C recipe",
        }
    }
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Exclusive => "exclusive",
            Kind::Read => "read",
            Kind::Upgradeable => "upgradeable",
            Kind::Write => "write",
            Kind::Permit => "permit",
        }
    }
}

/// Reads a name; `None` of one that is no known library's.
pub fn recognise(name: &str) -> Option<Claim> {
    let (stem, sequence) = split_sequence(name)?;
    let (library, kind) = if let Some(rest) = stem.strip_prefix("zl-") {
        (Library::Zklock, kind_of(rest)?)
    } else if let Some(directory) = second_of_ours(stem) {
        (Library::Zklock, is_hex(directory).then_some(Kind::Exclusive)?)
    } else if let Some(rest) = stem.strip_prefix("_c_") {
        if has_uuid(rest) {
            (Library::Curator, kind_of(&rest[36..])?)
        } else if is_hex(rest.get(..32)?) {
            (Library::Go, kind_of(&rest[32..])?)
        } else {
            return None;
        }
    } else if let Some(session) = stem.strip_prefix("x-").and_then(|rest| rest.strip_suffix('-')) {
        match session {
            _ if session.len() == 16 && is_hex(session) => (Library::CRecipe, Kind::Exclusive),
            _ if session.parse::<i64>().is_ok() => (Library::JavaRecipe, Kind::Exclusive),
            _ => return None,
        }
    } else {
        let (id, mark) = (stem.get(..32)?, stem.get(32..)?);
        let kind = match mark {
            "__lock__" => Kind::Exclusive,
            "__rlock__" => Kind::Read,
            _ => return None,
        };
        (Library::Kazoo, is_hex(id).then_some(kind)?)
    };
    Some(Claim { library, kind, sequence })
}

/// Those of a directory's children that are claims, and the others. A claim of two znodes is one.
pub fn sort(names: &[String]) -> (Vec<Claim>, Vec<&String>) {
    let (mut claims, mut others, mut seconds) = (Vec::new(), Vec::new(), Vec::new());
    for name in names {
        match recognise(name) {
            Some(claim) if name.starts_with('_') && claim.library == Library::Zklock => {
                seconds.push((name, claim));
            }
            Some(claim) => claims.push(claim),
            None => others.push(name),
        }
    }
    if !seconds.is_empty() {
        // Somebody may have deleted the first one of a claim.
        let known: HashSet<&String> = names.iter().collect();
        let is_alone = |(name, claim): &(&String, Claim)| {
            first_of_ours(name, claim.sequence).is_none_or(|first| !known.contains(&first))
        };
        claims.extend(seconds.into_iter().filter(is_alone).map(|(_, claim)| claim));
    }
    (claims, others)
}

/// The name of the first znode of a claim, by the second's.
fn first_of_ours(second: &str, sequence: i32) -> Option<String> {
    let directory = second_of_ours(split_sequence(second)?.0)?;
    Some(format!("zl-{directory}-lock-{:010}", sequence.wrapping_sub(1)))
}

/// In which directory it is, of the second znode of a claim for all libraries.
fn second_of_ours(stem: &str) -> Option<&str> {
    stem.strip_prefix("_zl-")?.strip_suffix("-__lock__")
}

/// What stands between an owner and the number.
fn kind_of(stem: &str) -> Option<Kind> {
    let ends = |mark: &str| stem.ends_with(mark);
    match stem {
        _ if ends("lock-") => Some(Kind::Exclusive),
        _ if stem.contains("-up-") && ends("__READ__") => Some(Kind::Upgradeable),
        _ if ends("__READ__") => Some(Kind::Read),
        _ if ends("__WRIT__") => Some(Kind::Write),
        _ if stem.contains("-permits-") || ends("lease-") => Some(Kind::Permit),
        _ => None,
    }
}

/// A number as the servers write it: ten characters, or eleven for the smallest ones.
fn split_sequence(name: &str) -> Option<(&str, i32)> {
    let read = |length: usize| {
        let at = name.len().checked_sub(length)?;
        let (stem, digits) = (name.get(..at)?, name.get(at..)?);
        let number = digits.strip_prefix('-').unwrap_or(digits);
        let all = number.bytes().all(|byte| byte.is_ascii_digit());
        let fits = stem.ends_with(['-', '_']) && all && (length == 10 || digits.starts_with('-'));
        Some((stem, digits.parse().ok().filter(|_| fits)?))
    };
    read(11).or_else(|| read(10))
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `8a7ed3a3-3e4f-44c2-a8f0-3b6e6d0a9c11`.
fn has_uuid(text: &str) -> bool {
    let dashes = [8, 13, 18, 23];
    text.len() > 36
        && text.bytes().take(36).enumerate().all(|(at, byte)| match dashes.contains(&at) {
            true => byte == b'-',
            false => byte.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_znodes_of_one_claim_are_counted_once() {
        let names = [
            "zl-2a-lock-0000000007",
            "_zl-2a-__lock__0000000008",
            "_zl-2a-__lock__0000000011",
            "_zl-2a-__lock__-2147483648",
            "zl-2a-lock-0000000012",
            "config",
        ]
        .map(str::to_owned);
        let (claims, others) = sort(&names);
        let mut sequences: Vec<i32> = claims.iter().map(|claim| claim.sequence).collect();
        sequences.sort_unstable();
        assert_eq!((sequences, others), (vec![i32::MIN, 7, 11, 12], vec![&names[5]]));
    }

    #[test]
    fn each_librarys_names_are_known() {
        use Kind::*;
        use Library::*;
        for (name, library, kind, sequence) in [
            ("zl-2a-lock-0000000007", Zklock, Exclusive, 7),
            ("zl-2a-__READ__0000000007", Zklock, Read, 7),
            ("zl-2a-__WRIT__0000000007", Zklock, Write, 7),
            ("zl-2a-up-__READ__0000000007", Zklock, Upgradeable, 7),
            ("zl-2a-up-00c5a1e27b9d4f36-__READ__0000000007", Zklock, Upgradeable, 7),
            ("zl-2a-read-00c5a1e27b9d4f36-__READ__0000000007", Zklock, Read, 7),
            ("zl-2a-upgrade-00c5a1e27b9d4f36-__WRIT__0000000007", Zklock, Write, 7),
            ("zl-2a-permits-3-0000000007", Zklock, Permit, 7),
            ("zl-2a-lock--000000001", Zklock, Exclusive, -1),
            ("zl-2a-lock--2147483648", Zklock, Exclusive, i32::MIN),
            ("_zl-2a-__lock__0000000008", Zklock, Exclusive, 8),
            ("_c_8a7ed3a3-3e4f-44c2-a8f0-3b6e6d0a9c11-lock-0000000012", Curator, Exclusive, 12),
            ("_c_8a7ed3a3-3e4f-44c2-a8f0-3b6e6d0a9c11-__WRIT__0000000003", Curator, Write, 3),
            ("_c_8a7ed3a3-3e4f-44c2-a8f0-3b6e6d0a9c11-__READ__0000000003", Curator, Read, 3),
            ("_c_8a7ed3a3-3e4f-44c2-a8f0-3b6e6d0a9c11-lease-0000000001", Curator, Permit, 1),
            ("_c_0123456789abcdef0123456789abcdef-lock-0000000004", Go, Exclusive, 4),
            ("0123456789abcdef0123456789abcdef__lock__0000000004", Kazoo, Exclusive, 4),
            ("0123456789abcdef0123456789abcdef__rlock__0000000004", Kazoo, Read, 4),
            ("x-0100002e67c5e000-0000000009", CRecipe, Exclusive, 9),
            ("x-72057793038516224-0000000009", JavaRecipe, Exclusive, 9),
        ] {
            assert_eq!(recognise(name), Some(Claim { library, kind, sequence }), "{name}");
        }
        for other in [
            "",
            "config",
            "qn-0000000001",
            "job-0000000001",
            "zl-0000000001",
            "x--0000000001",
            "zl-2a-lock-",
            "_zl-2g-__lock__0000000008",
            "_c_x-lock-0000000001",
            "é0000000001",
            "_c_é-lock-0000000001",
        ] {
            assert_eq!(recognise(other), None, "{other}");
        }
    }
}
