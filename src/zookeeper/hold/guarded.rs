//! Writes to ZooKeeper that happen only while a lock is held.

use std::sync::Arc;

use super::Tenure;
use crate::client::{CheckHeld, Client, Op, OpResult};
use crate::error::{Code, Error};
use crate::lock::{Guard, LockError, LockOp, ready, tenure};
use crate::runtime::Pending;
use crate::znode::{CreateMode, Stat};
use crate::zookeeper::refusal::not_written;

/// Writes of a lock in ZooKeeper. For other locks they fail with [`Store`](LockError::Store) and `BAD_ARGUMENTS`; their
/// [`check`](Guard::check) fails with that code in a transaction.
impl Guard {
    /// An operation for [`Client::multi`] that fails the transaction if the lock is no longer held. It fails with
    /// - `NO_NODE`: the lock's znode is gone.
    /// - `SESSION_EXPIRED`: the guard was released or dropped, or is [`Lost`](crate::GuardState::Lost). Nothing is
    ///   sent.
    ///
    /// The servers check that a znode with the lock's name exists. In a queue that is this guard's znode or none,
    /// because names are unique. Under [`Strategy::Poll`](crate::Strategy) and [`Strategy::Watch`](crate::Strategy) it
    /// may be another client's, after somebody deleted ours by hand and before this guard knows. The servers cannot
    /// tell the two apart.
    ///
    /// For a [`MultiLock`](crate::MultiLock) this checks the first lock only, for an [upgraded](Guard::upgrade) hold
    /// the writer's znode, and with [`Interop::All`](crate::Interop) the first znode. See [`checks`](Guard::checks).
    /// Guards that share a claim ([`reentrant`](crate::Lock::reentrant), [`local_handoff`](crate::Lock::local_handoff))
    /// share its check, which passes until the last of them has released it.
    pub fn check(&self) -> Op {
        self.checks().swap_remove(0)
    }

    /// A [`check`](Guard::check) for each lock of the guard. There is one, except for a
    /// [`MultiLock`](crate::MultiLock). An [upgraded](Guard::upgrade) hold has two: it writes, and it is held. A lock
    /// with [`Interop::All`](crate::Interop) has one for each of its znodes.
    pub fn checks(&self) -> Vec<Op> {
        match self.tenure().members() {
            [] => checks_of(self.tenure()),
            members => members.iter().flat_map(checks_of).collect(),
        }
    }

    /// Executes operations in one transaction with the [`check`](Guard::check) that the lock is still held: all or
    /// none. An empty list only checks with the servers.
    ///
    /// # Errors
    /// Nothing was done, except perhaps after an unknown outcome.
    /// - [`NotHeld`](LockError::NotHeld): the lock is lost, or another client deleted its znode.
    /// - [`OutcomeUnknown`](LockError::OutcomeUnknown): the reply was lost.
    /// - [`Store`](LockError::Store): the error of [`Client::multi`], such as `NOT_CONNECTED`. The check counts as operation 0. A
    ///   [`MultiLock`](crate::MultiLock) has as many [`checks`](Guard::checks) as locks, all of one client.
    ///
    /// # Cancel safety
    /// Dropping it does not stop the transaction: it is executed, and only its result is lost.
    pub fn multi(&self, ops: &[Op]) -> Pending<Vec<OpResult>, LockError> {
        let path = self.path();
        let client = match (self.ended(), self.store().and_then(Client::of_store)) {
            (None, Some(client)) => client,
            (None, None) => return failed(LockError::store(path, not_zookeepers(path))),
            (Some(reason), _) => return failed(LockError::not_held(path, reason)),
        };
        let mut clients = members_of(self.tenure()).map(|tenure| Arc::as_ptr(&tenure.client));
        let first = clients.next();
        if clients.any(|client| Some(client) != first) {
            return failed(LockError::store(path, of_several_clients(path)));
        }
        let mut checked = self.checks();
        let checks = checked.len();
        checked.extend_from_slice(ops);
        let written = client.multi(&checked);
        let tenure = Arc::clone(self.tenure());
        LockOp::Multi.run(path, async move {
            let written = written.await;
            let mut results =
                written.map_err(|error| not_written(tenure.lock_path(), checks, error))?;
            // Those of the checks.
            results.drain(..checks);
            Ok(results)
        })
    }
}

