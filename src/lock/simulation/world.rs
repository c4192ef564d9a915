//! Everything that is simulated: the servers, the clients, the clock. Here is what happens when
//! something happens; `steps.rs` says what can.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::task::Waker;
use std::time::Instant;

use super::client::{Client, Connection, Message, Silence, Watched};
use super::digest::Digest;
use super::request::{self, Answer, Op, Reply, Request, Value, hash_answer};
use super::server::{Leader, Life, parent};
use crate::client::{Created, Watch};
use crate::error::Code;
use crate::lock::name::{self, Naming};
use crate::lock::service::BoxFuture;

pub(super) struct Timer {
    pub(super) id: u64,
    pub(super) client: usize,
    pub(super) at: Instant,
    pub(super) fired: bool,
    pub(super) waker: Waker,
}

pub(super) struct World {
    pub(super) leader: Leader,
    pub(super) clients: Vec<Client>,
    pub(super) now: Instant,
    pub(super) timers: Vec<Timer>,
    pub(super) next_timer: u64,
    /// Background tasks that are to begin, and whose they are.
    pub(super) spawned: Vec<(usize, BoxFuture<()>)>,
    /// Whether the servers of the sessions may lag behind the leader.
    pub(super) lag: bool,
    /// Repeats deletions without asking the server to catch up first.
    pub(super) careless: bool,
    /// Whether a lock can be held on a session only some time after it is trusted.
    pub(super) proves_late: bool,
    /// Claims that an operator has deleted, or that went by a mistake that he led to; and whether there
    /// was none before, so that whoever has it may come to believe that it holds.
    pub(super) robbed: BTreeMap<i64, bool>,
    /// The session of another library's contender, while it is there.
    pub(super) foreign: Option<i64>,
    /// What went wrong on the servers.
    pub(super) violation: Option<String>,
}

impl World {
    pub(super) fn new(clients: usize, lag: bool, server_id: u8) -> World {
        let mut leader = Leader::new(server_id);
        let clients = (0..clients).map(|_| Client::new(&mut leader)).collect();
        World {
            leader,
            clients,
            now: Instant::now(),
            timers: Vec::new(),
            next_timer: 0,
            spawned: Vec::new(),
            lag,
            careless: false,
            proves_late: false,
            robbed: BTreeMap::new(),
            foreign: None,
            violation: None,
        }
    }

    /// Submits a request on one of a client's sessions; it acts on no other.
    pub(super) fn submit(&mut self, client: usize, link: usize, op: Op, path: &str, reply: Reply) {
        let request = Request { op, path: path.to_owned(), reply };
        let to = &mut self.clients[client];
        if to.dead {
            return;
        }
        if to.link != link || to.over {
            return self.answer(client, request, Err(Code::SESSION_EXPIRED));
        }
        match to.connection {
            Connection::Up => to.uplink.push_back(request),
            Connection::Broken | Connection::Down => to.queued.push(request),
        }
    }

