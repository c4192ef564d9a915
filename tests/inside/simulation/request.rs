//! Requests on their way to a server, and what waits for their answers.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::server::New;
use crate::error::Code;
use crate::raw::Sink;
use crate::znode::Stat;

#[derive(Clone, Debug)]
pub(super) enum Op {
    Create(New),
    /// In one transaction.
    CreateAll(Vec<(String, New)>),
    /// A transaction that the servers refuse, because it writes to what its ACL protects.
    Forbidden,
    Delete {
        /// Whether it is written to before, in the same transaction.
        announced: bool,
        /// Whether the client had seen a state of the servers in which all its claims were gone that
        /// there ever were at that path.
        too_late: bool,
    },
    Children {
        watch: bool,
    },
    Get {
        watch: bool,
    },
    Exists,
    Set {
        data: Arc<[u8]>,
        version: i32,
    },
    Sync,
}

impl Op {
    pub(super) fn is_write(&self) -> bool {
        !matches!(self, Op::Children { .. } | Op::Get { .. } | Op::Exists | Op::Sync)
    }

    /// Whether no server can answer it alone.
    pub(super) fn needs_leader(&self) -> bool {
        self.is_write() || matches!(self, Op::Sync)
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Op::Create(_) => "create",
            Op::CreateAll(_) => "create all",
            Op::Forbidden => "forbidden",
            Op::Exists => "exists",
            Op::Delete { .. } => "delete",
            Op::Children { .. } => "children",
            Op::Get { .. } => "get",
            Op::Set { .. } => "set",
            Op::Sync => "sync",
        }
    }
}

/// Without the data: whose it is, the path or the session says.
impl Hash for Op {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
        match self {
            Op::Create(new) => (new.sequential, new.kind).hash(state),
            Op::CreateAll(all) => all.len().hash(state),
            Op::Get { watch } | Op::Children { watch } => watch.hash(state),
            Op::Set { version, .. } => version.hash(state),
            Op::Delete { announced, too_late } => (announced, too_late).hash(state),
            Op::Sync | Op::Exists | Op::Forbidden => {}
        }
    }
}

/// A request, and who is to hear of it.
pub(super) struct Request {
    pub(super) op: Op,
    pub(super) path: String,
    pub(super) reply: Reply,
    pub(super) deadline: Option<Instant>,
    /// What the client's clock showed then.
    pub(super) submitted: Duration,
    /// How many acquires of the client had ended by then.
    pub(super) ended: usize,
}

impl Request {
    /// Whether somebody waits for an answer.
    pub(super) fn is_awaited(&self) -> bool {
        self.reply.number() != 0
    }

    pub(super) fn is_late(&self, now: Instant) -> bool {
        self.is_awaited() && self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Whether it asks for nothing but a proof that the session is alive.
    pub(super) fn is_heartbeat(&self) -> bool {
        match self.op {
            Op::Sync => self.path == "/",
            Op::Delete { .. } => self.path == "/zklock/heartbeat",
            _ => false,
        }
    }
}

/// What a server says to a request.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Created(String, Stat),
    /// Or which of them could not be, and why.
    CreatedAll(std::result::Result<Vec<String>, (usize, Code)>),
    Children(Vec<String>, Stat),
    Data(Vec<u8>, Stat),
    Stat(Stat),
    Done,
}

pub(super) type Answer = std::result::Result<Value, Code>;

/// Without the data, as [`Op`].
pub(super) fn hash_answer<H: Hasher>(answer: &Answer, state: &mut H) {
    match answer {
        Ok(Value::Created(path, stat)) => (0, path, stat.czxid).hash(state),
        Ok(Value::Children(names, stat)) => (1, names, stat.czxid, stat.mzxid).hash(state),
        Ok(Value::Data(_, stat)) => (2, stat.czxid, stat.version, stat.ephemeral_owner).hash(state),
        Ok(Value::CreatedAll(created)) => (6, created).hash(state),
        Ok(Value::Done) => 3.hash(state),
        Ok(Value::Stat(stat)) => (5, stat.czxid, stat.version).hash(state),
        Err(code) => (4, code).hash(state),
    }
}

/// Who waits for an answer.
pub(super) enum Reply {
    /// It was given up, or has been answered on this side.
    Nobody,
    Created(Sink<(String, Stat)>),
    CreatedAll(Sink<std::result::Result<Vec<String>, (usize, Code)>>),
    Children(Sink<(Vec<String>, Stat)>),
    Data(Sink<(Vec<u8>, Stat)>),
    Stat(Sink<Stat>),
    Done(Sink<()>),
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
            Reply::Done(_) => 4,
            Reply::Stat(_) => 5,
            Reply::CreatedAll(_) => 6,
        }
    }

    /// Gives the answer to whoever waits for it.
    pub(super) fn give(self, answer: Answer) {
        match (self, answer) {
            (Reply::Nobody, _) => {}
            (Reply::Created(sink), Ok(Value::Created(path, stat))) => sink(Ok((path, stat))),
            (Reply::Children(sink), Ok(Value::Children(names, stat))) => sink(Ok((names, stat))),
            (Reply::Data(sink), Ok(Value::Data(data, stat))) => sink(Ok((data, stat))),
            (Reply::Stat(sink), Ok(Value::Stat(stat))) => sink(Ok(stat)),
            (Reply::Done(sink), Ok(Value::Done)) => sink(Ok(())),
            (Reply::CreatedAll(sink), Ok(Value::CreatedAll(created))) => sink(Ok(created)),
            (Reply::Created(sink), answer) => sink(Err(code(answer))),
            (Reply::CreatedAll(sink), answer) => sink(Err(code(answer))),
            (Reply::Children(sink), answer) => sink(Err(code(answer))),
            (Reply::Data(sink), answer) => sink(Err(code(answer))),
            (Reply::Stat(sink), answer) => sink(Err(code(answer))),
            (Reply::Done(sink), answer) => sink(Err(code(answer))),
        }
    }
}

fn code(answer: Answer) -> Code {
    answer.err().unwrap_or(Code::MARSHALLING_ERROR)
}
