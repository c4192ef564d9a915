//! A queue of elements in ZooKeeper, shared with programs that use the C recipe for it.
//!
//! An element is a persistent znode `qn-` + sequence number under the queue's path; its data are
//! the program's bytes and nothing else. The lowest number is the oldest element. A client takes an element by
//! deleting its znode. Children with other names belong to others: they are neither taken nor counted.
//!
//! # Why no element is lost or doubled when a reply is lost
//! The znodes themselves can't tell. If the reply to a create is lost, its element may even be consumed by now. If the
//! reply to a delete is lost, we may have deleted the znode, or another consumer. The data can't carry a mark, because old programs
//! read them. Nothing else may be under the queue's path, because old programs consume all that is there.
//!
//! So each create and each delete goes in one transaction with an operation on a *receipt* (`receipt.rs`): an ephemeral
//! znode of the session in another place. Its version lets the transaction execute only once. After an unknown outcome,
//! the same transaction is sent again once the session is connected. The receipt comes first in it, so the answer tells
//! the outcome:
//! - executed: it is done, now and for the first time;
//! - the receipt refuses: it was done before, and the reply was lost;
//! - the receipt agrees and the element refuses: it was never done. Another consumer has taken the element.
//!
//! It costs no round trip: a transaction takes as long as a create. (A session's first one may have
//! to make the directory of the receipts.)
//!
//! # When the session ends in between
//! Its receipts are gone with it, and nobody can find out any more. `CONNECTION_LOSS`, and this code
//! alone, says so. For an offer: the element may be in the queue, or not. For a removal: the element
//! may still be there, or be gone, and its data are *not* delivered: it errs to an element that is
//! lost, never to one that is handled twice. The error names the element's znode; where that still
//! exists, nothing was lost.
//!
//! The same code comes where the servers forbid receipts by their access control, and for elements
//! that leave no room for one in a request: then a reply that is lost is an outcome that is unknown.
//!
//! # Names that come again
//! An element's name and version are no identity. A recreated queue counts from zero again, and any
//! client can put an element back under its old name. So nothing that was
//! known of one znode is believed of another (`head_cache.rs`). A removal names the version of the queue's znode, which is
//! random where we made it. It is not sent again before another look at the element's czxid. One hazard is left: others
//! made the znode twice, with the same version, and the first request of a removal is delayed in between.

mod element;
mod front;
mod head_cache;

use std::time::Duration;

use futures_lite::future::or;

pub(super) use self::element::sequence;
use self::front::{Elements, Found, Front};
use super::receipt;
use super::retry_budget::{RetryBudget, step_aside};
use super::transaction::{Target, execute_once, named};
use crate::client::{Client, Op};
use crate::error::{Code, Error, Result};
use crate::path;
use crate::znode::{Acl, CreateMode};

/// A queue at a path.
pub(crate) struct Queue {
    client: Client,
    elements: Elements,
}

/// The head of a queue.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// Nothing.
    Empty,
    /// An element with these data.
    Element(Vec<u8>),
    /// An element of so many bytes, more than the caller takes. It stays where it is.
    Longer(usize),
}

impl Queue {
    /// Checks the path; nothing is sent.
    pub(crate) fn new(client: Client, path: &str) -> Result<Queue> {
        check_path(path)
            .map_err(|why| Error::with_detail("queue", path, Code::BAD_ARGUMENTS, why))?;
        let head = client.inner().registry.of(path);
        Ok(Queue { client, elements: Elements { path: path.to_owned(), head } })
    }

    /// Adds an element at the end. Makes the queue's znode if it is missing, but none above it.
    ///
    /// # Errors
    /// As [`execute_once`]; `NO_NODE` when the parent of the queue's path is missing.
    pub(crate) async fn offer(&self, data: &[u8], acl: &[Acl]) -> Result<()> {
        self.add("offer", element::PREFIX, data, acl).await
    }

    /// As [`offer`](Queue::offer), with another name before its number.
    pub(super) async fn add(
        &self,
        op: &'static str,
        prefix: &str,
        data: &[u8],
        acl: &[Acl],
    ) -> Result<()> {
        let create = Op::Create {
            path: format!("{}/{prefix}", self.elements.path),
            data: data.to_vec(),
            acl: acl.to_vec(),
            mode: CreateMode::PersistentSequential,
        };
        loop {
            let ops = std::slice::from_ref(&create);
            match execute_once(&self.client, op, &self.elements.path, ops, None).await {
                Err(error) if error.is_no_node() => self.make(op, acl).await?,
                result => return result,
            }
        }
    }

    /// Reads the oldest element, and leaves it there.
    pub(crate) async fn element(&self, capacity: usize) -> Result<Head> {
        let mut budget = RetryBudget::new(&self.client, "element", &self.elements.path);
        match self.elements.front(&mut budget, false).await? {
            Front::Found(Found { data, .. }) if data.len() > capacity => {
                Ok(Head::Longer(data.len()))
            }
            Front::Found(Found { data, .. }) => Ok(Head::Element(data)),
            Front::Empty(_) | Front::NoQueue => Ok(Head::Empty),
        }
    }

