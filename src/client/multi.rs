//! Transactions: several operations, all or none.

use std::sync::Arc;

use super::lease::Proof;
use super::operations::{acl_len, checked};
use super::{Client, Hold, Link};
use crate::error::{Code, Error, Result};
use crate::path;
use crate::raw::{RawOp, RawOpResult};
use crate::runtime::Pending;
use crate::znode::{Acl, CreateMode, Stat};

#[cfg(all(test, not(zklock_loom)))]
#[path = "../../tests/inside/properties/multi.rs"]
mod properties;

/// One operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Op {
    /// Creates a znode: persistent or ephemeral, with or without a sequence number. (The C client cannot create
    /// containers and TTL znodes in a transaction.)
    Create {
        /// Its path; for a sequential znode, without the number.
        path: String,
        /// Its data.
        data: Vec<u8>,
        /// Its access control list.
        acl: Vec<Acl>,
        /// Its mode.
        mode: CreateMode,
    },
    /// Deletes a znode.
    Delete {
        /// Its path.
        path: String,
        /// Only if its data has this version.
        version: Option<i32>,
    },
    /// Replaces a znode's data.
    Set {
        /// Its path.
        path: String,
        /// The new data.
        data: Vec<u8>,
        /// Only if its data has this version.
        version: Option<i32>,
    },
    /// The check of [`Guard::check`](crate::Guard::check).
    #[doc(hidden)]
    CheckHeld(CheckHeld),
    /// Fails the transaction unless the znode exists (with that version). Changes nothing.
    Check {
        /// Its path.
        path: String,
        /// The version its data must have.
        version: Option<i32>,
    },
}

/// A lock that must be held for a transaction to be executed.
#[derive(Clone)]
pub struct CheckHeld {
    /// Its znode.
    pub(crate) path: String,
    /// `None` of a lock that is not kept in ZooKeeper.
    pub(crate) hold: Option<Arc<Hold>>,
}

impl PartialEq for CheckHeld {
    fn eq(&self, other: &CheckHeld) -> bool {
        let of = |held: &CheckHeld| held.hold.as_ref().map(Arc::as_ptr);
        self.path == other.path && of(self) == of(other)
    }
}

impl Eq for CheckHeld {}

impl std::fmt::Debug for CheckHeld {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CheckHeld").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The result of one operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpResult {
    /// Created the znode. A transaction reports only the path, not the stat.
    Created(String),
    /// Deleted the znode.
    Deleted,
    /// Replaced the data.
    Set(Stat),
    /// The check passed.
    Checked,
}

impl Op {
    /// Creates a znode that all clients may read and write.
    pub fn create(path: impl Into<String>, data: impl Into<Vec<u8>>, mode: CreateMode) -> Op {
        Op::Create { path: path.into(), data: data.into(), acl: Acl::open(), mode }
    }

    /// Deletes a znode, whatever its version.
    pub fn delete(path: impl Into<String>) -> Op {
        Op::Delete { path: path.into(), version: None }
    }

    /// Replaces a znode's data, whatever its version.
    pub fn set(path: impl Into<String>, data: impl Into<Vec<u8>>) -> Op {
        Op::Set { path: path.into(), data: data.into(), version: None }
    }

    /// Fails the transaction unless the znode exists.
    pub fn check(path: impl Into<String>) -> Op {
        Op::Check { path: path.into(), version: None }
    }

    /// The path of its znode.
    pub fn path(&self) -> &str {
        match self {
            Op::Create { path, .. }
            | Op::Delete { path, .. }
            | Op::Set { path, .. }
            | Op::Check { path, .. } => path,
            Op::CheckHeld(held) => &held.path,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Op::Create { .. } => "create",
            Op::Delete { .. } => "delete",
            Op::Set { .. } => "set",
            Op::CheckHeld(_) | Op::Check { .. } => "check",
        }
    }

    /// How many bytes of a request it takes, without what surrounds it.
    fn len(&self) -> usize {
        self.path().len()
            + match self {
                Op::Create { data, acl, .. } => data.len() + acl_len(acl),
                Op::Set { data, .. } => data.len(),
                Op::Delete { .. } | Op::CheckHeld(_) | Op::Check { .. } => 0,
            }
    }

    /// The operation as the C client takes it, which aborts the process on a path that it does not like.
    fn raw(&self) -> std::result::Result<RawOp<'_>, &'static str> {
        let any = |version: &Option<i32>| version.unwrap_or(-1);
        let is_sequential = matches!(
            self,
            Op::Create {
                mode: CreateMode::PersistentSequential | CreateMode::EphemeralSequential,
                ..
            }
        );
        let path = self.path();
        let raw = match self {
            Op::Create { data, acl, mode, .. } => {
                let mode = match mode {
                    CreateMode::Persistent => 0,
                    CreateMode::Ephemeral => 1,
                    CreateMode::PersistentSequential => 2,
                    CreateMode::EphemeralSequential => 3,
                    _ => return Err("containers and TTL znodes can't be in a transaction"),
                };
                RawOp::Create { path, data, acl, mode }
            }
            Op::Delete { version, .. } => RawOp::Delete { path, version: any(version) },
            Op::Set { data, version, .. } => RawOp::Set { path, data, version: any(version) },
            Op::CheckHeld(CheckHeld { hold: None, .. }) => {
                return Err("its lock is not kept in ZooKeeper");
            }
            Op::CheckHeld(_) => RawOp::Check { path, version: -1 },
            Op::Check { version, .. } => RawOp::Check { path, version: any(version) },
        };
        if is_sequential { path::validate_prefix(path) } else { path::validate(path) }?;
        Ok(raw)
    }
}

