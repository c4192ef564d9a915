//! The requests of a [`RawClient`]: each sends one frame and waits for its reply.

use super::client::garbled;
use super::{CreateMode, MultiOp, NO_NODE, Op, RawClient, Reader, Stat, Writer};
use crate::error::{Error, Result};

const ANY_VERSION: i32 = -1;

/// What every request here can answer with: [`Error::Server`] with ZooKeeper's code, [`Error::Timeout`] after the
/// reply timeout, [`Error::Io`] when the connection ends: then the request may have been done or not.
impl RawClient {
    /// Creates a persistent node that anybody may use. Returns its path.
    ///
    /// # Errors
    /// Code -110 when it exists, -101 when its parent does not; see above for the rest.
    pub fn create(&mut self, path: &str, data: &[u8]) -> Result<String> {
        self.create_with(path, data, CreateMode::Persistent)
    }

    /// Creates a node that anybody may use. Returns its path, with its number where it has one.
    ///
    /// Containers and nodes with a time to live are operations of their own on the wire, [`Op::CreateContainer`] and
    /// [`Op::CreateTtl`]; the other modes are [`Op::Create`].
    ///
    /// # Errors
    /// As [`RawClient::create`].
    pub fn create_with(&mut self, path: &str, data: &[u8], mode: CreateMode) -> Result<String> {
        let (op, flags) = match mode {
            CreateMode::Persistent => (Op::Create, 0),
            CreateMode::Ephemeral => (Op::Create, 1),
            CreateMode::PersistentSequential => (Op::Create, 2),
            CreateMode::EphemeralSequential => (Op::Create, 3),
            CreateMode::Container => (Op::CreateContainer, 4),
            CreateMode::Ttl(_) => (Op::CreateTtl, 5),
        };
        let mut body = Writer::new();
        write_create(&mut body, path, data, flags);
        if let CreateMode::Ttl(ttl) = mode {
            body.long(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
        }
        let reply = self.call(op, path, &body)?;
        Reader::new(&reply).string().ok_or_else(|| garbled("create"))
    }

    /// Deletes a node of any version.
    ///
    /// # Errors
    /// Code -101 when there is none, -111 when it has children.
    pub fn delete(&mut self, path: &str) -> Result<()> {
        let mut body = Writer::new();
        body.string(path).int(ANY_VERSION);
        self.call(Op::Delete, path, &body).map(drop)
    }

    /// The node's facts, `None` when there is no such node.
    ///
    /// # Errors
    /// See above.
    pub fn exists(&mut self, path: &str) -> Result<Option<Stat>> {
        self.look(path, false)
    }

    /// As [`exists`](RawClient::exists), and watches for the node's creation, change or deletion.
    ///
    /// # Errors
    /// See above.
    pub fn exists_and_watch(&mut self, path: &str) -> Result<Option<Stat>> {
        self.look(path, true)
    }

    fn look(&mut self, path: &str, watch: bool) -> Result<Option<Stat>> {
        match self.call_on_path(Op::Exists, path, watch) {
            Ok(reply) => {
                Ok(Some(read_stat(&mut Reader::new(&reply)).ok_or_else(|| garbled("exists"))?))
            }
            Err(error) if error.code() == Some(NO_NODE) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The node's data and facts.
    ///
    /// # Errors
    /// Code -101 when there is no such node.
    pub fn get_data(&mut self, path: &str) -> Result<(Vec<u8>, Stat)> {
        self.read(path, false)
    }

    /// As [`get_data`](RawClient::get_data), and watches for the node's change or deletion.
    ///
    /// # Errors
    /// Code -101 when there is no such node; then no watch is set.
    pub fn get_data_and_watch(&mut self, path: &str) -> Result<(Vec<u8>, Stat)> {
        self.read(path, true)
    }

    fn read(&mut self, path: &str, watch: bool) -> Result<(Vec<u8>, Stat)> {
        let reply = self.call_on_path(Op::GetData, path, watch)?;
        let mut reader = Reader::new(&reply);
        let fields = (|| Some((reader.buffer()?.to_vec(), read_stat(&mut reader)?)))();
        fields.ok_or_else(|| garbled("get data"))
    }

    /// Replaces the node's data, whatever its version.
    ///
    /// # Errors
    /// Code -101 when there is no such node.
    pub fn set_data(&mut self, path: &str, data: &[u8]) -> Result<Stat> {
        let mut body = Writer::new();
        body.string(path).buffer(data).int(ANY_VERSION);
        let reply = self.call(Op::SetData, path, &body)?;
        read_stat(&mut Reader::new(&reply)).ok_or_else(|| garbled("set data"))
    }

    /// The names of the node's children, not their paths, unordered.
    ///
    /// # Errors
    /// Code -101 when there is no such node.
    pub fn children(&mut self, path: &str) -> Result<Vec<String>> {
        let reply = self.call_on_path(Op::GetChildren, path, false)?;
        Reader::new(&reply).strings().ok_or_else(|| garbled("get children"))
    }

    /// As [`children`](RawClient::children), and watches for children that come or go.
    ///
    /// # Errors
    /// Code -101 when there is no such node; then no watch is set.
    pub fn children_and_watch(&mut self, path: &str) -> Result<Vec<String>> {
        let reply = self.call_on_path(Op::GetChildren, path, true)?;
        Reader::new(&reply).strings().ok_or_else(|| garbled("get children"))
    }

    /// Does all of `ops` or none.
    ///
    /// # Errors
    /// [`Error::Server`] with the code of the part that failed.
    pub fn multi(&mut self, ops: &[MultiOp]) -> Result<()> {
        let mut body = Writer::new();
        for op in ops {
            write_part(&mut body, op);
        }
        body.int(-1).bool(true).int(-1);
        let reply = self.call(Op::Multi, "", &body)?;
        match multi_error(&mut Reader::new(&reply)) {
            Some(code) => Err(Error::Server { op: Op::Multi, path: String::new(), code }),
            None => Ok(()),
        }
    }

    /// Tells the server that the session lives.
    ///
    /// # Errors
    /// See above.
    pub fn ping(&mut self) -> Result<()> {
        let xid = self.submit(Op::Ping, &[])?;
        self.wait_reply(xid).map(drop)
    }

    /// Closes the session: its ephemeral nodes are gone when this returns.
    ///
    /// # Errors
    /// [`Error::Io`] when the connection ended before the answer: the session may live until its timeout.
    pub fn close_session(mut self) -> Result<()> {
        self.call(Op::CloseSession, "", &Writer::new()).map(drop)
    }

    fn call_on_path(&mut self, op: Op, path: &str, watch: bool) -> Result<Vec<u8>> {
        let mut body = Writer::new();
        body.string(path).bool(watch);
        self.call(op, path, &body)
    }

    fn call(&mut self, op: Op, path: &str, body: &Writer) -> Result<Vec<u8>> {
        let xid = self.submit(op, body.body())?;
        match self.wait_reply(xid)? {
            (0, reply) => Ok(reply),
            (code, _) => Err(Error::Server { op, path: path.to_owned(), code }),
        }
    }
}

/// The fields that all ways to create a node share. Anybody may do anything to it.
fn write_create(body: &mut Writer, path: &str, data: &[u8], flags: i32) {
    const ALL: i32 = 31;
    body.string(path).buffer(data).int(1).int(ALL).string("world").string("anyone").int(flags);
}

fn write_part(body: &mut Writer, part: &MultiOp) {
    let op = match part {
        MultiOp::Create { .. } | MultiOp::CreateEphemeral { .. } => Op::Create,
        MultiOp::Delete { .. } => Op::Delete,
        MultiOp::SetData { .. } => Op::SetData,
        MultiOp::Check { .. } => Op::Check,
    };
    body.int(op.number()).bool(false).int(-1);
    match part {
        MultiOp::Create { path, data } => write_create(body, path, data, 0),
        MultiOp::CreateEphemeral { path, data } => write_create(body, path, data, 1),
        MultiOp::Delete { path } => drop(body.string(path).int(ANY_VERSION)),
        MultiOp::SetData { path, data } => drop(body.string(path).buffer(data).int(ANY_VERSION)),
        MultiOp::Check { path, version } => drop(body.string(path).int(*version)),
    }
}

/// Why a transaction failed, from its reply; `None` when it succeeded. The reply's own code is zero either way.
pub(crate) fn multi_error(reader: &mut Reader<'_>) -> Option<i32> {
    const ERROR: i32 = -1;
    // Parts that were not to blame say so.
    const RUNTIME_INCONSISTENCY: i32 = -2;
    // A failed transaction's reply consists of errors only; results of a success need not be read.
    while let (Some(ERROR), Some(false), Some(_)) = (reader.int(), reader.bool(), reader.int()) {
        match reader.int()? {
            0 | RUNTIME_INCONSISTENCY => {}
            code => return Some(code),
        }
    }
    None
}

fn read_stat(reader: &mut Reader<'_>) -> Option<Stat> {
    Some(Stat {
        czxid: reader.long()?,
        mzxid: reader.long()?,
        ctime: reader.long()?,
        mtime: reader.long()?,
        version: reader.int()?,
        cversion: reader.int()?,
        aversion: reader.int()?,
        ephemeral_owner: reader.long()?,
        data_length: reader.int()?,
        num_children: reader.int()?,
        pzxid: reader.long()?,
    })
}
