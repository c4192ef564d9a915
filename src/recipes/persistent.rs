//! Persistent znodes that are changed exactly once, below parents that may be missing.

use std::future::Future;

use super::retry_budget::RetryBudget;
use super::transaction::{Target, execute_once, named};
use crate::client::{Client, Op, TrustedSession, Watch, Znode};
use crate::error::{Code, Error, Result};
use crate::path;
use crate::retry;
use crate::runtime::{Pending, Timer};
use crate::znode::{Acl, CreateMode, Stat};

/// So many bytes at most are in the writes that give a new znode its random version.
const MAKING: usize = 100_000;

/// A persistent znode, for the operation that errors name.
pub(super) struct Persistent<'a> {
    pub(super) client: &'a Client,
    pub(super) op: &'static str,
    pub(super) path: &'a str,
    pub(super) acl: &'a [Acl],
}

/// How a znode is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    /// As the server has it, which may lag behind others: a write shows that.
    Any,
    /// Not older than the call.
    Newest,
}

impl Persistent<'_> {
    /// As [`execute_once`]; where the parents are missing, they are made. What may be created, and not written to, is made
    /// as others make it: without the writes of [`making`](Persistent::making).
    pub(super) async fn execute(&self, ops: &[Op]) -> Result<()> {
        match self.execute_below_parents(ops).await {
            Err(error) if error.code() == Code::NO_AUTH => {
                let is_write = |op: &&Op| matches!(op, Op::Set { path, .. } if path == self.path);
                let plain: Vec<Op> = ops.iter().filter(|op| !is_write(op)).cloned().collect();
                if plain.is_empty() || plain.len() == ops.len() {
                    return Err(error);
                }
                self.execute_below_parents(&plain).await
            }
            executed => executed,
        }
    }

    async fn execute_below_parents(&self, ops: &[Op]) -> Result<()> {
        match execute_once(self.client, self.op, self.path, ops, None).await {
            Err(error) if error.is_no_node() => self.make_parents().await?,
            executed => return executed,
        }
        execute_once(self.client, self.op, self.path, ops, None).await
    }

    /// As [`execute_once`], unless another znode has come in the place of the one that was read.
    pub(super) async fn change(&self, ops: &[Op], read: &Stat) -> Result<()> {
        let target = Target { path: self.path, czxid: read.czxid };
        execute_once(self.client, self.op, self.path, ops, Some(target)).await
    }

    /// As [`execute_once`], where the znode's parents are no matter.
    pub(super) async fn delete(&self, delete: Op) -> Result<()> {
        execute_once(self.client, self.op, self.path, &[delete], None).await
    }

    /// The operations that create it with this data. It begins with a random version: when it is deleted and recreated, a change that
    /// comes late does not take it for the one that was read.
    pub(super) fn making(&self, data: &[u8]) -> Vec<Op> {
        let (path, acl) = (self.path.to_owned(), self.acl.to_vec());
        let again = Op::Set { path: path.clone(), data: data.to_vec(), version: None };
        let mode = CreateMode::Persistent;
        let create = Op::Create { path, data: data.to_vec(), acl, mode };
        let most = MAKING / (self.path.len() + data.len() + 32);
        let writes = std::iter::repeat_n(again, usize::from(fastrand::u8(..)).min(most));
        std::iter::once(create).chain(writes).collect()
    }

    pub(super) async fn make_parents(&self) -> Result<()> {
        let mut budget = RetryBudget::new(self.client, self.op, self.path);
        loop {
            match budget.session().await?.link.create_parents(self.path, self.acl).await {
                Err(error) if error.is_transient() => budget.pause().await,
                made => return made.map(drop).map_err(|error| named(self.op, self.path, &error)),
            }
        }
    }

    /// The znode; `None` if it does not exist.
    pub(super) async fn read(&self, how: Read) -> Result<Option<Znode>> {
        let mut budget = RetryBudget::new(self.client, self.op, self.path);
        loop {
            let link = budget.session().await?.link;
            // Both at once: the server answers them in this order.
            let sync = (how == Read::Newest).then(|| link.sync(self.path));
            let get = link.get(self.path);
            let synced = match sync {
                Some(sync) => sync.await,
                None => Ok(()),
            };
            let read = match synced {
                Ok(()) => get.await,
                Err(error) => Err(error),
            };
            match read {
                Ok(read) => return Ok(Some(read)),
                Err(error) if error.is_no_node() => return Ok(None),
                Err(error) if error.is_transient() => budget.pause().await,
                Err(error) => return Err(named(self.op, self.path, &error)),
            }
        }
    }

    /// Waits until it is there, or until it is not, for as long as the client has sessions.
    pub(super) async fn until(&self, there: bool) -> Result<()> {
        loop {
            let session = self.client.inner().trusted_session().await?;
            match self.change_from(&session, there).await {
                Ok(None) => return Ok(()),
                Ok(Some(change)) => {
                    // How it ends is no matter: the next look tells.
                    futures_lite::future::or(async { drop(change.await) }, session.lost()).await;
                }
                Err(error) if error.is_transient() => pause(&error).await,
                Err(error) => return Err(named(self.op, self.path, &error)),
            }
        }
    }

    /// Watches for a change; `None`: it is as wanted. That is looked at first without a watch, which would stay for ever
    /// on what does not change any more, and for which there may be no room.
    async fn change_from(&self, session: &TrustedSession, there: bool) -> Result<Option<Watch>> {
        let (sync, look) = (session.sync(self.path), session.exists(self.path));
        sync.await?;
        if look.await?.is_some() == there {
            return Ok(None);
        }
        if there {
            let looked = session.exists_and_watch(self.path).await?;
            return Ok(looked.value.is_none().then_some(looked.watch));
        }
        match session.get_and_watch(self.path).await {
            Ok(looked) => Ok(Some(looked.watch)),
            Err(error) if error.is_no_node() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Runs an operation, unless there can be no znode at that path.
pub(super) fn run<T>(
    op: &'static str,
    path: &str,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Pending<T> {
    match path::validate_chosen(path) {
        Ok(()) => Pending::run(op, path, work),
        Err(why) => Pending::ready(Err(Error::with_detail(op, path, Code::BAD_ARGUMENTS, why))),
    }
}

/// Lets a moment pass after trouble: longer where there is no room for a watch.
pub(super) async fn pause(error: &Error) {
    let is_throttled = error.code() == Code::THROTTLED_OP;
    let pause = if is_throttled { 2 * retry::WITHOUT_A_WATCH } else { 4 * retry::SOON };
    Timer::after(pause).await;
}
