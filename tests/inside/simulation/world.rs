//! Everything that is simulated: the servers, the clients, the clock. Here is what happens when
//! something happens; `steps.rs` says what can.

use std::collections::BTreeMap;
use std::hash::Hash;

use super::client::{Client, Connection, Message, Silence, event};
use super::digest::Digest;
use super::request::{Answer, Op, Request, Value, hash_answer};
use super::server::{Kind, Leader, Life, parent};
use crate::client::WatchEventKind;
use crate::error::Code;
use crate::raw::{Event, EventKind};
use crate::zookeeper::name;

pub(super) struct World {
    pub(super) leader: Leader,
    pub(super) clients: Vec<Client>,
    /// What a client's code is to be told, once nobody looks at the world.
    pub(super) calls: Vec<Box<dyn FnOnce() + Send>>,
    /// Whether the servers of the sessions may lag behind the leader.
    pub(super) lag: bool,
    /// Claims (their numbers) that an operator has deleted, or that went by a mistake that he led to; and whether there
    /// was none before, so that whoever has it may come to believe that it holds.
    pub(super) robbed: BTreeMap<i64, bool>,
    /// The fewest and the most permits that a semaphore ever had.
    pub(super) limits: (u32, u32),
    /// The session of another library's contender, while it is there.
    pub(super) foreign: Option<i64>,
    /// What went wrong on the servers.
    pub(super) violation: Option<String>,
}

impl World {
    pub(super) fn new(clients: usize, lag: bool, server_id: u8) -> World {
        let leader = Leader::new(server_id);
        let clients = (0..clients).map(|_| Client::new(&leader)).collect();
        World {
            leader,
            clients,
            calls: Vec::new(),
            lag,
            robbed: BTreeMap::new(),
            limits: (1, 1),
            foreign: None,
            violation: None,
        }
    }

    /// Submits a request on one of a client's handles.
    pub(super) fn submit(&mut self, client: usize, link: usize, request: Request) {
        let to = &mut self.clients[client];
        if to.dead {
            return self.calls.push(Box::new(move || drop(request)));
        }
        if to.link != link || to.listener.is_none() {
            return self.answer(client, request, Err(Code::INVALID_STATE));
        }
        if to.over {
            return self.answer(client, request, Err(Code::SESSION_EXPIRED));
        }
        match to.connection {
            Connection::Up => to.uplink.push_back(request),
            Connection::Broken | Connection::Down => to.queued.push(request),
        }
    }

    /// The server takes up a client's next request.
    pub(super) fn apply(&mut self, client: usize, reduced: bool) {
        let Some(request) = self.clients[client].uplink.pop_front() else { return };
        let session = self.clients[client].session;
        let up = self.clients[client].connection == Connection::Up;
        let is_alive = self.leader.life(session) == Life::Alive;
        self.leader.submitted = request.submitted;
        let answer = match &request.op {
            _ if !is_alive => Err(Code::SESSION_EXPIRED),
            Op::Create(new) => {
                let leader = &mut self.leader;
                leader.create(&request.path, new).map(|path| {
                    let stat = leader.tree.get(&path).map(|node| node.stat());
                    Value::Created(path, stat.unwrap_or_default())
                })
            }
            Op::Delete { announced, too_late } => {
                let deleted = self.delete(session, &request.path, *announced, *too_late);
                deleted.map(|()| Value::Done)
            }
            Op::CreateAll(all) => Ok(Value::CreatedAll(self.leader.create_all(all))),
            Op::Forbidden => Ok(Value::CreatedAll(Err((1, Code::NO_AUTH)))),
            Op::Sync | Op::Children { .. } | Op::Get { .. } | Op::Exists if !up => {
                Err(Code::CONNECTION_LOSS)
            }
            Op::Sync => Ok(Value::Done),
            Op::Set { data, version } => {
                self.leader.set(&request.path, data, *version).map(Value::Stat)
            }
            Op::Exists => {
                let node = self.clients[client].replica.tree.get(&request.path);
                node.map(|node| Value::Stat(node.stat())).ok_or(Code::NO_NODE)
            }
            Op::Children { watch } => {
                let replica = &mut self.clients[client].replica;
                let directory = replica.tree.get(&request.path).map(|node| node.stat());
                let listed = replica.tree.children(&request.path).zip(directory);
                if *watch && listed.is_some() {
                    replica.child_watches.insert(request.path.clone());
                }
                listed.map(|(names, stat)| Value::Children(names, stat)).ok_or(Code::NO_NODE)
            }
            Op::Get { watch } => {
                let replica = &mut self.clients[client].replica;
                match replica.tree.get(&request.path) {
                    Some(node) => {
                        let value = Value::Data(node.data.to_vec(), node.stat());
                        if *watch {
                            replica.watches.insert(request.path.clone());
                        }
                        Ok(value)
                    }
                    None => Err(Code::NO_NODE),
                }
            }
        };
        if is_alive {
            self.clients[client].took_up(reduced);
        }
        if !up {
            self.clients[client].unheard.push(request);
        } else {
            if request.op.needs_leader() {
                // The leader's word comes by way of the replica, behind all that went before it.
                self.catch_up(client, usize::MAX);
            }
            let zxid = self.clients[client].replica.zxid(&self.leader);
            let answer = Message::Answer { request, answer, zxid };
            self.clients[client].downlink.push_back(answer);
        }
        self.spread();
    }

