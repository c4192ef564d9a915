//! The servers: one leader that orders every write, and a replica for each session, which applies
//! the same transactions later or at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::scenario::OTHER;
use crate::client::{WatchEvent, WatchEventKind};
use crate::error::Code;
use crate::znode::Stat;
use crate::zookeeper::name;

/// How long a session lives that the leader does not count as alive.
pub(super) const SESSION_TIMEOUT: Duration = Duration::from_secs(6);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Persistent,
    Container,
    /// With the session that it lives as long as.
    Ephemeral(i64),
}

#[derive(Clone)]
pub(super) struct Znode {
    pub(super) czxid: i64,
    /// The transaction that last set its data, and how often that was done.
    pub(super) mzxid: i64,
    pub(super) version: i32,
    /// The transaction that last created or deleted a child.
    pub(super) pzxid: i64,
    pub(super) kind: Kind,
    pub(super) data: Arc<[u8]>,
    /// Whether nobody but its own session may write to it.
    pub(super) is_protected: bool,
    /// How many children were ever created: the next sequence number, unless that is at its end.
    pub(super) sequence: i32,
}

impl Znode {
    fn new(zxid: i64, kind: Kind, data: Arc<[u8]>, is_protected: bool) -> Znode {
        let (czxid, mzxid, pzxid) = (zxid, zxid, zxid);
        Znode { czxid, mzxid, version: 0, pzxid, kind, data, is_protected, sequence: 0 }
    }

    pub(super) fn stat(&self) -> Stat {
        let ephemeral_owner = match self.kind {
            Kind::Persistent => 0,
            Kind::Container => i64::MIN,
            Kind::Ephemeral(session) => session,
        };
        let Znode { czxid, mzxid, version, pzxid, .. } = *self;
        Stat { czxid, mzxid, version, pzxid, ephemeral_owner, ..Stat::default() }
    }
}

#[derive(Clone)]
pub(super) enum Change {
    Create {
        path: String,
        kind: Kind,
        data: Arc<[u8]>,
        is_protected: bool,
    },
    Delete {
        path: String,
    },
    Write {
        path: String,
        data: Arc<[u8]>,
    },
    /// Where the numbering of a directory's children stands.
    Number {
        path: String,
        next: i32,
    },
}

/// A znode that is to be created.
#[derive(Clone, Debug)]
pub(super) struct New {
    pub(super) sequential: bool,
    pub(super) kind: Kind,
    pub(super) data: Arc<[u8]>,
    pub(super) is_protected: bool,
}

impl New {
    pub(super) fn plain(kind: Kind, data: &[u8]) -> New {
        New { sequential: false, kind, data: data.into(), is_protected: false }
    }

    pub(super) fn at(&self, path: &str) -> Change {
        let (path, data) = (path.to_owned(), Arc::clone(&self.data));
        Change::Create { path, kind: self.kind, data, is_protected: self.is_protected }
    }
}

/// A transaction: its changes are seen together.
pub(super) struct Transaction {
    pub(super) zxid: i64,
    changes: Vec<Change>,
}

/// The znodes as of some transaction.
#[derive(Clone)]
pub(super) struct Tree {
    pub(super) nodes: BTreeMap<String, Znode>,
}

impl Tree {
    fn new() -> Tree {
        let root = Znode::new(0, Kind::Persistent, Arc::default(), false);
        Tree { nodes: BTreeMap::from([("/".to_owned(), root)]) }
    }

    pub(super) fn get(&self, path: &str) -> Option<&Znode> {
        self.nodes.get(path)
    }

    /// The names of the children of a znode, if it is there.
    pub(super) fn children(&self, path: &str) -> Option<Vec<String>> {
        self.get(path)?;
        Some(self.paths_under(path).map(|child| child[path.len() + 1..].to_owned()).collect())
    }

    fn paths_under<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a String> {
        let below = self.nodes.range(path.to_owned()..).skip(1).map(|(child, _)| child);
        below
            .take_while(move |child| child.starts_with(path))
            .filter(move |child| parent(child) == path)
    }

    fn apply(&mut self, zxid: i64, change: &Change) -> Option<(WatchEventKind, String)> {
        match change {
            Change::Create { path, kind, data, is_protected } => {
                if let Some(parent) = self.nodes.get_mut(parent(path)) {
                    // At its end a tree keeps the largest count.
                    parent.sequence = parent.sequence.saturating_add(1);
                    parent.pzxid = zxid;
                }
                let node = Znode::new(zxid, *kind, Arc::clone(data), *is_protected);
                self.nodes.insert(path.clone(), node);
                Some((WatchEventKind::Created, path.clone()))
            }
            Change::Delete { path } => {
                self.nodes.remove(path);
                if let Some(parent) = self.nodes.get_mut(parent(path)) {
                    parent.pzxid = zxid;
                }
                Some((WatchEventKind::Deleted, path.clone()))
            }
            Change::Write { path, data } => {
                let node = self.nodes.get_mut(path)?;
                (node.mzxid, node.version) = (zxid, node.version + 1);
                node.data = Arc::clone(data);
                Some((WatchEventKind::DataChanged, path.clone()))
            }
            Change::Number { path, next } => {
                if let Some(node) = self.nodes.get_mut(path) {
                    node.sequence = *next;
                }
                None
            }
        }
    }
}

