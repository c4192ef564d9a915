//! A counter that many clients change. Each change happens once, or not at all, or its caller learns that the outcome
//! is unknown.
//!
//! A change is a write that fails if another client has written since the value was read. After a lost reply, the
//! client could not tell its own write from another's. So the write goes in one transaction with a receipt
//! (`receipt.rs`). The client sends it again with the same receipt, which proves whether it was executed before. This
//! adds no round trip.

use std::sync::Arc;
use std::time::Duration;

use super::persistent::{Persistent, Read, run};
use super::retry_budget::step_aside;
use crate::client::{Client, Op};
use crate::error::{Code, Error, Result};
use crate::runtime::Pending;
use crate::znode::{Acl, Stat};

/// A number in ZooKeeper that many clients read and change. Clones are the same counter.
///
/// It is a persistent znode with the number in decimal digits, as in kazoo's `Counter`. A missing znode, or one without
/// data, counts as 0. The first change creates it and its parents.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let zk = zklock::Client::connect("127.0.0.1:2181").wait()?;
/// let jobs = zk.counter("/counters/jobs");
/// let mine = jobs.get_and_add(1).wait()?; // or .await
/// println!("job {mine}");
/// # Ok(()) }
/// ```
///
/// # Errors
/// Of all operations:
///
/// | code | meaning |
/// |---|---|
/// | `CONNECTION_LOSS` | **the outcome is unknown**: the session ended before it could be looked up, no server was reached for long, or the servers allow no znodes under `/zklock/receipts` |
/// | `OPERATION_TIMEOUT` | there was no connection in time, and nothing was done; within a [limit](Pending::within) the outcome is unknown |
/// | `BAD_VERSION` | other clients changed it between read and write too often (see [`retries`](Counter::retries)); nothing was done |
/// | `BAD_ARGUMENTS` | the result exceeds 64 bits, the znode's data is no number, or the path is not allowed; nothing was done |
/// | others | nothing was done, and why: `NO_AUTH`, `SESSION_EXPIRED` (the client is closed), ... |
///
/// [`Error::is_outcome_unknown`] is true of the first two.
///
/// # On connection loss
/// A change waits for the next connection and looks up there whether it was done. It is never done twice, and an
/// unknown outcome is never reported as a failure.
///
/// # Cancel safety
/// If a change is dropped, it may or may not be done.
///
/// # Cost
/// A read is two requests (one is a sync, so that it sees earlier changes; for some seconds, a leader that stood still and
/// was replaced meanwhile may not see the last ones). A change is two requests, one after the other, and three more each
/// time that another client was faster. If N clients change it without a pause, one succeeds in each round trip.
#[derive(Clone, Debug)]
pub struct Counter {
    client: Client,
    path: Arc<str>,
    retries: u32,
    acl: Arc<[Acl]>,
}

/// How long one that was not fast enough lets others get ahead, at most.
pub(super) const STEP_ASIDE: Duration = Duration::from_millis(64);

/// How often other clients may be faster, by default.
const RETRIES: u32 = 100;

impl Client {
    /// A counter at a path. Sends nothing.
    pub fn counter(&self, path: &str) -> Counter {
        let (client, acl) = (self.clone(), Acl::open().into());
        Counter { client, path: path.into(), retries: RETRIES, acl }
    }
}

impl Counter {
    /// Sets how often a change is retried when another client was faster. The default is 100 times. Pauses between
    /// retries grow to 60 ms. Retries after a lost connection do not count.
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Counter {
        self.retries = retries;
        self
    }

    /// Sets the ACL of the znode when it is created. By default all clients may do everything.
    #[must_use]
    pub fn acl(mut self, acl: impl Into<Vec<Acl>>) -> Counter {
        self.acl = acl.into().into();
        self
    }

    /// Its path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Reads the value.
    ///
    /// # Errors
    /// See [errors](Counter#errors).
    pub fn get(&self) -> Pending<i64> {
        let counter = self.clone();
        run("get", &self.path, async move {
            Ok(counter.read("get", Read::Newest).await?.map_or(0, |(value, _)| value))
        })
    }

    /// Sets the value.
    ///
    /// # Errors
    /// See [errors](Counter#errors).
    pub fn set(&self, value: i64) -> Pending<()> {
        self.changing("set", Read::Any, move |_| Ok(Some(value))).map(|changed| changed.map(drop))
    }

    /// Adds a number (subtracts a negative one) and gives the new value.
    ///
    /// # Errors
    /// See [errors](Counter#errors).
    pub fn add(&self, number: i64) -> Pending<i64> {
        self.adding(number).map(|changed| changed.map(|(_, after)| after))
    }