    /// Whether a client has seen that all claims of its session were gone that there were at a path.
    pub(super) fn has_seen_it_gone(&self, client: usize, path: &str) -> bool {
        let client = &self.clients[client];
        let mut own = self.leader.claims_at(client.session, path);
        own.all(|(_, record)| record.gone.is_some_and(|gone| gone <= client.seen))
    }

    /// Deletes what is at a path: that should be the session's own.
    fn delete(
        &mut self,
        session: i64,
        path: &str,
        announced: bool,
        too_late: bool,
    ) -> Result<(), Code> {
        let hit = self.leader.tree.get(path);
        if hit.is_some_and(|it| announced && it.is_protected && it.kind != Kind::Ephemeral(session))
        {
            return Err(Code::NO_AUTH);
        }
        if let Some(hit) = hit.map(|node| (node.czxid, node.kind)) {
            // An operator can have put another in its place, where names are given again, after
            // the client has looked. A name that carries its directory's czxid is not, until the
            // directory's counter is at its end; one that carries another's belongs to a claim that
            // never holds.
            let is_outdated =
                name::sequence(name::last(path)).is_some() && !self.is_named_for(path);
            let may_happen = is_outdated || !too_late && !self.is_given_once(path);
            let is_robbed = |(czxid, _)| self.robbed.contains_key(&czxid);
            let was_robbed = self.leader.claims_at(session, path).any(is_robbed);
            if was_robbed && may_happen {
                // Also the session's own next claim.
                self.note_robbed(path);
            } else if hit.1 != Kind::Ephemeral(session) {
                self.violation =
                    Some(format!("a deletion by {session:#x} hit {} at {path}", hit.0));
            }
        }
        self.leader.delete(path, announced)
    }

    fn is_given_once(&self, path: &str) -> bool {
        let in_turn = |number: i32| !name::is_out_of_turn(number);
        self.is_named_for(path) && name::sequence(name::last(path)).is_some_and(in_turn)
    }

    /// Whether a claim's name carries the czxid of the directory that is there, if one is.
    pub(super) fn is_named_for(&self, path: &str) -> bool {
        let Some(directory) = self.leader.tree.get(parent(path)) else { return true };
        name::last(path).starts_with(&format!("zl-{:x}-", directory.czxid))
    }

    /// A session's server applies up to so many transactions, and tells of what is watched.
    pub(super) fn catch_up(&mut self, client: usize, most: usize) {
        let client = &mut self.clients[client];
        let behind = self.leader.log.len() - client.replica.applied;
        for _ in 0..behind.min(most) {
            let events = client.replica.apply_next(&self.leader);
            client.downlink.extend(events.into_iter().map(Message::Event));
        }
    }

    /// Where servers don't lag, all have what was committed.
    pub(super) fn spread(&mut self) {
        for client in 0..self.clients.len() {
            let isolated = self.clients[client].silence == Some(Silence::Isolated);
            if !self.lag && !isolated && self.clients[client].connection == Connection::Up {
                self.catch_up(client, usize::MAX);
            }
        }
    }

