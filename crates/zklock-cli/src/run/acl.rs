//! Access control lists as they are written on a command line.

use zklock::zookeeper::{Acl, Permissions};

/// Who may do what: `--acl`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclArgument(pub Vec<Acl>);

/// `open`, `creator`, `read-only`, or `SCHEME:ID:PERMISSIONS` as `zkCli.sh` has it, several with commas between.
pub fn parse(text: &str) -> Result<AclArgument, String> {
    let entries: Result<Vec<Vec<Acl>>, String> = text.split(',').map(entry).collect();
    Ok(AclArgument(entries?.concat()))
}

fn entry(text: &str) -> Result<Vec<Acl>, String> {
    match text {
        "open" => return Ok(Acl::open()),
        "creator" => return Ok(Acl::creator()),
        // For those who look: who holds is to be read by all.
        "read-only" => return Ok(Acl::read_only()),
        _ => {}
    }
    let wrong = || {
        "open, creator, read-only, or SCHEME:ID:PERMISSIONS such as sasl:bob:cdrwa, with commas between".to_owned()
    };
    let (scheme, rest) = text.split_once(':').ok_or_else(wrong)?;
    let (id, letters) = rest.rsplit_once(':').ok_or_else(wrong)?;
    let mut permissions = Permissions::empty();
    for letter in letters.chars() {
        permissions |= match letter {
            'c' => Permissions::CREATE,
            'd' => Permissions::DELETE,
            'r' => Permissions::READ,
            'w' => Permissions::WRITE,
            'a' => Permissions::ADMIN,
            _ => return Err(wrong()),
        };
    }
    if scheme.is_empty() || permissions.is_empty() {
        return Err(wrong());
    }
    Ok(vec![Acl::new(permissions, scheme, id)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_names_and_entries() {
        assert_eq!(parse("open").unwrap().0, Acl::open());
        let list = parse("creator,read-only,digest:bob:aGFzaA==:cr,ip:10.0.0.0/8:cdrwa").unwrap().0;
        assert_eq!(list[..2], [Acl::creator(), Acl::read_only()].concat());
        assert_eq!(
            list[2],
            Acl::new(Permissions::CREATE | Permissions::READ, "digest", "bob:aGFzaA==")
        );
        assert_eq!(list[3], Acl::new(Permissions::ALL, "ip", "10.0.0.0/8"));
        for bad in ["", "everyone", "digest:bob", "sasl:bob:xyz", ":bob:r", "sasl:bob:", "open,"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
