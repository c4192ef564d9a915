//! One simulated client as the C client and the servers know it: its handle, session and connection, and
//! what is on its way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use super::digest::Digest;
use super::request::{Answer, Request, hash_answer};
use super::server::{Leader, Replica, SESSION_TIMEOUT};
use super::shown::Shown;
use super::trust::Heard;
use crate::client::{WatchEvent, WatchEventKind};
use crate::raw::{Event, EventKind};

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

/// What a server has sent, in its order.
#[allow(clippy::large_enum_variant, reason = "nearly all are answers")]
pub(super) enum Message {
    Event(WatchEvent),
    Answer { request: Request, answer: Answer, zxid: i64 },
}

/// How long a server takes to report a session, at most, by what a client without a word of `tickTime`
/// assumes.
const BETWEEN_REPORTS: Duration = Duration::from_millis(1_620);

pub(super) struct Client {
    /// Which of this client's handles it is: requests name the one they are for.
    pub(super) link: usize,
    /// Hears of events; `None` while no handle is open.
    pub(super) listener: Option<Arc<dyn Fn(Event) + Send + Sync>>,
    /// 0 before the first connection of a handle.
    pub(super) session: i64,
    /// The client knows that the session is over.
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
    /// The znodes that it watches: by path, the transaction that made what was seen there.
    pub(super) watches: BTreeMap<String, i64>,
    /// Those whose children it watches.
    pub(super) child_watches: BTreeSet<String>,
    /// What its clock shows, and what that showed when the leader last counted its session as alive.
    pub(super) clock: Duration,
    pub(super) counted: Duration,
    /// What it showed when the client's server took up requests that it has not reported to the leader.
    pub(super) unreported: VecDeque<Duration>,
    /// What its clock shows when what was wrong with its connection or its process can be over at the
    /// earliest.
    pub(super) recovers_at: Duration,
    pub(super) frozen: bool,
    pub(super) dead: bool,
    /// Everything that the client's code was ever told: what it does next is a function of it.
    pub(super) history: Digest,
    /// How often its circumstances have changed.
    pub(super) changes: usize,
    /// How many requests it has given up without an answer.
    pub(super) given_up: usize,
    /// When its clock last passed, in changes of the world, and how often it has since.
    pub(super) last_passed: (usize, u32),
    /// How many acquires have ended on it.
    pub(super) ended: usize,
    /// Whether a contender is all that runs on it.
    pub(super) is_alone: bool,
    /// Whether its code waits for the event that comes next: not where it has given the watch up, or never
    /// got the answer to the request that has set it.
    pub(super) awaits_event: bool,
    pub(super) shown: Shown,
    pub(super) heard: Heard,
}

impl Client {
    pub(super) fn new(leader: &Leader) -> Client {
        Client {
            link: 0,
            listener: None,
            session: 0,
            over: false,
            connection: Connection::Down,
            silence: None,
            replica: Replica::up_to(leader, leader.log.len()),
            seen: 0,
            uplink: VecDeque::new(),
            unheard: Vec::new(),
            queued: Vec::new(),
            downlink: VecDeque::new(),
            watches: BTreeMap::new(),
            child_watches: BTreeSet::new(),
            clock: Duration::ZERO,
            counted: Duration::ZERO,
            unreported: VecDeque::new(),
            recovers_at: Duration::ZERO,
            frozen: false,
            dead: false,
            history: Digest::default(),
            changes: 0,
            given_up: 0,
            last_passed: (usize::MAX, 0),
            ended: 0,
            is_alone: false,
            awaits_event: false,
            shown: Shown::default(),
            heard: Heard::default(),
        }
    }

    /// Whether its code runs now.
    pub(super) fn is_running(&self) -> bool {
        !self.frozen && !self.dead
    }

    /// Whether nothing is wrong with its connection.
    pub(super) fn is_well_connected(&self) -> bool {
        self.connection == Connection::Up && self.silence.is_none()
    }

    /// Whether a handle is open that has no session yet.
    pub(super) fn is_new(&self) -> bool {
        self.listener.is_some() && self.session == 0
    }

    /// The client's server has taken up a request.
    pub(super) fn took_up(&mut self, reduced: bool) {
        if reduced {
            self.counted = self.clock;
        } else if self.unreported.back() != Some(&self.clock) {
            self.unreported.push_back(self.clock);
        }
    }