    /// The server takes up a client's next request.
    pub(super) fn apply(&mut self, client: usize) {
        let Some(request) = self.clients[client].uplink.pop_front() else { return };
        let session = self.clients[client].session;
        let up = self.clients[client].connection == Connection::Up;
        let answer = match &request.op {
            _ if self.leader.life(session) != Life::Alive => Err(Code::SESSION_EXPIRED),
            Op::Create { sequential, kind, data } => {
                self.leader.create(&request.path, *sequential, *kind, data).map(|path| {
                    let stat = self.leader.tree.get(&path).map(|node| node.stat());
                    Value::Created(Created { path, stat: stat.unwrap_or_default() })
                })
            }
            Op::Delete { czxid, too_late } => {
                self.delete(&request.path, *czxid, *too_late).map(|()| Value::Done)
            }
            Op::Sync | Op::Children | Op::Get { .. } if !up => Err(Code::CONNECTION_LOSS),
            Op::Sync => Ok(Value::Done),
            Op::Children => {
                let tree = &self.clients[client].replica.tree;
                let directory = tree.get(&request.path).map(|node| node.stat());
                let listed = tree.children(&request.path).zip(directory);
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
        if !up {
            self.clients[client].unheard.push(request);
        } else {
            if request.op.needs_leader() {
                // The leader's word comes by way of the replica, behind all that went before it.
                self.catch_up(client, usize::MAX);
            }
            let Request { op, path, reply } = request;
            let zxid = self.clients[client].replica.zxid(&self.leader);
            let answer = Message::Answer { op, path, reply, answer, zxid };
            self.clients[client].downlink.push_back(answer);
        }
        self.spread();
    }

    /// Deletes what is at a path: that should be what was meant.
    fn delete(&mut self, path: &str, meant: i64, too_late: bool) -> Result<(), Code> {
        if let Some(hit) =
            self.leader.tree.get(path).map(|node| node.czxid).filter(|hit| *hit != meant)
        {
            // An operator can have put another in its place, where names are given again, after
            // the client has looked. A name that
            // carries its directory's czxid is not, until the directory's counter is at its end;
            // one that carries another's belongs to a claim that never holds.
            let is_outdated =
                name::sequence(name::last(path)).is_some() && !self.is_named_for(path);
            let may_happen = is_outdated || !too_late && !self.is_given_once(path);
            if self.robbed.contains_key(&meant) && may_happen {
                self.note_robbed(path);
            } else {
                self.violation = Some(format!("the deletion of {meant} hit {hit} at {path}"));
            }
        }
        self.leader.delete(path)
    }

    fn is_given_once(&self, path: &str) -> bool {
        let in_turn = |number: i32| !name::is_out_of_turn(number);
        self.is_named_for(path) && name::sequence(name::last(path)).is_some_and(in_turn)
    }

    /// Whether a claim's name carries the czxid of the directory that is there, if one is.
    pub(super) fn is_named_for(&self, path: &str) -> bool {
        let Some(directory) = self.leader.tree.get(parent(path)) else { return true };
        name::last(path).starts_with(&Naming::Own.prefix(0, directory.czxid))
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
            Some(Message::Answer { op, path, reply, answer, zxid }) => {
                self.clients[client].seen = zxid.max(self.clients[client].seen);
                self.note_answer(client, (&op, &path, &reply), &answer, zxid);
                self.answer(client, Request { op, path, reply }, answer);
            }
            Some(Message::Event(event)) => {
                self.note_event(client, &event);
                let client = &mut self.clients[client];
                (&event.path, event.kind as u8).hash(&mut client.history);
                let waiting = std::mem::take(&mut client.watches);
                for watched in waiting {
                    if watched.path == event.path {
                        let _ = watched.fire.send(Ok(event.clone()));
                    } else {
                        client.watches.push(watched);
                    }
                }
            }
        }
    }

    /// Answers a request on the client's side. Nobody may be waiting any more.
    pub(super) fn answer(&mut self, client: usize, request: Request, answer: Answer) {
        let Request { op, path, reply } = request;
        let history = &mut self.clients[client].history;
        (&op, &path, reply.number()).hash(history);
        hash_answer(&answer, history);
        let error = |code| request::error(&op, &path, code);
        let surprise = || error(Code::MARSHALLING_ERROR);
        match reply {
            Reply::Nobody => {}
            Reply::Sync(delete) => self.caught_up(client, delete, answer),
            Reply::Look(delete) => self.looked(client, delete, answer),
            Reply::Deletion(delete) => self.deleted(client, delete, answer),
            Reply::Created(sender) => drop(sender.send(match answer {
                Ok(Value::Created(created)) => Ok(created),
                Ok(_) => Err(surprise()),
                Err(code) => Err(error(code)),
            })),
            Reply::Children(sender) => drop(sender.send(match answer {
                Ok(Value::Children(names, stat)) => Ok((names, stat)),
                Ok(_) => Err(surprise()),
                Err(code) => Err(error(code)),
            })),
            Reply::Data(sender) => drop(sender.send(match answer {
                Ok(Value::Data(data, stat)) => Ok((data, stat)),
                Ok(_) => Err(surprise()),
                Err(code) => Err(error(code)),
            })),
            Reply::WatchedData(sender) => drop(sender.send(match answer {
                Ok(Value::Data(data, stat)) => {
                    let (fire, event) = oneshot::async_channel();
                    let watched = Watched { path, czxid: stat.czxid, fire };
                    self.clients[client].watches.push(watched);
                    Ok((data, stat, Watch::new(event)))
                }
                Ok(_) => Err(surprise()),
                Err(code) => Err(error(code)),
            })),
            Reply::Done(sender) => drop(sender.send(answer.map(drop).map_err(error))),
        }
    }

    /// Answers what is on its way, without telling the server: lost, or not in time. What the
    /// server has got, or will get, it may still execute.
    pub(super) fn give_up_requests(&mut self, client: usize, code: Code) {
        let from = &mut self.clients[client];
        let mut lost = Vec::new();
        for message in &mut from.downlink {
            if let Message::Answer { op, path, reply, .. } = message {
                lost.push(Request { op: op.clone(), path: path.clone(), reply: reply.take() });
            }
        }
        lost.append(&mut from.unheard);
        for Request { op, path, reply } in &mut from.uplink {
            lost.push(Request { op: op.clone(), path: path.clone(), reply: reply.take() });
        }
        lost.append(&mut from.queued);
        for request in lost {
            if request.reply.number() != 0 {
                self.answer(client, request, Err(code));
            }
        }
    }

    /// The client notices that its connection is gone.
    pub(super) fn notice(&mut self, client: usize) {
        self.clients[client].connection = Connection::Down;
        self.clients[client].silence = None;
        self.give_up_requests(client, Code::CONNECTION_LOSS);
        let client = &mut self.clients[client];
        client.downlink.clear();
        client.uplink.retain(|request| request.op.is_write());
        client.changed();
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
        for timer in &self.timers {
            (timer.client, timer.fired, self.is_news(timer.client)).hash(digest);
        }
    }
}