/// Single writes, each in a transaction as of [`multi`](Guard::multi) and with its errors and cancel safety. If the
/// lock is not held, they fail with [`NotHeld`](LockError::NotHeld). If the servers refuse, they fail with
/// [`Store`](LockError::Store) and the servers' code.
impl Guard {
    /// Creates a persistent or ephemeral znode while the lock is held; all clients may read and write it. Gives its
    /// path, with the number for a sequential one.
    ///
    /// # Errors
    /// As [`multi`](Guard::multi). Codes:
    /// - `NODE_EXISTS`
    /// - `NO_NODE`: the parent is missing.
    /// - `NO_CHILDREN_FOR_EPHEMERALS`
    /// - `BAD_ARGUMENTS`: a container or a znode with a time to live. The C client cannot create them in a transaction.
    pub fn create(&self, path: &str, data: &[u8], mode: CreateMode) -> Pending<String, LockError> {
        self.write(Op::create(path, data, mode), |result| match result {
            OpResult::Created(path) => Some(path),
            _ => None,
        })
    }

    /// Replaces the data of a znode while the lock is held. With a version, only if its data has that version.
    ///
    /// # Errors
    /// As [`multi`](Guard::multi); `NO_NODE`, `BAD_VERSION`.
    pub fn set(&self, path: &str, data: &[u8], version: Option<i32>) -> Pending<Stat, LockError> {
        let set = Op::Set { path: path.to_owned(), data: data.to_vec(), version };
        self.write(set, |result| match result {
            OpResult::Set(stat) => Some(stat),
            _ => None,
        })
    }

    /// Deletes a znode while the lock is held. With a version, only if its data has that version.
    ///
    /// # Errors
    /// As [`multi`](Guard::multi); `NO_NODE`, `BAD_VERSION`, `NOT_EMPTY`.
    pub fn delete(&self, path: &str, version: Option<i32>) -> Pending<(), LockError> {
        let delete = Op::Delete { path: path.to_owned(), version };
        self.write(delete, |result| (result == OpResult::Deleted).then_some(()))
    }

    fn write<T: Send + 'static>(
        &self,
        op: Op,
        read: fn(OpResult) -> Option<T>,
    ) -> Pending<T, LockError> {
        let path = self.path().to_owned();
        self.multi(&[op]).map(move |results| {
            results?.pop().and_then(read).ok_or_else(|| {
                let other = Error::new("multi", &path, Code::RUNTIME_INCONSISTENCY);
                LockError::outcome_unknown(&path, other)
            })
        })
    }
}

#[cfg(feature = "capi")]
impl Guard {
    pub(crate) fn client(&self) -> Client {
        let client = self.store().and_then(Client::of_store);
        client.unwrap_or_else(|| unreachable!("a guard that was released is gone"))
    }
}

fn checks_of(tenure: &Arc<dyn tenure::Tenure>) -> Vec<Op> {
    let check = |path: &str, hold| Op::CheckHeld(CheckHeld { path: path.to_owned(), hold });
    match tenure.as_any().downcast_ref::<Tenure>() {
        Some(held) => {
            let check = |path: &str| check(path, Some(Arc::clone(&held.hold)));
            let nodes = held.nodes();
            let znodes = nodes.iter().flat_map(|node| [Some(&node.path), node.second.as_ref()]);
            znodes.flatten().map(|path| check(path)).collect()
        }
        None => vec![check(&tenure.claim_path(), None)],
    }
}

fn members_of(tenure: &Arc<dyn tenure::Tenure>) -> impl Iterator<Item = &Tenure> {
    tenure.members().iter().filter_map(|member| member.as_any().downcast_ref())
}

fn failed<T>(error: LockError) -> Pending<T, LockError> {
    ready(Err(error))
}

fn of_several_clients(path: &str) -> Error {
    let why = "the locks are of several clients, so no transaction can check them all";
    Error::with_detail("multi", path, Code::BAD_ARGUMENTS, why)
}

fn not_zookeepers(path: &str) -> Error {
    let why =
        "the lock is not kept in ZooKeeper: have what is written to compare the fencing token";
    Error::with_detail("multi", path, Code::BAD_ARGUMENTS, why)
}