pub(super) fn parent(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(at) => &path[..at],
    }
}

/// What the leader says of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Life {
    Alive,
    /// Given up: nothing is taken from it any more, but its znodes are still there.
    Closing,
    Closed,
}

/// The number of a claim: the transaction that made it, and in which of the directories, in each of which it can have made
/// one.
pub(super) fn number(path: &str, czxid: i64) -> i64 {
    czxid + i64::from(parent(path) == OTHER)
}

/// What is remembered of a claim for ever: what the servers' own log would tell of it.
pub(super) struct Record {
    pub(super) path: String,
    pub(super) session: i64,
    /// As it was created.
    pub(super) data: Arc<[u8]>,
    /// The transaction that deleted it.
    pub(super) gone: Option<i64>,
    /// What the clock of its client showed when it was submitted.
    pub(super) submitted: Duration,
}

/// The leader: what it holds is what counts.
pub(super) struct Leader {
    pub(super) tree: Tree,
    pub(super) log: Vec<Transaction>,
    pub(super) sessions: BTreeMap<i64, Life>,
    /// Every ephemeral znode that there ever was, by its [number].
    pub(super) records: BTreeMap<i64, Record>,
    /// When the request that is taken up was submitted, by the clock of its client.
    pub(super) submitted: Duration,
    /// What the ids of sessions begin with.
    id: u8,
}

impl Leader {
    pub(super) fn new(id: u8) -> Leader {
        let (tree, log, submitted) = (Tree::new(), Vec::new(), Duration::ZERO);
        let (sessions, records) = (BTreeMap::new(), BTreeMap::new());
        Leader { tree, log, sessions, records, submitted, id }
    }

    pub(super) fn open_session(&mut self) -> i64 {
        let id = (u64::from(self.id) << 56) as i64 + 0x1_0000 + self.sessions.len() as i64;
        self.sessions.insert(id, Life::Alive);
        id
    }

    pub(super) fn life(&self, session: i64) -> Life {
        self.sessions.get(&session).copied().unwrap_or(Life::Closed)
    }

    /// The claims of a session that there ever were at a path.
    pub(super) fn claims_at<'a>(
        &'a self,
        session: i64,
        path: &'a str,
    ) -> impl Iterator<Item = (i64, &'a Record)> {
        let records = self.records.iter().map(|(number, record)| (*number, record));
        records.filter(move |(_, record)| record.session == session && record.path == path)
    }

    pub(super) fn zxid(&self) -> i64 {
        self.log.last().map_or(0, |transaction| transaction.zxid)
    }

    pub(super) fn commit(&mut self, changes: Vec<Change>) -> i64 {
        let zxid = self.zxid() + 2;
        for change in &changes {
            self.record(zxid, change);
            self.tree.apply(zxid, change);
        }
        self.log.push(Transaction { zxid, changes });
        zxid
    }

    fn record(&mut self, zxid: i64, change: &Change) {
        match change {
            Change::Create { path, kind: Kind::Ephemeral(session), data, .. } => {
                let (path, data) = (path.clone(), Arc::clone(data));
                let number = number(&path, zxid);
                let (gone, submitted) = (None, self.submitted);
                let record = Record { path, session: *session, data, gone, submitted };
                self.records.insert(number, record);
            }
            Change::Delete { path } => {
                let number = self.tree.get(path).map(|node| number(path, node.czxid));
                if let Some(record) = number.and_then(|number| self.records.get_mut(&number)) {
                    record.gone = Some(zxid);
                }
            }
            _ => {}
        }
    }

    pub(super) fn create(&mut self, path: &str, new: &New) -> Result<String, Code> {
        let path = self.path_for(path, new)?;
        self.commit(vec![new.at(&path)]);
        Ok(path)
    }

    /// Creates all of them in one transaction; or gives which of them can't be, and why.
    pub(super) fn create_all(
        &mut self,
        all: &[(String, New)],
    ) -> Result<Vec<String>, (usize, Code)> {
        let paths = all.iter().enumerate();
        let paths =
            paths.map(|(at, (path, new))| self.path_for(path, new).map_err(|why| (at, why)));
        let paths: Vec<String> = paths.collect::<Result<_, _>>()?;
        self.commit(paths.iter().zip(all).map(|(path, (_, new))| new.at(path)).collect());
        Ok(paths)
    }

    /// The path that it gets.
    fn path_for(&self, path: &str, new: &New) -> Result<String, Code> {
        let above = self.tree.get(parent(path)).ok_or(Code::NO_NODE)?;
        if matches!(above.kind, Kind::Ephemeral(_)) {
            return Err(Code::NO_CHILDREN_FOR_EPHEMERALS);
        }
        let mut path = path.to_owned();
        if new.sequential {
            path.push_str(&format!("{:010}", self.next_number(parent(&path), above)));
        }
        if self.tree.get(&path).is_some() {
            return Err(Code::NODE_EXISTS);
        }
        Ok(path)
    }

    /// The number of the next child. At the end of its counter a directory gives the largest number again and again; those
    /// after it only where one create follows upon another.
    fn next_number(&self, directory: &str, above: &Znode) -> i32 {
        let last = self.log.last().and_then(|last| {
            last.changes.iter().find_map(|change| {
                let Change::Create { path, .. } = change else { return None };
                (parent(path) == directory).then(|| name::sequence(name::last(path))).flatten()
            })
        });
        match last.filter(|number| name::is_out_of_turn(*number)) {
            Some(number) => number.wrapping_add(1),
            None => above.sequence,
        }
    }

    pub(super) fn set(&mut self, path: &str, data: &Arc<[u8]>, version: i32) -> Result<Stat, Code> {
        let node = self.tree.get(path).ok_or(Code::NO_NODE)?;
        if version >= 0 && node.version != version {
            return Err(Code::BAD_VERSION);
        }
        self.commit(vec![Change::Write { path: path.to_owned(), data: Arc::clone(data) }]);
        Ok(self.tree.get(path).map(Znode::stat).unwrap_or_default())
    }

    /// Deletes a znode; where that is announced, it is written to in the same transaction.
    pub(super) fn delete(&mut self, path: &str, announced: bool) -> Result<(), Code> {
        self.tree.get(path).ok_or(Code::NO_NODE)?;
        if self.tree.paths_under(path).next().is_some() {
            return Err(Code::NOT_EMPTY);
        }
        let write = Change::Write { path: path.to_owned(), data: Arc::default() };
        let delete = Change::Delete { path: path.to_owned() };
        self.commit(if announced { vec![write, delete] } else { vec![delete] });
        Ok(())
    }

    /// Ends a session: its znodes go in one transaction.
    pub(super) fn close_session(&mut self, session: i64) {
        self.sessions.insert(session, Life::Closed);
        let of_session = |node: &Znode| node.kind == Kind::Ephemeral(session);
        let nodes = self.tree.nodes.iter().filter(|(_, node)| of_session(node));
        let changes = nodes.map(|(path, _)| Change::Delete { path: path.clone() }).collect();
        self.commit(changes);
    }
}

