//! Members of a group, each an ephemeral znode that is made again in each new session.

mod members;
mod membership;

use std::sync::Arc;

use crate::client::Client;
use crate::znode::Acl;

pub use self::members::{Member, Members};
pub use self::membership::Membership;

/// A group at a path. All clients can see its members as long as they live. Clones are the same group.
///
/// Each member is an ephemeral child of the path. Its name is the member's [id](Member::id), and its data describes the
/// member. kazoo's `Party` does the same, so each sees the members of the other.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let zk = zklock::Client::connect("127.0.0.1:2181").wait()?;
/// let workers = zk.group("/groups/workers");
/// let me = workers.join("10.0.0.7:8000").wait()?; // a member until it is dropped
/// let mut members = workers.watch_members();
/// while let Some(members) = members.wait() {
///     for member in members? {
///         println!("{} at {}", member.id, String::from_utf8_lossy(&member.data));
///     }
/// }
/// # drop(me);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Group {
    client: Client,
    path: Arc<str>,
    acl: Arc<[Acl]>,
}

impl Client {
    /// A group at a path. Sends nothing.
    pub fn group(&self, path: &str) -> Group {
        Group { client: self.clone(), path: path.into(), acl: Acl::open().into() }
    }
}

impl Group {
    /// Sets the ACL of the znodes that it creates. By default all clients may do everything.
    #[must_use]
    pub fn acl(mut self, acl: impl Into<Vec<Acl>>) -> Group {
        self.acl = acl.into().into();
        self
    }

    /// Its path.
    pub fn path(&self) -> &str {
        &self.path
    }
}
