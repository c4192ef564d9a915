//! Requests on their way to a server, and what waits for their answers.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use oneshot::Sender;

use super::guaranteed_delete::GuaranteedDelete;
use super::server::Kind;
use crate::client::{Created, Watch};
use crate::error::{Code, Error, Result};
use crate::znode::Stat;

#[derive(Clone, Debug)]
pub(super) enum Op {
    Create {
        sequential: bool,
        kind: Kind,
        data: Arc<[u8]>,
    },
    /// With the transaction that made what is meant, and whether the client had seen a later state
    /// of the servers than one in which that was there.
    Delete {
        czxid: i64,
        too_late: bool,
    },
    Children,
    Get {
        watch: bool,
    },
    Sync,
}

impl Op {
    pub(super) fn is_write(&self) -> bool {
        matches!(self, Op::Create { .. } | Op::Delete { .. })
    }

    /// Whether no server can answer it alone.
    pub(super) fn needs_leader(&self) -> bool {
        self.is_write() || matches!(self, Op::Sync)
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Op::Create { .. } => "create",
            Op::Delete { .. } => "delete",
            Op::Children => "children",
            Op::Get { .. } => "get",
            Op::Sync => "sync",
        }
    }
}

/// Without the data: whose it is, the path or the session says.
impl Hash for Op {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
        match self {
            Op::Create { sequential, kind, .. } => (sequential, kind).hash(state),
            Op::Get { watch } => watch.hash(state),
            Op::Delete { czxid, too_late } => (czxid, too_late).hash(state),
            Op::Children | Op::Sync => {}
        }
    }
}

/// A request, and who is to hear of it.
pub(super) struct Request {
    pub(super) op: Op,
    pub(super) path: String,
    pub(super) reply: Reply,
}

/// What a server says to a request.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Created(Created),
    Children(Vec<String>, Stat),
    Data(Vec<u8>, Stat),
    Done,
}

pub(super) type Answer = std::result::Result<Value, Code>;

/// Without the data, as [`Op`].
pub(super) fn hash_answer<H: Hasher>(answer: &Answer, state: &mut H) {
    match answer {
        Ok(Value::Created(Created { path, stat })) => (0, path, stat.czxid).hash(state),
        Ok(Value::Children(names, stat)) => (1, names, stat.czxid).hash(state),
        Ok(Value::Data(_, stat)) => (2, stat.czxid, stat.version, stat.ephemeral_owner).hash(state),
        Ok(Value::Done) => 3.hash(state),
        Err(code) => (4, code).hash(state),
    }
}

pub(super) type WatchedData = (Vec<u8>, Stat, Watch);

/// Who waits for an answer.
pub(super) enum Reply {
    /// It was given up, or has been answered on this side.
    Nobody,
    Created(Sender<Result<Created>>),
    Children(Sender<Result<(Vec<String>, Stat)>>),
    Data(Sender<Result<(Vec<u8>, Stat)>>),
    WatchedData(Sender<Result<WatchedData>>),
    Done(Sender<Result<()>>),
    /// The sync before the look before a deletion that is repeated.
    Sync(GuaranteedDelete),
    /// The look before a deletion.
    Look(GuaranteedDelete),
    Deletion(GuaranteedDelete),
}

impl Reply {
    pub(super) fn take(&mut self) -> Reply {
        std::mem::replace(self, Reply::Nobody)
    }

    /// Which of them it is.
    pub(super) fn number(&self) -> u8 {
        match self {
            Reply::Nobody => 0,
            Reply::Created(_) => 1,
            Reply::Children(_) => 2,
            Reply::Data(_) => 3,
            Reply::WatchedData(_) => 4,
            Reply::Done(_) => 5,
            Reply::Look(_) => 6,
            Reply::Deletion(_) => 7,
            Reply::Sync(_) => 8,
        }
    }
}

pub(super) fn error(op: &Op, path: &str, code: Code) -> Error {
    Error::new(op.name(), path, code)
}
