//! What a claim is made with whose holder announces the release (`succession.rs`).

use super::claim_data;
use crate::znode::{Acl, Permissions, Stat};

/// The line in its data by which others know. Nobody but the session that made the znode may write to it, so what it says is
/// true for as long as it was not written to.
const ANNOUNCES: &str = "announces=release";

/// A claim's data and ACL, so that it may be announced when it is released: by the session that has this identity.
pub(super) fn protected(data: &[u8], acl: &[Acl], id: &str) -> (Vec<u8>, Vec<Acl>) {
    let data = [data, ANNOUNCES.as_bytes(), b"\n"].concat();
    let by_others = |entry: &Acl| {
        let permissions = entry.permissions - Permissions::WRITE - Permissions::ADMIN;
        Acl { permissions, ..entry.clone() }
    };
    let others = acl.iter().map(by_others).filter(|entry| !entry.permissions.is_empty());
    let own = Acl::new(Permissions::ALL, "digest", id);
    (data, std::iter::once(own).chain(others).collect())
}

/// Whether the holder of that claim will announce its release.
pub(super) fn will_be(data: &[u8], stat: &Stat) -> bool {
    let is_as_made = stat.version == 0 && stat.is_ephemeral();
    is_as_made && says_so(data)
}

/// Whether a claim's data say that.
pub(super) fn says_so(data: &[u8]) -> bool {
    claim_data::uuid(data).is_some()
        && data.split(|byte| *byte == b'\n').any(|line| line == ANNOUNCES.as_bytes())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn nobody_else_may_write_to_a_claim_that_will_be_announced() {
        let claim = claim_data::write(Uuid::new_v4(), "announces=release", None);
        let theirs = [
            Acl::new(Permissions::ALL, "world", "anyone"),
            Acl::new(Permissions::WRITE | Permissions::ADMIN, "digest", "admin:x"),
        ];
        let (data, acl) = protected(&claim, &theirs, "zklock:y");
        let may =
            |permission| acl.iter().filter(move |entry| entry.permissions.contains(permission));
        let identities = |permission| may(permission).map(|entry| &*entry.id).collect::<Vec<_>>();
        assert_eq!(identities(Permissions::WRITE), ["zklock:y"]);
        assert_eq!(identities(Permissions::ADMIN), ["zklock:y"]);
        assert_eq!(identities(Permissions::READ), ["zklock:y", "anyone"]);
        assert_eq!(acl.len(), 2);
        let stat = Stat { ephemeral_owner: 1, ..Stat::default() };
        assert!(will_be(&data, &stat));
        assert!(!will_be(&claim, &stat), "a label is no line of its own");
        assert!(!will_be(&data, &Stat { version: 1, ..stat }), "somebody has written to it");
        assert!(!will_be(&data, &Stat::default()), "no session owns it");
        assert!(!will_be(b"another library's\nannounces=release\n", &stat));
    }
}
