//! A latch that opens when it was counted down to zero.

use std::sync::Arc;

use super::counter::STEP_ASIDE;
use super::persistent::{Persistent, Read, run};
use super::retry_budget::step_aside;
use crate::client::{Client, Op, Znode};
use crate::error::{Code, Error, Result};
use crate::path::own_name;
use crate::runtime::Pending;
use crate::znode::{Acl, CreateMode, Stat};

/// A latch: set to a number of events, counted down once for each event, open at zero. It opens once and stays open.
/// Clones are the same latch.
///
/// It is a persistent znode with the remaining count in decimal digits. The transaction that counts down to zero
/// creates its child `zl-open`. Waiters watch that child, so only the last event wakes them.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let zk = zklock::Client::connect("127.0.0.1:2181").wait()?;
/// let parts = zk.latch("/latches/nightly-2026-11-23");
/// parts.set(3).wait()?; // whoever comes first
/// parts.count_down().wait()?; // for each part that is done
/// parts.opened().wait()?; // or .await, or .within(limit)
/// # Ok(()) }
/// ```
///
/// # Errors
/// Of changes:
///
/// | code | meaning |
/// |---|---|
/// | `CONNECTION_LOSS` | **the outcome is unknown** (see [`Counter`](crate::recipes::Counter#errors)) |
/// | `OPERATION_TIMEOUT` | there was no connection in time, and nothing was done; within a [limit](Pending::within) the outcome is unknown |
/// | `NO_NODE` | the latch was never set; nothing was done |
/// | `BAD_ARGUMENTS` | the znode at the path is no latch, or the path is not allowed |
/// | others | nothing was done, and why |
///
/// # On connection loss
/// Operations in flight wait for the next connection and look up there whether they were done. Nothing is counted
/// twice.
#[derive(Clone, Debug)]
pub struct Latch {
    client: Client,
    path: Arc<str>,
    open: Arc<str>,
    acl: Arc<[Acl]>,
}

impl Client {
    /// A latch at a path. Sends nothing.
    pub fn latch(&self, path: &str) -> Latch {
        let open = format!(concat!("{}/", own_name!("open")), path.trim_end_matches('/')).into();
        Latch { client: self.clone(), path: path.into(), open, acl: Acl::open().into() }
    }
}

impl Latch {
    /// Sets the ACL of the znodes that it creates. By default all clients may do everything.
    #[must_use]
    pub fn acl(mut self, acl: impl Into<Vec<Acl>>) -> Latch {
        self.acl = acl.into().into();
        self
    }

    /// Its path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Sets the latch to a number of events, unless it is already set. With 0 events it is open at once. Creates
    /// missing parents. Gives the remaining count.
    ///
    /// # Errors
    /// See [errors](Latch#errors).
    ///
    /// # Cancel safety
    /// If it is dropped, the latch may or may not be set.
    pub fn set(&self, events: u32) -> Pending<u32> {
        let latch = self.clone();
        run("set", &self.path, async move {
            let mut ops = latch.znode("set").making(events.to_string().as_bytes());
            if events == 0 {
                ops.push(latch.opening());
            }
            match latch.znode("set").execute(&ops).await {
                Err(error) if error.is_node_exists() => {
                    Ok(latch.read("set", Read::Newest).await?.0)
                }
                set => set.map(|()| events),
            }
        })
    }

    /// Counts one event. At zero the latch opens, and further counts do nothing. Gives the remaining count.
    ///
    /// # Errors
    /// See [errors](Latch#errors).
    ///
    /// # Cancel safety
    /// If it is dropped, the event may or may not be counted.
    pub fn count_down(&self) -> Pending<u32> {
        let latch = self.clone();
        run("count down", &self.path, async move { latch.count().await })
    }

    /// The remaining count. Cancel safety: it changes nothing.
    ///
    /// # Errors
    /// See [errors](Latch#errors).
    pub fn left(&self) -> Pending<u32> {
        let latch = self.clone();
        run("left", &self.path, async move { Ok(latch.read("left", Read::Newest).await?.0) })
    }

    /// Waits until the latch is open, without a limit or [within](Pending::within) one. It also waits if the latch is
    /// not set yet.
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
    pub fn opened(&self) -> Pending<()> {
        let latch = self.clone();
        run("opened", &self.path, async move {
            let Latch { client, open, acl, .. } = &latch;
            Persistent { client, op: "opened", path: open, acl }.until(true).await
        })
    }

    async fn count(&self) -> Result<u32> {
        const OP: &str = "count down";
        let mut losses = 0_u32;
        let mut how = Read::Any;
        loop {
            let read = self.read(OP, how).await;
            let may_be_old = match &read {
                Ok((left, _)) => *left == 0,
                Err(error) => [Code::NO_NODE, Code::BAD_ARGUMENTS].contains(&error.code()),
            };
            if may_be_old && how == Read::Any {
                // No write will show whether the server lags behind.
                how = Read::Newest;
                continue;
            }
            let (left, stat) = read?;
            let Some(left) = left.checked_sub(1) else { return Ok(0) };
            let (path, data) = (self.path.to_string(), left.to_string().into_bytes());
            let mut ops = vec![Op::Set { path, data, version: Some(stat.version) }];
            if left == 0 {
                ops.push(self.opening());
            }
            match self.znode(OP).change(&ops, &stat).await {
                // Another has counted. Each that is faster brings the end nearer, so there is an end to it.
                Err(error) if error.code() == Code::BAD_VERSION => {
                    step_aside(losses, STEP_ASIDE).await;
                    (losses, how) = (losses + 1, Read::Newest);
                }
                counted => return counted.map(|()| left),
            }
        }
    }

    fn opening(&self) -> Op {
        let (path, acl) = (self.open.to_string(), self.acl.to_vec());
        Op::Create { path, data: Vec::new(), acl, mode: CreateMode::Persistent }
    }

    fn znode(&self, op: &'static str) -> Persistent<'_> {
        Persistent { client: &self.client, op, path: &self.path, acl: &self.acl }
    }

    async fn read(&self, op: &'static str, how: Read) -> Result<(u32, Stat)> {
        let refuse = |code, why| Error::with_detail(op, &self.path, code, why);
        let read = self.znode(op).read(how).await?;
        let Znode { data, stat } =
            read.ok_or_else(|| refuse(Code::NO_NODE, "nobody has set it"))?;
        let left = std::str::from_utf8(&data).ok().and_then(|text| text.parse().ok());
        Ok((left.ok_or_else(|| refuse(Code::BAD_ARGUMENTS, "its data are no number"))?, stat))
    }
}
