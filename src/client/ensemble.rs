//! Who belongs to an ensemble, and how that is changed.

use super::operations::present;
use super::{Client, Link, Znode};
use crate::error::{Code, Error, Result};
use crate::runtime::Pending;

/// A change of an ensemble's members: see [`Client::reconfigure`].
///
/// A member is written as in the configuration of a server, such as
/// `server.4=zk4.example.com:2888:3888:participant;2181`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reconfiguration {
    /// Changes the present members. One that joins with the id of a member takes its place.
    Change {
        /// Those who join.
        joining: Vec<String>,
        /// The ids of those who leave.
        leaving: Vec<u64>,
    },
    /// These are the members from then on.
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

    /// These servers are the members from then on.
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
        if size > self.max_request {
            let limit = self.max_request;
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
    /// [`get`](Client::get) reads it, and [`watch_data`](Client::watch_data) reports each change. A client with a
    /// chroot has no such znode, and a server that stands alone has no data in it.
    pub const CONFIG: &str = "/zookeeper/config";

    /// Changes who belongs to the ensemble, and gives the new configuration, as it is in [`Client::CONFIG`]; with a
    /// version (that of the configuration, not of the znode), only if that is the present one.
    ///
    /// Servers that join should be running. Which servers a client connects to is not changed by it.
    ///
    /// # Errors
    /// `RECONFIG_DISABLED` where the servers do not allow it (`reconfigEnabled`); `NO_AUTH` without the WRITE
    /// permission on the znode, which by default only the servers' superuser has; `BAD_VERSION`; `BAD_ARGUMENTS`
    /// for what is no list of members, or would leave too few; `NEW_CONFIG_NO_QUORUM` when too few of the new
    /// members are connected to the leader and up to date; `RECONFIG_IN_PROGRESS`; `UNIMPLEMENTED` by a server that
    /// stands alone; and those of all [operations](Client#operations).
    ///
    /// # On connection loss
    /// The outcome is unknown. That is to be expected where the server leaves which the client is connected to: read
    /// the configuration again.
    ///
    /// # Cancellation
    /// Dropping the [`Pending`] forgets the result; the change is still made.
    pub fn reconfigure(&self, change: &Reconfiguration, version: Option<i64>) -> Pending<Znode> {
        let submitted = present!(self, "reconfigure", Client::CONFIG).reconfigure(change, version);
        submitted.unwrap_or_else(|error| Pending::ready(Err(error)))
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
