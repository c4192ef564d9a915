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

/// A latch: it is set to a number, counted down once for each event that is waited for, and opens at zero. It opens
/// once, and stays open. Clones are the same latch.
///
/// It is a persistent znode with what is left in decimal digits; its child `zl-open` comes in the transaction that counts
/// down to zero. Those who wait watch that child, so that only the last event wakes them.
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
/// Of what changes it:
///
/// | code | |
/// |---|---|
/// | `CONNECTION_LOSS` | **it is unknown whether it was done** (see [`Counter`](crate::recipes::Counter#errors)) |
/// | `OPERATION_TIMEOUT` | no connection in time, nothing was done; within a [limit](Pending::within) it is unknown |
/// | `NO_NODE` | nobody has set it; nothing was done |
/// | `BAD_ARGUMENTS` | what is at the path is no latch, or the path is not allowed |
/// | others | nothing was done, and why |
///
/// # On connection loss
/// What is under way waits for the next connection, and finds out there whether it was done: nothing is counted twice.
#[derive(Clone, Debug)]
pub struct Latch {
    client: Client,
    path: Arc<str>,
    open: Arc<str>,
    acl: Arc<[Acl]>,
}

impl Client {
    /// A latch at a path. Nothing is sent.
    pub fn latch(&self, path: &str) -> Latch {
        let open = format!(concat!("{}/", own_name!("open")), path.trim_end_matches('/')).into();
        Latch { client: self.clone(), path: path.into(), open, acl: Acl::open().into() }
    }
}

impl Latch {
    /// Who may do what with the znodes that are made: everyone everything unless it is set.
    #[must_use]
    pub fn acl(mut self, acl: impl Into<Vec<Acl>>) -> Latch {
        self.acl = acl.into().into();
        self
    }

    /// Its path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Sets it to a number of events, unless it is set already; a latch of none is open at once. Makes the znodes above
    /// it where they are missing. Gives what is left to be counted.
    ///
    /// # Errors
    /// See [errors](Latch#errors).
    ///
    /// # Cancellation
    /// It may be done all the same.
    pub fn set(&self, events: u32) -> Pending<u32> {
        let latch = self.clone();
        run("set", &self.path, async move {
            let mut ops = latch.znode("set").making(events.to_string().as_bytes());
            if events == 0 {
                ops.push(latch.opening());
            }
            match latch.znode("set").execute(&ops).await {
                Err(error) if error.is_node_exists() => Ok(latch.read("set", Read::Any).await?.0),
                set => set.map(|()| events),
            }
        })
    }

    /// Counts one event; at zero it opens, and counting on does nothing. Gives what is left.
    ///
    /// # Errors
    /// See [errors](Latch#errors).
    ///
    /// # Cancellation
    /// It may be counted all the same.
    pub fn count_down(&self) -> Pending<u32> {
        let latch = self.clone();
        run("count down", &self.path, async move { latch.count().await })
    }

    /// What is left to be counted.
    ///
    /// # Errors
    /// See [errors](Latch#errors).
    pub fn left(&self) -> Pending<u32> {
        let latch = self.clone();
        run("left", &self.path, async move { Ok(latch.read("left", Read::Newest).await?.0) })
    }

    /// Waits until it is open, however long that takes, or [within](Pending::within) a limit: also where nobody has
    /// set it yet.
    ///
    /// # Errors
    /// `NO_AUTH`; why the client is closed, if it is; `OPERATION_TIMEOUT` within a limit.
    ///
    /// # On connection loss
    /// It goes on with the next connection or session.
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
            let (left, stat) = self.read(OP, how).await?;
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
        let read = match self.znode(op).read(how).await? {
            // A server may lag behind the one who has set it.
            None if how == Read::Any => self.znode(op).read(Read::Newest).await?,
            read => read,
        };
        let Znode { data, stat } =
            read.ok_or_else(|| refuse(Code::NO_NODE, "nobody has set it"))?;
        let left = std::str::from_utf8(&data).ok().and_then(|text| text.parse().ok());
        Ok((left.ok_or_else(|| refuse(Code::BAD_ARGUMENTS, "its data are no number"))?, stat))
    }
}