    /// A client hears the next thing that its server has sent.
    pub(super) fn deliver(&mut self, client: usize) {
        match self.clients[client].downlink.pop_front() {
            None => {}
            Some(Message::Answer { request, answer, zxid }) => {
                let to = &mut self.clients[client];
                to.seen = zxid.max(to.seen);
                if answer.as_ref().err().is_none_or(|code| code.is_server_decision()) {
                    to.heard.answered(&request.op, request.submitted, to.clock);
                }
                if let (Op::Get { watch: true }, Ok(Value::Data(_, stat))) = (&request.op, &answer)
                {
                    to.watches.insert(request.path.clone(), stat.czxid);
                }
                if let (Op::Children { watch: true }, Ok(_)) = (&request.op, &answer) {
                    to.child_watches.insert(request.path.clone());
                }
                self.note_answer(client, &request, &answer, zxid);
                self.answer(client, request, answer);
            }
            Some(Message::Event(fired)) => {
                self.note_event(client, &fired);
                let to = &mut self.clients[client];
                (&fired.path, fired.kind as u8).hash(&mut to.history);
                let ends_data = fired.kind != WatchEventKind::ChildrenChanged;
                let ends_children = !ends_data || fired.kind == WatchEventKind::Deleted;
                let ends = ends_data && to.watches.remove(&fired.path).is_some();
                if ends | (ends_children && to.child_watches.remove(&fired.path)) {
                    self.tell(client, event(&fired));
                }
            }
        }
    }

    /// A client's handle tells of an event.
    pub(super) fn tell(&mut self, client: usize, event: Event) {
        if let Some(listener) = self.clients[client].listener.clone() {
            self.calls.push(Box::new(move || listener(event)));
        }
    }

    /// Answers a request on the client's side. Nobody may be waiting any more.
    pub(super) fn answer(&mut self, client: usize, request: Request, answer: Answer) {
        let Request { op, path, reply, .. } = request;
        let history = &mut self.clients[client].history;
        (&op, &path, reply.number()).hash(history);
        hash_answer(&answer, history);
        self.calls.push(Box::new(move || reply.give(answer)));
    }

    /// Answers those of the requests that are not answered yet, without telling the server: lost, or not
    /// in time. What the server has got, or will get, it may still execute.
    pub(super) fn give_up(&mut self, client: usize, code: Code, which: impl Fn(&Request) -> bool) {
        let from = &mut self.clients[client];
        let answered = from.downlink.iter_mut().filter_map(|message| match message {
            Message::Answer { request, .. } => Some(request),
            Message::Event(_) => None,
        });
        let sent = from.unheard.iter_mut().chain(&mut from.uplink).chain(&mut from.queued);
        let mut lost = Vec::new();
        for request in answered.chain(sent).filter(|it| it.is_awaited() && which(it)) {
            let (op, path, reply) =
                (request.op.clone(), request.path.clone(), request.reply.take());
            lost.push(Request { op, path, reply, ..*request });
        }
        from.unheard.retain(Request::is_awaited);
        from.given_up += lost.len();
        for request in lost {
            self.answer(client, request, Err(code));
        }
    }

    /// The client notices that its connection is gone.
    pub(super) fn notice(&mut self, client: usize, reduced: bool) {
        self.clients[client].connection = Connection::Down;
        self.clients[client].silence = None;
        self.fail_queued(client);
        let from = &mut self.clients[client];
        from.downlink.clear();
        from.uplink.retain(|request| request.op.is_write());
        from.fails(reduced);
        from.changed();
        self.tell(client, session_event());
    }

    /// An attempt to connect fails, and what was submitted meanwhile with it.
    pub(super) fn fail_queued(&mut self, client: usize) {
        self.give_up(client, Code::CONNECTION_LOSS, |_| true);
        self.clients[client].queued.clear();
    }

    /// Two worlds with the same digest go on alike, whatever led to them.
    pub(super) fn digest(&self, digest: &mut Digest) {
        for (path, node) in &self.leader.tree.nodes {
            (path, node.czxid, node.mzxid, node.kind, node.sequence).hash(digest);
        }
        let (log, sessions) = (self.leader.log.len(), &self.leader.sessions);
        (log, sessions, &self.robbed, self.foreign).hash(digest);
        for client in &self.clients {
            client.hash_state(digest);
        }
        for client in 0..self.clients.len() {
            self.passes_without_news(client).hash(digest);
        }
    }
}

/// The state of the session has changed.
pub(super) fn session_event() -> Event {
    Event { kind: EventKind::SESSION, path: String::new() }
}
