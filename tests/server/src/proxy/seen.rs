//! What a frame says, as far as rules ask for it.

use std::collections::HashMap;
use std::fmt;
use std::time::Instant;

use crate::wire::{Op, Reader, XID_AUTH, XID_EVENT, XID_PING, multi_error, told};

/// Which way a frame goes, and whether it answers something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From a client to the server.
    Request,
    /// From the server to a client, in answer to a request.
    Reply,
    /// From the server to a client, because a watch fired.
    Event,
}

/// A frame that has arrived at the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seen {
    /// Which connection it came on, counted from one in the order of acceptance.
    pub connection: u64,
    /// Which way it goes.
    pub direction: Direction,
    /// What is asked for, or was; [`Op::Event`] for a watch event.
    pub op: Op,
    /// The request's number.
    pub xid: i32,
    /// The request's path, for a multi those of its parts, or the event's; empty where there is none.
    pub paths: Vec<String>,
    /// The operations of a multi.
    pub parts: Vec<Op>,
    /// Whether a read sets a watch, too.
    pub watch: bool,
    /// A reply's error code, zero for success, for a multi that of the part to blame; an event's kind (1 created, 2 deleted, 3 changed, 4 children).
    pub error: i32,
    /// The frame's length on the wire, in bytes.
    pub bytes: usize,
    /// When it arrived.
    pub at: Instant,
}

impl fmt::Display for Seen {
    /// One line: `reply Create2 /a: node exists (-110)`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.direction {
            Direction::Event => write!(formatter, "event {}", self.error)?,
            Direction::Request => write!(formatter, "request {:?}", self.op)?,
            Direction::Reply => write!(formatter, "reply {:?}", self.op)?,
        }
        for path in &self.paths {
            write!(formatter, " {path}")?;
        }
        match (self.direction, self.error) {
            (Direction::Reply, code) if code != 0 => write!(formatter, ": {}", told(code)),
            _ => Ok(()),
        }
    }
}

/// What a connection has said so far: which reply belongs to which request.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    opened: bool,
    answered: bool,
    asked: HashMap<i32, Asked>,
    /// The session's id and password, as the server granted them.
    pub(super) session: Option<(i64, [u8; 16])>,
}

#[derive(Debug)]
struct Asked {
    op: Op,
    paths: Vec<String>,
    parts: Vec<Op>,
    watch: bool,
}

impl Conversation {
    /// Reads a frame from the client; `frame` has its length in front.
    pub(super) fn request(&mut self, connection: u64, frame: &[u8]) -> Seen {
        let mut seen = Seen {
            connection,
            direction: Direction::Request,
            op: Op::Connect,
            xid: 0,
            paths: Vec::new(),
            parts: Vec::new(),
            watch: false,
            error: 0,
            bytes: frame.len(),
            at: Instant::now(),
        };
        if !std::mem::replace(&mut self.opened, true) {
            return seen;
        }
        let mut reader = Reader::new(frame.get(4..).unwrap_or_default());
        seen.xid = reader.int().unwrap_or(0);
        seen.op = Op::from_number(reader.int().unwrap_or(0));
        match seen.op {
            Op::Multi | Op::MultiRead => (seen.parts, seen.paths) = read_multi(&mut reader),
            op if op.starts_with_path() => {
                seen.paths.extend(reader.string());
                seen.watch = op.can_watch() && reader.bool().unwrap_or(false);
            }
            _ => {}
        }
        let (paths, parts) = (seen.paths.clone(), seen.parts.clone());
        let asked = Asked { op: seen.op, paths, parts, watch: seen.watch };
        self.asked.insert(seen.xid, asked);
        seen
    }