/// The bytes of headers, lengths and flags that each further operation takes, at most.
const BETWEEN_OPS: usize = 32;

impl Link {
    pub(crate) fn multi(&self, ops: &[Op]) -> Pending<Vec<OpResult>> {
        if ops.is_empty() {
            return Pending::ready(Ok(Vec::new()));
        }
        let refuse = |op: &Op, detail: String| {
            Error::with_detail("multi", op.path(), Code::BAD_ARGUMENTS, detail)
        };
        let mut raw = Vec::with_capacity(ops.len());
        for (at, op) in ops.iter().enumerate() {
            let allowed = match op {
                Op::Set { path, .. } => self.check_write(path),
                _ => Ok(()),
            };
            match allowed.and_then(|()| op.raw()) {
                Ok(op) => raw.push(op),
                Err(why) => {
                    return Pending::ready(Err(refuse(op, why.to_owned()).of_operation(at)));
                }
            }
            if let Op::Create { path, acl, .. } = op {
                let valid = self.check_acl("multi", path, acl);
                checked!(valid.map_err(|error| error.of_operation(at)));
            }
        }
        let present = self.session().map(|key| key.id());
        let is_over = |op: &&Op| match op {
            Op::CheckHeld(CheckHeld { hold: Some(hold), .. }) => {
                !hold.is_held() || Some(hold.session()) != present
            }
            _ => false,
        };
        if let Some(at) = ops.iter().position(|op| is_over(&op)) {
            let (path, detail) = (ops[at].path(), "the lock is not held any more");
            let error = Error::with_detail("multi", path, Code::SESSION_EXPIRED, detail);
            return Pending::ready(Err(error.of_operation(at)));
        }
        let surroundings = (ops.len() - 1) * BETWEEN_OPS;
        let size = ops.iter().map(Op::len).sum::<usize>() + surroundings;
        if size > self.options.max_request {
            let limit = self.options.max_request;
            let detail =
                format!("{size} bytes of paths, data and acls, but a request takes {limit}");
            return Pending::ready(Err(refuse(&ops[0], detail)));
        }
        let pending = self.renewing_request(
            Proof::Write,
            "multi",
            ops[0].path(),
            Ok,
            |handle, terms, sink| {
                handle.multi(terms, &raw, sink);
            },
        );
        let ops = ops.to_vec();
        pending.map(move |results| explain(&ops, results?))
    }
}

/// Which operation has failed the whole, if it failed.
pub(super) fn culprit(results: &[RawOpResult]) -> Option<usize> {
    // In a refused transaction the operations before the culprit read "ok", those after it
    // "runtime inconsistency".
    let innocent = |code: Code| code == Code::OK || code == Code::RUNTIME_INCONSISTENCY;
    let culprit = results.iter().position(|result| !innocent(result.code));
    culprit.or_else(|| results.iter().position(|result| result.code != Code::OK))
}

/// The results, or the operation that failed the whole.
fn explain(ops: &[Op], results: Vec<RawOpResult>) -> Result<Vec<OpResult>> {
    if let Some(at) = culprit(&results) {
        let detail = format!("operation {} of {} ({})", at + 1, ops.len(), ops[at].name());
        let error = Error::with_detail("multi", ops[at].path(), results[at].code, detail);
        return Err(error.of_operation(at));
    }
    let read = |(op, result): (&Op, RawOpResult)| match op {
        Op::Create { .. } => OpResult::Created(result.path.unwrap_or_default()),
        Op::Delete { .. } => OpResult::Deleted,
        Op::Set { .. } => OpResult::Set(result.stat.unwrap_or_default()),
        Op::CheckHeld(_) | Op::Check { .. } => OpResult::Checked,
    };
    Ok(ops.iter().zip(results).map(read).collect())
}

impl Client {
    /// Executes several operations: all or none. An empty list does nothing.
    ///
    /// Cancel safety: as of all [operations](Client#operations).
    ///
    /// # Errors
    /// The error of the operation that failed the transaction, with its path. [`Error::failed_op_index`] gives its
    /// index. `NOT_CONNECTED`: the client was not connected when its turn came, and nothing was sent. Other operations
    /// then wait until it has tried to connect again.
    pub fn multi(&self, ops: &[Op]) -> Pending<Vec<OpResult>> {
        let path = ops.first().map_or("", Op::path);
        checked!(self.inner().link("multi", path)).multi(ops)
    }
}
