//! One simulated client: its session, its connection, what is on its way, and what it believes.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::task::Waker;

use oneshot::Sender;

use super::digest::Digest;
use super::guaranteed_delete::GuaranteedDelete;
use super::request::{Answer, Op, Reply, Request, hash_answer};
use super::server::{Leader, Replica};
use super::shown::Shown;
use crate::client::WatchEvent;
use crate::error::Result;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Connection {
    Up,
    /// It is gone, and the client has not noticed.
    Broken,
    Down,
}

/// What is wrong with a connection that is up as far as the client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Silence {
    /// Requests arrive; answers and events don't.
    Deaf,
    /// Answers and events arrive; requests don't.
    Mute,
    /// The server is cut off from its leader: it answers reads, from the past, and nothing else.
    Isolated,
}

/// A watch that the client has: on the znode that this transaction has made.
pub(super) struct Watched {
    pub(super) path: String,
    pub(super) czxid: i64,
    pub(super) fire: Sender<Result<WatchEvent>>,
}

/// What a server has sent, in its order.
#[allow(clippy::large_enum_variant, reason = "nearly all are answers")]
pub(super) enum Message {
    Event(WatchEvent),
    Answer { op: Op, path: String, reply: Reply, answer: Answer, zxid: i64 },
}

pub(super) struct Client {
    /// Which of this client's sessions it is: requests name the one they are for.
    pub(super) link: usize,
    pub(super) session: i64,
    /// The client knows that the session is over, and has no other yet.
    pub(super) over: bool,
    pub(super) connection: Connection,
    pub(super) silence: Option<Silence>,
    pub(super) replica: Replica,
    /// The latest transaction that an answer has told of.
    pub(super) seen: i64,
    /// Sent, not yet looked at by the server. Without a connection: what it still got.
    pub(super) uplink: VecDeque<Request>,
    /// Answered by the server into a connection that was gone.
    pub(super) unheard: Vec<Request>,
    /// Submitted while there was no connection.
    pub(super) queued: Vec<Request>,
    pub(super) downlink: VecDeque<Message>,
    /// The watches that were set, by znode.
    pub(super) watches: Vec<Watched>,
    /// Deletions with an unknown outcome.
    pub(super) unconfirmed: Vec<GuaranteedDelete>,
    /// Counts the stretches of trust; `lost` says whether the last has ended.
    pub(super) period: usize,
    pub(super) lost: bool,
    /// Whether the servers have proven so much that a lock can be held.
    pub(super) proven: bool,
    pub(super) frozen: bool,
    pub(super) dead: bool,
    /// Those who wait for a session, or for its loss.
    pub(super) waiting: Vec<Waker>,
    /// Everything that the client's code was ever told: what it does next is a function of it.
    pub(super) history: Digest,
    /// How often its circumstances have changed.
    pub(super) changes: usize,
    /// When a timer of it last fired, in changes of the world, and how often it has since.
    pub(super) last_fired: (usize, u32),
    /// Whether a contender is all that runs on it.
    pub(super) is_alone: bool,
    pub(super) shown: Shown,
}

impl Client {
    pub(super) fn new(leader: &mut Leader) -> Client {
        Client {
            link: 0,
            session: leader.open_session(),
            over: false,
            connection: Connection::Up,
            silence: None,
            replica: Replica::up_to(leader, leader.log.len()),
            seen: 0,
            uplink: VecDeque::new(),
            unheard: Vec::new(),
            queued: Vec::new(),
            downlink: VecDeque::new(),
            watches: Vec::new(),
            unconfirmed: Vec::new(),
            period: 0,
            lost: false,
            proven: true,
            frozen: false,
            dead: false,
            waiting: Vec::new(),
            history: Digest::default(),
            changes: 0,
            last_fired: (usize::MAX, 0),
            is_alone: false,
            shown: Shown::default(),
        }
    }

    /// Whether its code runs now.
    pub(super) fn is_running(&self) -> bool {
        !self.frozen && !self.dead
    }

    /// Whether a session is connected and trusted, as far as the client knows.
    pub(super) fn is_usable(&self) -> bool {
        self.connection != Connection::Down && !self.over && !self.lost
    }

    /// Whether the server takes up the next request.
    pub(super) fn is_served(&self) -> bool {
        let needs_leader = |request: &Request| request.op.needs_leader();
        match self.silence {
            Some(Silence::Mute) => false,
            Some(Silence::Isolated) => !self.uplink.front().is_some_and(needs_leader),
            Some(Silence::Deaf) | None => !self.uplink.is_empty(),
        }
    }

    /// Whether there is something to hear.
    pub(super) fn hears(&self) -> bool {
        self.is_running() && self.silence != Some(Silence::Deaf) && !self.downlink.is_empty()
    }

    /// Its circumstances have changed: whoever waits for that looks again.
    pub(super) fn changed(&mut self) {
        self.changes += 1;
        (self.connection, self.over, self.lost, self.proven, self.period).hash(&mut self.history);
        for waker in self.waiting.drain(..) {
            waker.wake();
        }
    }

    /// Ends the present stretch of trust.
    pub(super) fn lose(&mut self) {
        self.lost = true;
        self.changed();
    }

    /// For the digest of a state: everything that is not in the history.
    pub(super) fn hash_state(&self, digest: &mut Digest) {
        self.history.hash(digest);
        (self.session, self.over, self.connection, self.silence, self.lost).hash(digest);
        (self.frozen, self.dead, self.seen).hash(digest);
        for request in self.uplink.iter().chain(&self.unheard).chain(&self.queued) {
            (&request.op, &request.path, request.reply.number()).hash(digest);
        }
        (self.uplink.len(), self.unheard.len(), self.queued.len()).hash(digest);
        for message in &self.downlink {
            match message {
                Message::Event(event) => (0, &event.path, event.kind as u8).hash(digest),
                Message::Answer { answer, reply, path, .. } => {
                    (1, path, reply.number()).hash(digest);
                    hash_answer(answer, digest);
                }
            }
        }
        digest.write_usize(self.downlink.len());
        if self.connection == Connection::Up {
            (self.replica.applied, &self.replica.watches).hash(digest);
        }
        for watched in &self.watches {
            (&watched.path, watched.czxid).hash(digest);
        }
        for delete in &self.unconfirmed {
            (&delete.path, delete.czxid, delete.look, delete.first).hash(digest);
        }
        digest.write_usize(self.unconfirmed.len());
    }
}
