//! Writes to ZooKeeper that happen only while a lock is held.

use std::sync::Arc;

use super::refusal::not_written;
use super::tenure::Tenure;
use crate::client::{CheckHeld, Client, Op, OpResult};
use crate::error::{Code, Error};
use crate::lock::{Guard, LockError, tenure};
use crate::runtime::Pending;
use crate::znode::{CreateMode, Stat};

/// Of a lock in ZooKeeper; others fail with [`Store`](LockError::Store), or their check does, with
/// `BAD_ARGUMENTS`.
impl Guard {
    /// An operation for [`Client::multi`] which fails the transaction when the lock is no longer
    /// held, so that a write inside ZooKeeper happens only while it is: with `NO_NODE` when the
    /// lock's znode is gone, with `SESSION_EXPIRED` (and nothing is sent) once the guard was released or
    /// dropped, or is [`Lost`](crate::GuardState::Lost).
    ///
    /// The servers check that there is a znode by the name of the lock's. In a queue that is this
    /// guard's znode or none: no other gets its name. Under [`Strategy::Poll`](crate::Strategy) and
    /// [`Strategy::Watch`](crate::Strategy) it may be another client's, where somebody has deleted ours by hand
    /// and this guard does not know yet; nothing that a server offers tells the two apart.
    ///
    /// Of a [`MultiLock`](crate::MultiLock) it is that of the first lock, of what was [upgraded](Guard::upgrade) that of the
    /// writer, and with [`Interop::All`](crate::Interop) that of the first znode: see [`checks`](Guard::checks).
    pub fn check(&self) -> Op {
        self.checks().swap_remove(0)
    }

    /// Such an operation for each lock that it stands for: one, but of a [`MultiLock`](crate::MultiLock). There are two for
    /// what was [upgraded](Guard::upgrade): that it writes, and that it is held; and of a lock with
    /// [`Interop::All`](crate::Interop), one for each of its znodes.
    pub fn checks(&self) -> Vec<Op> {
        match self.tenure().members() {
            [] => checks_of(self.tenure()),
            members => members.iter().flat_map(checks_of).collect(),
        }
    }

    /// Executes several operations in one transaction with the [`check`](Guard::check) that the lock is still
    /// held: all of them, or none. An empty list asks the servers whether it is.
    ///
    /// # Errors
    /// [`NotHeld`](LockError::NotHeld) when the lock is lost, or somebody has deleted its znode;
    /// [`OutcomeUnknown`](LockError::OutcomeUnknown) when the servers' answer was lost; otherwise
    /// [`Store`](LockError::Store) with that of [`Client::multi`], where the check counts as operation 0 (of a
    /// [`MultiLock`](crate::MultiLock) there are as many [`checks`](Guard::checks) as locks; they have to be of one
    /// client). In each case but an unknown outcome nothing was done.
    ///
    /// # Cancellation
    /// It is executed all the same.
    pub fn multi(&self, ops: &[Op]) -> Pending<Vec<OpResult>, LockError> {
        let path = self.path();
        let client = match (self.tenure().ended(), self.store().and_then(Client::of_store)) {
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
        Pending::run_as("multi", path, LockError::of_pending, async move {
            let written = written.await;
            let mut results =
                written.map_err(|error| not_written(tenure.lock_path(), checks, error))?;
            // Those of the checks.
            results.drain(..checks);
            Ok(results)
        })
    }
}

/// Single writes: each is a transaction as of [`multi`](Guard::multi), and fails as that does: a lock that is not held
/// is [`NotHeld`](LockError::NotHeld), a write that the servers refused is [`Store`](LockError::Store) with their
/// code.
impl Guard {
    /// Creates a znode that everyone may read and write, while the lock is held: persistent or ephemeral. Gives its
    /// path, which a sequential one gets its number by.
    ///
    /// # Errors
    /// As [`multi`](Guard::multi); `NODE_EXISTS`; `NO_NODE` when the parent is missing;
    /// `NO_CHILDREN_FOR_EPHEMERALS`; `BAD_ARGUMENTS` for a container or a time to live, which the C client puts into no
    /// transaction.
    pub fn create(&self, path: &str, data: &[u8], mode: CreateMode) -> Pending<String, LockError> {
        self.write(Op::create(path, data, mode), |result| match result {
            OpResult::Created(path) => Some(path),
            _ => None,
        })
    }

    /// Replaces the data of a znode, while the lock is held; with a version, only if its data has that version.
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

    /// Deletes a znode, while the lock is held; with a version, only if its data has that version.
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
    /// The client that holds: C programs have no others.
    pub(crate) fn client(&self) -> Client {
        let client = self.store().and_then(Client::of_store);
        client.unwrap_or_else(|| unreachable!("a guard that was released is gone"))
    }
}

/// One for each znode.
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

/// Those of several that are kept in ZooKeeper.
fn members_of(tenure: &Arc<dyn tenure::Tenure>) -> impl Iterator<Item = &Tenure> {
    tenure.members().iter().filter_map(|member| member.as_any().downcast_ref())
}

fn failed<T>(error: LockError) -> Pending<T, LockError> {
    Pending::ready_as(LockError::of_pending, Err(error))
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
