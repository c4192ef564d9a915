//! One simulated client: its session, its connection, what is on its way, and what it believes.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::task::Waker;

use oneshot::Sender;

use super::digest::Digest;
use super::disposal::Disposal;
use super::request::{Answer, Op, Reply, Request, hash_answer};
use super::server::{Leader, Replica};
use crate::client::WatchEvent;
use crate::error::Result;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Connection {
    Up,
    /// It is gone, and the client has not noticed.
    Broken,
    Down,
}

/// What a server has sent, in its order.
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
    pub(super) watches: Vec<(String, Sender<Result<WatchEvent>>)>,
    /// Deletions with an unknown outcome.
    pub(super) doomed: Vec<Disposal>,
    /// Counts the stretches of trust; `lost` says whether the last has ended.
    pub(super) epoch: usize,
    pub(super) lost: bool,
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
}

impl Client {
    pub(super) fn new(leader: &mut Leader) -> Client {
        Client {
            link: 0,
            session: leader.open_session(),
            over: false,
            connection: Connection::Up,
            replica: Replica::up_to(leader, leader.log.len()),
            seen: 0,
            uplink: VecDeque::new(),
            unheard: Vec::new(),
            queued: Vec::new(),
            downlink: VecDeque::new(),
            watches: Vec::new(),
            doomed: Vec::new(),
            epoch: 0,
            lost: false,
            frozen: false,
            dead: false,
            waiting: Vec::new(),
            history: Digest::default(),
            changes: 0,
            last_fired: (usize::MAX, 0),
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

    /// Its circumstances have changed: whoever waits for that looks again.
    pub(super) fn changed(&mut self) {
        self.changes += 1;
        (self.connection, self.over, self.lost, self.epoch).hash(&mut self.history);
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
        (self.session, self.over, self.connection, self.lost).hash(digest);
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
        for (path, _) in &self.watches {
            path.hash(digest);
        }
        for disposal in &self.doomed {
            (&disposal.path, disposal.czxid, disposal.look, disposal.first).hash(digest);
        }
        digest.write_usize(self.doomed.len());
    }
}
