//! The data and ACL of a claim with an announced release (`succession.rs`), and whether waiters may trust them.

use parking_lot::Mutex;

use crate::client::{Op, TrustedSession};
use crate::error::Code;
use crate::path::own_name;
use crate::znode::{Acl, CreateMode, Permissions, Stat};
use crate::zookeeper::claim::payload;
use crate::zookeeper::name;

/// The line in its data that tells waiters. Only the session that made the znode may write to it, so the line is true
/// as long as no write has happened.
const ANNOUNCES: &str = "announces=release";

/// A claim's data and ACL, so that it may be announced when it is released: by the session that has this identity.
pub(crate) fn protected(data: &[u8], acl: &[Acl], id: &str) -> (Vec<u8>, Vec<Acl>) {
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
pub(crate) fn will_be(data: &[u8], stat: &Stat) -> bool {
    let is_as_made = (stat.version, stat.aversion) == (0, 0) && stat.is_ephemeral();
    is_as_made && says_so(data)
}

/// The knowledge about the servers' access control, for one connection of a session. Another leader may be configured
/// differently, and brings another connection.
#[derive(Default)]
struct AccessControl {
    /// The connection on which the servers were asked last.
    asked_on: Option<u64>,
    is_enforced: bool,
}

/// A question in flight. If its acquire is dropped, the next one asks again.
struct Unanswered<'a>(&'a Mutex<AccessControl>);

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        self.0.lock().asked_on = None;
    }
}

/// Whether the servers refuse a write that an ACL forbids. Asks them once on each connection, by a transaction in the
/// lock's directory: it creates a znode that nobody may write to, writes to it, and deletes it. `false` until the answer is
/// there.
pub(crate) async fn is_acl_enforced(session: &TrustedSession, directory: &str) -> bool {
    let known = session.registry.of::<Mutex<AccessControl>>("");
    let connection = session.connection();
    {
        let mut known = known.lock();
        if known.asked_on == Some(connection) {
            return known.is_enforced;
        }
        *known = AccessControl { asked_on: Some(connection), is_enforced: false };
    }
    let unanswered = Unanswered(&known);
    let path = name::join(directory, own_name!("acl"));
    let acl = vec![Acl::new(Permissions::READ, "world", "anyone")];
    let ops = [
        Op::Create { path: path.clone(), data: Vec::new(), acl, mode: CreateMode::Ephemeral },
        Op::set(&path, ""),
        Op::delete(&path),
    ];
    let reply = session.multi(&ops).await;
    std::mem::forget(unanswered);
    let mut known = known.lock();
    if known.asked_on != Some(connection) || session.connection() != connection {
        return false;
    }
    match reply {
        Err(error) if error.failed_op_index() == Some(1) && error.code() == Code::NO_AUTH => {
            known.is_enforced = true;
        }
        Err(error) if error.is_transient() => known.asked_on = None,
        // They have executed it, or refused something else.
        Ok(_) | Err(_) => {}
    }
    known.is_enforced
}

pub(crate) fn says_so(data: &[u8]) -> bool {
    payload::uuid(data).is_some()
        && data.split(|byte| *byte == b'\n').any(|line| line == ANNOUNCES.as_bytes())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn nobody_else_may_write_to_a_claim_that_will_be_announced() {
        let claim = payload::write(Uuid::new_v4(), "announces=release", None);
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
