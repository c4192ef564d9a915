//! A barrier that holds up everybody until somebody takes it away.

use std::sync::Arc;

#[cfg(feature = "capi")]
use super::persistent::Read;
use super::persistent::{Persistent, run};
use crate::client::{Client, Op};
use crate::runtime::Pending;
use crate::znode::{Acl, CreateMode};

/// A barrier: where it is set, everybody waits until it is removed. Clones are the same barrier.
///
/// It is a persistent znode without data, as Curator's `DistributedBarrier` and kazoo's `Barrier` have it: it stays when
/// the one who has set it ends.
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
/// What is under way waits for the next connection. Setting and removing find out there whether they were done:
/// neither is done twice, so that a removal whose reply was lost can't remove what was set after it.
///
/// # Cost
/// To set or to remove it is one request. Who passes asks twice at once (a sync, so that it sees what was set before
/// it asked); who has to wait is notified, and asks again.
#[derive(Clone, Debug)]
pub struct Barrier {
    client: Client,
    path: Arc<str>,
    acl: Arc<[Acl]>,
}

impl Client {
    /// A barrier at a path. Nothing is sent.
    pub fn barrier(&self, path: &str) -> Barrier {
        Barrier { client: self.clone(), path: path.into(), acl: Acl::open().into() }
    }
}

impl Barrier {
    /// Who may do what with the znode, if it is made: everyone everything unless it is set.
    #[must_use]
    pub fn acl(mut self, acl: impl Into<Vec<Acl>>) -> Barrier {
        self.acl = acl.into().into();
        self
    }

    /// Its path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Sets it; makes the znodes above it where they are missing. That it is set already is no error.
    ///
    /// # Errors
    /// `CONNECTION_LOSS`: **it is unknown whether it was done**. `OPERATION_TIMEOUT`: no connection in time, nothing
    /// was done; within a [limit](Pending::within) it is unknown. Others, `NO_AUTH` say: nothing was done.
    ///
    /// # Cancellation
    /// It may be done all the same.
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

    /// Removes it: everybody who waits goes on. That it is not set is no error.
    ///
    /// # Errors
    /// As [`set`](Barrier::set).
    ///
    /// # Cancellation
    /// It may be done all the same.
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

    /// Waits until it is not set, however long that takes, or [within](Pending::within) a limit.
    ///
    /// # Errors
    /// `NO_AUTH`; why the client is closed, if it is; `OPERATION_TIMEOUT` within a limit.
    ///
    /// # On connection loss
    /// It goes on with the next connection or session.
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