    /// The client's server reports to the leader, which counts the session as alive.
    pub(super) fn report(&mut self) {
        self.unreported.clear();
        self.counted = self.clock;
    }

    /// The clock is about to show that. What was taken up long before has been reported by then, no later
    /// than that is due, and no earlier than must be.
    fn report_what_is_due(&mut self, clock: Duration) {
        if self.silence == Some(Silence::Isolated) {
            return;
        }
        let is_due = |taken_up: &Duration| *taken_up + BETWEEN_REPORTS < clock;
        while let Some(taken_up) = self.unreported.front().copied().filter(is_due) {
            self.unreported.pop_front();
            self.counted = self.counted.max(taken_up);
        }
    }

    /// The clock shows that from now on.
    pub(super) fn pass(&mut self, clock: Duration) {
        self.report_what_is_due(clock);
        self.clock = self.clock.max(clock);
    }

    /// Whether the leader may give the session up by now.
    pub(super) fn is_overdue(&self) -> bool {
        self.dead || self.clock >= self.counted + SESSION_TIMEOUT
    }

    /// Whether what was wrong with it can be over.
    pub(super) fn can_recover(&self) -> bool {
        self.clock >= self.recovers_at
    }

    /// Something goes wrong with it: mostly not for long, sometimes for longer than its session lives.
    pub(super) fn fails(&mut self, reduced: bool) {
        self.changes += 1;
        if !reduced {
            let quarters = [0, 0, 1, 2, 4, 8][fastrand::usize(0..6)];
            self.recovers_at = self.clock + quarters * SESSION_TIMEOUT / 4;
        }
    }

    /// Those that were not answered, wherever they are.
    pub(super) fn requests(&self) -> impl Iterator<Item = &Request> {
        let answered = self.downlink.iter().filter_map(|message| match message {
            Message::Answer { request, .. } => Some(request),
            Message::Event(_) => None,
        });
        self.uplink.iter().chain(&self.unheard).chain(&self.queued).chain(answered)
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

    /// The event that it hears next, if it is one.
    pub(super) fn next_event(&self) -> Option<&WatchEvent> {
        match self.downlink.front() {
            Some(Message::Event(event)) => Some(event),
            _ => None,
        }
    }

    /// Whether there is something to hear.
    pub(super) fn hears(&self) -> bool {
        self.is_running() && self.silence != Some(Silence::Deaf) && !self.downlink.is_empty()
    }

    /// Its circumstances have changed.
    pub(super) fn changed(&mut self) {
        self.changes += 1;
        (self.connection, self.over, self.session).hash(&mut self.history);
    }

    /// For the digest of a state: everything that is not in the history.
    pub(super) fn hash_state(&self, digest: &mut Digest) {
        self.history.hash(digest);
        (self.session, self.over, self.connection, self.silence, self.clock - self.counted)
            .hash(digest);
        (self.frozen, self.dead, self.seen, self.listener.is_some()).hash(digest);
        for request in self.uplink.iter().chain(&self.unheard).chain(&self.queued) {
            (&request.op, &request.path, request.reply.number()).hash(digest);
        }
        (self.uplink.len(), self.unheard.len(), self.queued.len()).hash(digest);
        for message in &self.downlink {
            match message {
                Message::Event(event) => (0, &event.path, event.kind as u8).hash(digest),
                Message::Answer { answer, request, .. } => {
                    (1, &request.path, request.reply.number()).hash(digest);
                    hash_answer(answer, digest);
                }
            }
        }
        digest.write_usize(self.downlink.len());
        if self.connection == Connection::Up {
            let replica = &self.replica;
            (replica.applied, &replica.watches, &replica.child_watches).hash(digest);
        }
        (&self.watches, &self.child_watches).hash(digest);
    }
}

/// As the C client tells of it.
pub(super) fn event(event: &WatchEvent) -> Event {
    let kind = match event.kind {
        WatchEventKind::Created => EventKind::CREATED,
        WatchEventKind::Deleted => EventKind::DELETED,
        WatchEventKind::DataChanged => EventKind::CHANGED,
        WatchEventKind::ChildrenChanged => EventKind::CHILD,
    };
    Event { kind, path: event.path.clone() }
}