    /// Takes the oldest element.
    ///
    /// # Errors
    /// As [`execute_once`].
    pub(crate) async fn remove(&self, capacity: usize) -> Result<Head> {
        let mut losses = 0;
        loop {
            let mut budget = RetryBudget::new(&self.client, "remove", &self.elements.path);
            match self.elements.front(&mut budget, false).await? {
                Front::Found(found) => {
                    if let Some(head) = self.try_to_take("remove", found, capacity).await? {
                        return Ok(head);
                    }
                    losses += 1;
                    step_aside(losses, STEP_ASIDE).await;
                }
                Front::Empty(_) | Front::NoQueue => return Ok(Head::Empty),
            }
        }
    }

    /// Takes the oldest element, as soon as there is one. Never gives `Empty`. Makes the queue's
    /// znode if it is missing.
    ///
    /// # Errors
    /// As [`execute_once`]. Short disconnections are waited through; after a silence in which the
    /// session is lost by the local clock, and an operation timeout more, it is
    /// `OPERATION_TIMEOUT`.
    pub(crate) async fn take(&self, capacity: usize, acl: &[Acl]) -> Result<Head> {
        let mut losses = 0;
        loop {
            let mut budget = RetryBudget::new(&self.client, "take", &self.elements.path);
            match self.elements.front(&mut budget, true).await? {
                Front::Found(found) => {
                    if let Some(head) = self.try_to_take("take", found, capacity).await? {
                        return Ok(head);
                    }
                    losses += 1;
                    step_aside(losses, STEP_ASIDE).await;
                }
                Front::Empty(watch) => {
                    if let Some((watch, trust)) = watch {
                        // How it ends is no matter: the next look tells.
                        or(async { drop(watch.await) }, trust.lost()).await;
                    }
                }
                Front::NoQueue => self.make("take", acl).await?,
            }
        }
    }

    /// Deletes an element that was found. `None` when another consumer was faster.
    async fn try_to_take(
        &self,
        op: &'static str,
        found: Found,
        capacity: usize,
    ) -> Result<Option<Head>> {
        if found.data.len() > capacity {
            return Ok(Some(Head::Longer(found.data.len())));
        }
        // What is deleted must be what was read: data that was changed since has another version, and
        // a queue that was recreated has most likely another version itself.
        let path = self.elements.path_of(found.number);
        let ops = [
            Op::Check { path: self.elements.path.clone(), version: Some(found.queue_version) },
            Op::Delete { path: path.clone(), version: Some(found.stat.version) },
        ];
        let target = Target { path: &path, czxid: found.stat.czxid };
        let result = execute_once(&self.client, op, &self.elements.path, &ops, Some(target)).await;
        match result {
            // Read it again.
            Err(error) if error.code() == Code::BAD_VERSION => Ok(None),
            Err(error) if !error.is_no_node() => Err(error),
            result => {
                self.elements.head.lock().taken(found.number);
                Ok(result.is_ok().then_some(Head::Element(found.data)))
            }
        }
    }

    /// Makes the queue's znode. That it is there already is no error, so it may be repeated.
    async fn make(&self, op: &'static str, acl: &[Acl]) -> Result<()> {
        let mut budget = RetryBudget::new(&self.client, op, &self.elements.path);
        loop {
            let link = budget.session().await?.link;
            let made = match link.multi(&self.making(acl)).await.map(drop) {
                Err(error) if error.is_transient() || error.is_node_exists() => Err(error),
                // Where the znode may not be written to, it is made as others make it.
                Err(_) => {
                    let plain = link.create(&self.elements.path, b"", acl, CreateMode::Persistent);
                    plain.await.map(drop)
                }
                made => made,
            };
            match made {
                Err(error) if error.is_node_exists() => return Ok(()),
                Err(error) if error.is_transient() => budget.pause().await,
                made => return made.map_err(|error| named(op, &self.elements.path, &error)),
            }
        }
    }

    /// Makes the queue's znode with a random version of its data, which are empty. When it is deleted
    /// and recreated, its elements have the same names and versions as before: this is what a removal
    /// that comes late can tell by (see `try_to_take`).
    fn making(&self, acl: &[Acl]) -> Vec<Op> {
        let create = Op::Create {
            path: self.elements.path.clone(),
            data: Vec::new(),
            acl: acl.to_vec(),
            mode: CreateMode::Persistent,
        };
        let writes = usize::from(fastrand::u8(..)).min(MOST_PATH / (self.elements.path.len() + 32));
        let write = Op::set(self.elements.path.as_str(), "");
        std::iter::once(create).chain(std::iter::repeat_n(write, writes)).collect()
    }
}

/// How long a consumer lets others get ahead, at most.
pub(super) const STEP_ASIDE: Duration = Duration::from_millis(16);

/// A removal names the queue's path twice, and servers take a MiB usually.
const MOST_PATH: usize = 500_000;

/// Says what is wrong with a queue's path, if anything is.
pub(super) fn check_path(path: &str) -> std::result::Result<(), &'static str> {
    path::validate_chosen(path)?;
    if path == "/" {
        return Err("the root is no queue");
    }
    if path.len() > MOST_PATH {
        return Err("longer than a transaction has room for");
    }
    let above_receipts = receipt::DIRECTORY.strip_prefix(path);
    if above_receipts.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
        return Err("reserved: receipts are kept below it");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_be_as_long_as_a_transaction_has_room_for() {
        let of_length = |length: usize| format!("/{}", "x".repeat(length - 1));
        assert_eq!(check_path(&of_length(MOST_PATH)), Ok(()));
        assert!(check_path(&of_length(MOST_PATH + 1)).is_err());
    }
}