/// What the server that a session is connected to knows: the log up to some transaction.
pub(super) struct Replica {
    pub(super) tree: Tree,
    pub(super) applied: usize,
    /// The znodes that the session watches, and those whose children it does.
    pub(super) watches: BTreeSet<String>,
    pub(super) child_watches: BTreeSet<String>,
}

impl Replica {
    /// A server that has applied the log up to there.
    pub(super) fn up_to(leader: &Leader, applied: usize) -> Replica {
        let mut replica = Replica {
            tree: Tree::new(),
            applied: 0,
            watches: BTreeSet::new(),
            child_watches: BTreeSet::new(),
        };
        if applied == leader.log.len() {
            replica.tree = leader.tree.clone();
            replica.applied = applied;
        }
        while replica.applied < applied {
            replica.apply_next(leader);
        }
        replica
    }

    pub(super) fn zxid(&self, leader: &Leader) -> i64 {
        self.applied.checked_sub(1).map_or(0, |at| leader.log[at].zxid)
    }

    /// Applies one more transaction; gives the events for the session's watches.
    pub(super) fn apply_next(&mut self, leader: &Leader) -> Vec<WatchEvent> {
        let Some(transaction) = leader.log.get(self.applied) else { return Vec::new() };
        self.applied += 1;
        let mut events = Vec::new();
        for change in &transaction.changes {
            if let Some((kind, path)) = self.tree.apply(transaction.zxid, change) {
                let has_come_or_gone = kind != WatchEventKind::DataChanged;
                let above = parent(&path).to_owned();
                let is_gone = kind == WatchEventKind::Deleted;
                if self.watches.remove(&path) | (is_gone && self.child_watches.remove(&path)) {
                    events.push(WatchEvent { kind, path });
                }
                if has_come_or_gone && self.child_watches.remove(&above) {
                    let kind = WatchEventKind::ChildrenChanged;
                    events.push(WatchEvent { kind, path: above });
                }
            }
        }
        events
    }

    /// As [`watch_again`](Replica::watch_again), of its children.
    pub(super) fn watch_children_again(&mut self, path: &str, seen: i64) -> Option<WatchEvent> {
        let kind = match self.tree.get(path) {
            None => WatchEventKind::Deleted,
            Some(node) if node.pzxid > seen => WatchEventKind::ChildrenChanged,
            Some(_) => {
                self.child_watches.insert(path.to_owned());
                return None;
            }
        };
        Some(WatchEvent { kind, path: path.to_owned() })
    }

    /// Sets a watch again after a reconnection: fires at once if the znode has changed since the
    /// last transaction that the client has seen.
    pub(super) fn watch_again(&mut self, path: &str, seen: i64) -> Option<WatchEvent> {
        let kind = match self.tree.get(path) {
            None => WatchEventKind::Deleted,
            Some(node) if node.mzxid > seen => WatchEventKind::DataChanged,
            Some(_) => {
                self.watches.insert(path.to_owned());
                return None;
            }
        };
        Some(WatchEvent { kind, path: path.to_owned() })
    }
}
