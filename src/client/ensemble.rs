//! The members of an ensemble, and how to change them.

use super::operations::checked;
use super::{Client, Link, Znode};
use crate::error::{Code, Error, Result};
use crate::runtime::Pending;

/// A change of an ensemble's members: see [`Client::reconfigure`].
///
/// Write a member as in a server's configuration, such as `server.4=zk4.example.com:2888:3888:participant;2181`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reconfiguration {
    /// Changes the present members. A joining server replaces a member with the same id.
    Change {
        /// The servers that join.
        joining: Vec<String>,
        /// The ids of the servers that leave.
        leaving: Vec<u64>,
    },
    /// Replaces all members.
    Replace(Vec<String>),
}

impl Reconfiguration {
    /// Servers join.
    pub fn join(members: impl IntoIterator<Item = impl Into<String>>) -> Reconfiguration {
        let joining = members.into_iter().map(Into::into).collect();
        Reconfiguration::Change { joining, leaving: Vec::new() }
    }

    /// The servers with these ids leave.
    pub fn leave(ids: impl IntoIterator<Item = u64>) -> Reconfiguration {
        let leaving = ids.into_iter().collect();
        Reconfiguration::Change { joining: Vec::new(), leaving }
    }

    /// Replaces all members by these servers.
    pub fn replace(members: impl IntoIterator<Item = impl Into<String>>) -> Reconfiguration {
        Reconfiguration::Replace(members.into_iter().map(Into::into).collect())
    }

    /// The three lists that the protocol has: who joins, who leaves, who are the members.
    fn lists(&self) -> std::result::Result<[Option<String>; 3], &'static str> {
        let list = |members: &[String]| {
            if members.iter().any(|member| member.is_empty() || member.contains([',', '\0', '\n']))
            {
                return Err("a member is one line without a comma");
            }
            Ok((!members.is_empty()).then(|| members.join(",")))
        };
        let lists = match self {
            Reconfiguration::Change { joining, leaving } => {
                let ids: Vec<String> = leaving.iter().map(u64::to_string).collect();
                [list(joining)?, list(&ids)?, None]
            }
            Reconfiguration::Replace(members) => [None, None, list(members)?],
        };
        if lists.iter().all(Option::is_none) {
            return Err("nobody joins, leaves or is a member");
        }
        Ok(lists)
    }
}

/// Any configuration may be the one that is changed.
const ANY_VERSION: i64 = -1;

impl Link {
    fn reconfigure(
        &self,
        change: &Reconfiguration,
        version: Option<i64>,
    ) -> Result<Pending<Znode>> {
        let refuse = |why: String| {
            Error::with_detail("reconfigure", Client::CONFIG, Code::BAD_ARGUMENTS, why)
        };
        let lists = change.lists().map_err(|why| refuse(why.to_owned()))?;
        let size: usize = lists.iter().flatten().map(String::len).sum();
        if size > self.options.max_request {
            let limit = self.options.max_request;
            return Err(refuse(format!("{size} bytes of members, but a request takes {limit}")));
        }
        let version = version.unwrap_or(ANY_VERSION);
        let read = |(data, stat)| Ok(Znode { data, stat });
        // Of what a quorum is while it changes, the lease need not know: this proves nothing to it.
        Ok(self.request("reconfigure", Client::CONFIG, read, |handle, terms, sink| {
            handle.reconfigure(terms, lists, version, sink);
        }))
    }
}

impl Client {
    /// The znode with the ensemble's configuration: a line for each member, and `version=` with a hexadecimal number.
    /// Read it with [`get`](Client::get), and follow it with [`watch_data`](Client::watch_data). A client with a chroot
    /// cannot see it, and on a standalone server it has no data.
    pub const CONFIG: &str = "/zookeeper/config";

    /// Changes the members of the ensemble, and gives the new configuration as in [`Client::CONFIG`]. With a version,
    /// only if the present configuration has that version (of the configuration, not of the znode).
    ///
    /// Start servers before they join. The client's own list of hosts stays the same.
    ///
    /// # Errors
    /// - `RECONFIG_DISABLED`: the servers do not allow it (`reconfigEnabled`).
    /// - `NO_AUTH`: the session lacks `WRITE` on the znode. By default only the superuser has it.
    /// - `BAD_VERSION`: the configuration has another version.
    /// - `BAD_ARGUMENTS`: the list is invalid, or too few members would be left.
    /// - `NEW_CONFIG_NO_QUORUM`: too few new members are connected to the leader and up to date.
    /// - `RECONFIG_IN_PROGRESS`: another change is in flight.
    /// - `UNIMPLEMENTED`: the server is standalone.
    /// - Those of all [operations](Client#operations).
    ///
    /// # On connection loss
    /// The outcome is unknown. Expect this if the server that leaves is the one of this connection. Read the
    /// configuration again.
    ///
    /// # Cancel safety
    /// Dropping it drops only the result. The change is still made.
    pub fn reconfigure(&self, change: &Reconfiguration, version: Option<i64>) -> Pending<Znode> {
        let link = checked!(self.inner().link("reconfigure", Client::CONFIG));
        checked!(link.reconfigure(change, version))
    }
}

#[cfg(all(test, not(zklock_loom)))]
mod tests {
    use super::*;

    #[test]
    fn members_are_listed_as_the_protocol_has_them() {
        let lists = |change: Reconfiguration| change.lists();
        let owned = |list: &str| Some(list.to_owned());
        assert_eq!(lists(Reconfiguration::join(["a", "b"])), Ok([owned("a,b"), None, None]));
        assert_eq!(lists(Reconfiguration::leave([1, 22])), Ok([None, owned("1,22"), None]));
        assert_eq!(lists(Reconfiguration::replace(["a"])), Ok([None, None, owned("a")]));
        for bad in [&[][..], &[""], &["a,b"], &["a\0"], &["a\nb"], &["a", ""]] {
            assert!(lists(Reconfiguration::join(bad.iter().copied())).is_err(), "{bad:?}");
            assert!(lists(Reconfiguration::replace(bad.iter().copied())).is_err(), "{bad:?}");
        }
        assert!(lists(Reconfiguration::leave([])).is_err());
    }
}