    /// Reads a frame from the server; `frame` has its length in front.
    pub(super) fn reply(&mut self, connection: u64, frame: &[u8]) -> Seen {
        let mut seen = Seen {
            connection,
            direction: Direction::Reply,
            op: Op::Connect,
            xid: 0,
            paths: Vec::new(),
            parts: Vec::new(),
            watch: false,
            error: 0,
            bytes: frame.len(),
            at: Instant::now(),
        };
        let mut reader = Reader::new(frame.get(4..).unwrap_or_default());
        if !std::mem::replace(&mut self.answered, true) {
            self.session = granted(&mut reader);
            return seen;
        }
        seen.xid = reader.int().unwrap_or(0);
        let _zxid = reader.long();
        seen.error = reader.int().unwrap_or(0);
        match seen.xid {
            XID_EVENT => {
                seen.direction = Direction::Event;
                seen.op = Op::Event;
                seen.error = reader.int().unwrap_or(0);
                let _state = reader.int();
                seen.paths.extend(reader.string());
            }
            XID_PING => seen.op = Op::Ping,
            XID_AUTH => seen.op = Op::Auth,
            xid => match self.asked.remove(&xid) {
                Some(asked) => {
                    (seen.op, seen.paths, seen.parts) = (asked.op, asked.paths, asked.parts);
                    seen.watch = asked.watch;
                }
                None => seen.op = Op::Other(0),
            },
        }
        if seen.op == Op::Multi && seen.error == 0 {
            seen.error = multi_error(&mut reader).unwrap_or(0);
        }
        seen
    }
}

/// The session that a server opens; `None` when it refuses to.
fn granted(reader: &mut Reader<'_>) -> Option<(i64, [u8; 16])> {
    let _protocol = reader.int()?;
    let _timeout = reader.int()?;
    let id = reader.long()?;
    let password = reader.buffer()?.try_into().ok()?;
    (id != 0).then_some((id, password))
}

/// The parts of a multi and their paths, up to a part that this crate does not know.
fn read_multi(reader: &mut Reader<'_>) -> (Vec<Op>, Vec<String>) {
    let (mut parts, mut paths) = (Vec::new(), Vec::new());
    while let (Some(number), Some(false), Some(_)) = (reader.int(), reader.bool(), reader.int()) {
        let op = Op::from_number(number);
        parts.push(op);
        match read_part(op, reader) {
            Some(path) => paths.push(path),
            None => break,
        }
    }
    (parts, paths)
}

/// Reads to the end of a part and returns its path.
fn read_part(op: Op, reader: &mut Reader<'_>) -> Option<String> {
    let path = reader.string()?;
    match op {
        Op::Create | Op::Create2 | Op::CreateContainer | Op::CreateTtl => {
            reader.buffer()?;
            for _ in 0..reader.count()? {
                reader.int()?;
                reader.buffer()?;
                reader.buffer()?;
            }
            reader.int()?;
            if op == Op::CreateTtl {
                reader.long()?;
            }
        }
        Op::Delete | Op::Check => drop(reader.int()?),
        Op::SetData => {
            reader.buffer()?;
            reader.int()?;
        }
        Op::GetData | Op::GetChildren => drop(reader.bool()?),
        _ => return None,
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Writer;

    #[test]
    fn replies_are_matched_to_their_requests_by_number() {
        let mut talk = Conversation::default();
        assert_eq!(talk.request(1, &Writer::new().frame()).op, Op::Connect);
        assert_eq!(talk.reply(1, &Writer::new().frame()).op, Op::Connect);
        for (xid, op) in [(1, Op::Create), (2, Op::Delete)] {
            let mut request = Writer::new();
            request.int(xid).int(op.number()).string("/a");
            assert_eq!(talk.request(1, &request.frame()).paths, ["/a"]);
        }
        for (xid, watch) in [(3, true), (4, false)] {
            let mut read = Writer::new();
            read.int(xid).int(Op::GetData.number()).string("/a").bool(watch);
            assert_eq!(talk.request(1, &read.frame()).watch, watch);
            let mut reply = Writer::new();
            reply.int(xid).long(9).int(0);
            assert_eq!(talk.reply(1, &reply.frame()).watch, watch);
        }
        let mut reply = Writer::new();
        reply.int(2).long(9).int(-101);
        let seen = talk.reply(1, &reply.frame());
        assert_eq!((seen.op, seen.error), (Op::Delete, -101));
        assert_eq!(seen.paths, ["/a"]);
        let mut event = Writer::new();
        event.int(-1).long(-1).int(0).int(2).int(3).string("/gone");
        let seen = talk.reply(1, &event.frame());
        assert_eq!((seen.direction, seen.op, seen.error), (Direction::Event, Op::Event, 2));
        assert_eq!(seen.paths, ["/gone"]);
    }
}
