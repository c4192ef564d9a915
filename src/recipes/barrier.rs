//! A barrier that holds up everybody until somebody takes it away.

use std::sync::Arc;

#[cfg(feature = "capi")]
use super::persistent::Read;
use super::persistent::{Persistent, run};
use crate::client::{Client, Op};
use crate::runtime::Pending;
use crate::znode::{Acl, CreateMode};

/// A barrier: while it is set, clients wait until it is removed. Clones are the same barrier.
///
/// It is a persistent znode without data, as in Curator's `DistributedBarrier` and kazoo's `Barrier`. It stays when the
/// client that set it ends.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let zk = zklock::Client::connect("127.0.0.1:2181").wait()?;
/// let maintenance = zk.barrier("/barriers/maintenance");
/// maintenance.pass().within(std::time::Duration::from_secs(60)).wait()?; // or .await
/// # Ok(()) }
/// ```
///
/// # On connection loss
/// Operations in flight wait for the next connection and look up there whether they were done. Neither a set nor a
/// removal is done twice, so a removal with a lost reply cannot remove a later set.
///
/// # Cost
/// A set or a removal is one request. A pass is two requests at once (one is a sync, so that it sees earlier sets; for some
/// seconds, a leader that stood still and was replaced meanwhile may not see the last ones). If it must wait, it asks once
/// more, is notified and asks again.
#[derive(Clone, Debug)]
pub struct Barrier {
    client: Client,
    path: Arc<str>,
    acl: Arc<[Acl]>,
}

impl Client {
    /// A barrier at a path. Sends nothing.
    pub fn barrier(&self, path: &str) -> Barrier {
        Barrier { client: self.clone(), path: path.into(), acl: Acl::open().into() }
    }
}

impl Barrier {
    /// Sets the ACL of the znode when it is created. By default all clients may do everything.
    #[must_use]
    pub fn acl(mut self, acl: impl Into<Vec<Acl>>) -> Barrier {
        self.acl = acl.into().into();
        self
    }

    /// Its path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Sets the barrier, and creates missing parents. If it is already set, it succeeds.
    ///
    /// # Errors
    /// - `CONNECTION_LOSS`: **the outcome is unknown**.
    /// - `OPERATION_TIMEOUT`: there was no connection in time, and nothing was done. Within a [limit](Pending::within)
    ///   the outcome is unknown.
    /// - Others, such as `NO_AUTH`: nothing was done.
    ///
    /// # Cancel safety
    /// If it is dropped, the barrier may or may not be set.
    pub fn set(&self) -> Pending<()> {
        let barrier = self.clone();
        run("set", &self.path, async move {
            let (path, acl) = (barrier.path.to_string(), barrier.acl.to_vec());
            let mode = CreateMode::Persistent;
            let create = Op::Create { path, data: Vec::new(), acl, mode };
            match barrier.znode("set").execute(&[create]).await {
                Err(error) if error.is_node_exists() => Ok(()),
                set => set,
            }
        })
    }

    /// Removes the barrier: all waiters pass. If it is not set, it succeeds.
    ///
    /// # Errors
    /// As [`set`](Barrier::set).
    ///
    /// # Cancel safety
    /// If it is dropped, the barrier may or may not be removed.
    pub fn remove(&self) -> Pending<()> {
        let barrier = self.clone();
        run("remove", &self.path, async move {
            let delete = Op::Delete { path: barrier.path.to_string(), version: None };
            match barrier.znode("remove").delete(delete).await {
                Err(error) if error.is_no_node() => Ok(()),
                removed => removed,
            }
        })
    }

    /// Waits until the barrier is not set, without a limit or [within](Pending::within) one.
    ///
    /// Cancel safety: it changes nothing.
    ///
    /// # Errors
    /// - `NO_AUTH`
    /// - `OPERATION_TIMEOUT`: the limit has passed.
    /// - Why the client is closed, if it is.
    ///
    /// # On connection loss
    /// It continues on the next connection or session.
    pub fn pass(&self) -> Pending<()> {
        let barrier = self.clone();
        run("pass", &self.path, async move { barrier.znode("pass").until(false).await })
    }

    /// Whether it is set.
    #[cfg(feature = "capi")]
    pub(crate) fn is_set(&self) -> Pending<bool> {
        let barrier = self.clone();
        run("look at", &self.path, async move {
            Ok(barrier.znode("look at").read(Read::Newest).await?.is_some())
        })
    }

    fn znode(&self, op: &'static str) -> Persistent<'_> {
        Persistent { client: &self.client, op, path: &self.path, acl: &self.acl }
    }
}
