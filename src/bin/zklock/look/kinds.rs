//! Whose claim a znode is, by its name. All libraries end the names of claims with the servers' sequence number.

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

/// What stands between an owner and the number.
fn kind_of(stem: &str) -> Option<Kind> {
    let ends = |mark: &str| stem.ends_with(mark);
    match stem {
        _ if ends("lock-") => Some(Kind::Exclusive),
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
    fn each_librarys_names_are_known() {
        use Kind::*;
        use Library::*;
        for (name, library, kind, sequence) in [
            ("zl-2a-lock-0000000007", Zklock, Exclusive, 7),
            ("zl-2a-__READ__0000000007", Zklock, Read, 7),
            ("zl-2a-__WRIT__0000000007", Zklock, Write, 7),
            ("zl-2a-permits-3-0000000007", Zklock, Permit, 7),
            ("zl-2a-lock--000000001", Zklock, Exclusive, -1),
            ("zl-2a-lock--2147483648", Zklock, Exclusive, i32::MIN),
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
            "_c_x-lock-0000000001",
            "é0000000001",
            "_c_é-lock-0000000001",
        ] {
            assert_eq!(recognise(other), None, "{other}");
        }
    }
}