    /// Adds a number and gives the old value.
    ///
    /// # Errors
    /// See [errors](Counter#errors).
    pub fn get_and_add(&self, number: i64) -> Pending<i64> {
        self.adding(number).map(|changed| changed.map(|(before, _)| before))
    }

    /// Sets the value if it is `expected`, and gives the old value. It was set exactly if the old value equals
    /// `expected`.
    ///
    /// # Errors
    /// See [errors](Counter#errors).
    pub fn compare_and_set(&self, expected: i64, value: i64) -> Pending<i64> {
        let change = move |before| Ok((before == expected).then_some(value));
        self.changing("compare and set", Read::Newest, change)
            .map(|changed| changed.map(|(before, _)| before))
    }

    fn adding(&self, number: i64) -> Pending<(i64, i64)> {
        let path = Arc::clone(&self.path);
        self.changing("add", Read::Any, move |before| match before.checked_add(number) {
            Some(after) => Ok(Some(after)),
            None => {
                let detail = format!("{before} and {number} make more than 64 bits hold");
                Err(Error::with_detail("add", &path, Code::BAD_ARGUMENTS, detail))
            }
        })
    }

    /// Gives what it was, and what it is then.
    fn changing(
        &self,
        op: &'static str,
        first: Read,
        change: impl Fn(i64) -> Result<Option<i64>> + Send + Sync + 'static,
    ) -> Pending<(i64, i64)> {
        let counter = self.clone();
        run(op, &self.path, async move { counter.change(op, first, change).await })
    }

    async fn change(
        &self,
        op: &'static str,
        mut how: Read,
        change: impl Fn(i64) -> Result<Option<i64>>,
    ) -> Result<(i64, i64)> {
        let mut losses = 0;
        loop {
            let read = self.read(op, how).await;
            let planned = read.and_then(|read| {
                let before = read.as_ref().map_or(0, |(value, _)| *value);
                Ok((read, before, change(before)?))
            });
            let (read, before, after) = match planned {
                Ok((read, before, Some(after))) => (read, before, after),
                // No write will show whether the server lags behind.
                Err(error) if how == Read::Any && error.code() == Code::BAD_ARGUMENTS => {
                    how = Read::Newest;
                    continue;
                }
                Ok((_, before, None)) => return Ok((before, before)),
                Err(error) => return Err(error),
            };
            let was_there = read.is_some();
            match self.write(op, after, read.map(|(_, stat)| stat)).await {
                Ok(()) => return Ok((before, after)),
                // Where there was none, its parents can't be made: the chroot is missing.
                Err(error) if error.is_no_node() && !was_there => return Err(error),
                Err(error) if was_faster(&error) => {}
                Err(error) => return Err(error),
            }
            if losses == self.retries {
                let detail = format!("others were faster {} times; nothing was done", losses + 1);
                return Err(Error::with_detail(op, &self.path, Code::BAD_VERSION, detail));
            }
            step_aside(losses, STEP_ASIDE).await;
            (losses, how) = (losses + 1, Read::Newest);
        }
    }

    /// Writes it, if nobody has since it was read; `None`: if nobody has made it.
    async fn write(&self, op: &'static str, value: i64, read: Option<Stat>) -> Result<()> {
        let data = value.to_string().into_bytes();
        if let Some(stat) = read {
            let (path, version) = (self.path.to_string(), Some(stat.version));
            return self.znode(op).change(&[Op::Set { path, data, version }], &stat).await;
        }
        let znode = self.znode(op);
        znode.execute(&znode.making(&data)).await
    }

    fn znode(&self, op: &'static str) -> Persistent<'_> {
        Persistent { client: &self.client, op, path: &self.path, acl: &self.acl }
    }

    /// The value and its stat; `None` if it was never changed.
    async fn read(&self, op: &'static str, how: Read) -> Result<Option<(i64, Stat)>> {
        let Some(znode) = self.znode(op).read(how).await? else { return Ok(None) };
        Ok(Some((self.value(op, &znode.data)?, znode.stat)))
    }

    fn value(&self, op: &'static str, data: &[u8]) -> Result<i64> {
        let text = std::str::from_utf8(data).unwrap_or("?").trim();
        if text.is_empty() {
            return Ok(0);
        }
        text.parse().map_err(|_| {
            let detail = "its data are no number";
            Error::with_detail(op, &self.path, Code::BAD_ARGUMENTS, detail)
        })
    }
}

/// Whether nothing was written because another has since it was read: changed, made or deleted it.
fn was_faster(error: &Error) -> bool {
    error.code() == Code::BAD_VERSION || error.is_node_exists() || error.is_no_node()
}
