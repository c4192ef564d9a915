//! Until when the servers certainly do not end a session, by their answers and the local clock.
//!
//! # Who ends a session, and when
//! Only a leader does, by a transaction that a quorum commits. It does so when the session timeout T has passed on its own
//! clock since it last *counted* the session as alive. It counts a session
//! - when a client connects: the handshake of a new session and of one that moves to another server
//!   both pass through the leader;
//! - at each packet of a client that is connected to the leader itself;
//! - when a follower or an observer reports it. The leader pings each of them twice per `tickTime`,
//!   and the answer lists the sessions that have sent anything since the answer before;
//! - when it becomes the leader: from the moment it starts, every session has its full timeout.
//!
//! # What an answer proves
//! Take three requests of one session:
//! - *k*, answered at time `r(k)`. Its server had received it by then.
//! - *m*, a sync or a write, submitted half a tick or more after `r(k)`. A leader answers those, so one
//!   was running at some moment between the submission of *m* and its answer. By then its next
//!   ping was due, and the session's server reports *k* in its answer, unless it has done so before.
//! - *w*, a write, submitted T/50 or more after *m* was answered (a leader that stood still may have
//!   answered *m* before it sent its ping). Reports and requests take the same connection to the
//!   leader, in order, so the leader has counted the session since *k* when it executes *w*.
//!
//! An answer to *w* proves that a quorum has committed it: **the leader that did so does not end the
//! session before `s(k)` + T**, where `s(k)` is the submission of *k*. No later leader does: it starts only after a
//! quorum has left the old one. By then *w* was acknowledged, and the new leader grants each session a full T.
//! Where the client has changed servers in between, the handshake counts, which is later than *k*. A
//! handshake needs no *m*: what is counted from is the moment before it was sent.
//!
//! A sync alone proves nothing of the kind. A leader answers its own clients' syncs without a quorum: one that
//! stood still, was deposed and woke goes on answering while its successor counts sessions out. A
//! read proves less: any server answers it alone. A write that fails is proposed and committed like
//! one that succeeds, and serves as well.
//!
//! # What is assumed
//! - `tickTime` is at most T/2, or what [`ClientOptions::tick_time`](crate::ClientOptions::tick_time)
//!   says. Servers grant no T below two ticks unless their `minSessionTimeout` is set lower.
//! - A leader that runs sends a ping within T/50 of when it is due. A ping that was due when it answered *m* reaches the
//!   session's server within T/50 of that answer: the leader does not stand still a second time before it sends that
//!   ping, and the network does not hold the ping back. Where either fails, *w* can be executed before *k* is counted.
//! - The session timeout does not shrink unheard. A server that comes back with a smaller `maxSessionTimeout` grants T' < T
//!   when it reads the handshake. By its answer the client learns that, and trusts nothing that was proven under T. Where
//!   the answer is lost, trust can last up to T - T' longer than the session.
//! - Clocks run at the same rate within one percent. (Trust ends T/20 early, so that programs hear of its end in time.)
//! - Observers get their transactions from the leader (`observerMasterPort` is not set, the default).
//! - Of a handle that a C program lends us while it is connected, that the C client has kept its
//!   rhythm: a ping after T/3 without another packet. Until half a tick later nothing else is known.
//!
//! # What it costs
//! A sync every T/10, less where others are answered; while a lock is held, a write whenever it
//! proves T/5 more, less where other writes are answered. A client that holds nothing sends none.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use event_listener::{Event, EventListener};
use parking_lot::Mutex;

use crate::error::Code;
use crate::runtime::{BootInstant, wake};

/// The kind of proof that an answered request gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// That a leader was running.
    Sync,
    /// That a quorum has committed it.
    Write,
}

/// The proof, from the servers' answers, that a session is alive.
#[derive(Default)]
pub(super) struct Lease {
    answers: Mutex<Answers>,
    /// `s(k)` of the latest three: in nanoseconds, 0 before there are any.
    counted: AtomicU64,
    /// The submission of the latest answered sync or write.
    latest: AtomicU64,
    /// T in nanoseconds, as the server granted it.
    session_timeout: AtomicU64,
    /// How many want the lease renewed by writes.
    users: AtomicUsize,
    renewed: Event,
}

#[derive(Default)]
struct Answers {
    timeout: Duration,
    /// From one ping of a leader to the next, at the most.
    between_pings: Duration,
    /// Oldest first. No two *k* are closer than T/40, and none is older than T.
    recent: VecDeque<Answer>,
}

#[derive(Clone, Copy)]
struct Answer {
    submitted: BootInstant,
    answered: BootInstant,
    /// `s(k)`, where this one is an *m*: since when the session is counted, at the least, by a leader
    /// that executes a write which is submitted after `known`.
    counted: BootInstant,
    known: BootInstant,
}

/// How many heartbeats there are in a session timeout: more than the C client's pings (three).
const HEARTBEATS: u32 = 10;
/// How many of them are followed by a write while a lock is held.
const WRITES: u32 = 5;
/// How often one that would prove more is repeated without an answer, in a session timeout.
const REPEATS: u32 = 20;
/// How long before a session can end its holders hear of it, as a part of the session timeout.
const NOTICE: u32 = 20;
/// How late a running leader may be with a ping, as a part of the session timeout.
const LATENESS: u32 = 50;

/// Whether a reply is the servers' own.
pub(super) fn is_server_decision<T>(reply: &Result<T, Code>) -> bool {
    reply.as_ref().err().is_none_or(|code| code.is_server_decision())
}

impl Lease {
    /// The session timeout that was granted, and the servers' `tickTime` if it is known.
    pub(super) fn set_terms(&self, timeout: Duration, tick: Option<Duration>) {
        let nanos = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        if self.session_timeout.swap(nanos, Ordering::AcqRel) == nanos {
            return;
        }
        // What was counted under other terms says nothing under these.
        let mut answers = self.answers.lock();
        answers.recent.clear();
        answers.timeout = timeout;
        answers.between_pings = tick.unwrap_or(timeout / 2) / 2 + timeout / LATENESS;
        self.counted.store(0, Ordering::Release);
    }

    /// A server has accepted the connection. Its handshake was sent after `before`.
    pub(super) fn connected(&self, before: BootInstant, now: BootInstant) {
        self.answers.lock().begin(before, now);
    }

    /// A handle was taken over that had been connected for some time.
    pub(super) fn adopted(&self, now: BootInstant) {
        let mut answers = self.answers.lock();
        let counted = now.earlier(answers.timeout / 3 + answers.between_pings);
        answers.begin(counted, now);
    }

    /// A request that was submitted then has been answered by the servers now.
    pub(super) fn answered(&self, submitted: BootInstant, now: BootInstant, proof: Proof) {
        self.latest.fetch_max(submitted.as_nanos(), Ordering::AcqRel);
        let mut answers = self.answers.lock();
        let counted = answers.counted_by(submitted).as_nanos();
        answers.note(submitted, now);
        // Under the lock: the terms may be changing.
        let renewed =
            proof == Proof::Write && self.counted.fetch_max(counted, Ordering::AcqRel) < counted;
        drop(answers);
        if renewed {
            wake::all(&self.renewed);
        }
    }

    /// As [`answered`](Lease::answered) now, if the reply is the servers'.
    pub(super) fn learn<T>(&self, reply: &Result<T, Code>, submitted: BootInstant, proof: Proof) {
        if is_server_decision(reply) {
            self.answered(submitted, BootInstant::now(), proof);
        }
    }

    fn timeout(&self) -> Duration {
        Duration::from_nanos(self.session_timeout.load(Ordering::Acquire))
    }

    fn counted(&self) -> BootInstant {
        BootInstant::from_nanos(self.counted.load(Ordering::Acquire))
    }

    /// The submission of the latest answered sync or write.
    pub(super) fn latest(&self) -> BootInstant {
        BootInstant::from_nanos(self.latest.load(Ordering::Acquire))
    }

    /// Until when no server can have ended the session: see the [module](self). A little earlier, so that programs hear of the
    /// end before it comes.
    fn proven_until(&self) -> BootInstant {
        self.counted() + (self.timeout() - self.notice())
    }

    /// How long before a session can end its holders hear of it.
    pub(super) fn notice(&self) -> Duration {
        self.timeout() / NOTICE
    }

    /// Whether no server can have ended the session.
    pub(super) fn is_proven_at(&self, now: BootInstant) -> bool {
        now < self.proven_until()
    }

    /// How long it is until a server can have ended the session, at the earliest.
    pub(super) fn proven_for(&self, now: BootInstant) -> Duration {
        self.proven_until() - now
    }

    /// Whether something may be held from now on: not if that were lost again at once.
    pub(super) fn can_hold_at(&self, now: BootInstant) -> bool {
        now + self.timeout() / HEARTBEATS < self.proven_until()
    }

    /// Whether something can be held, if anybody wants to.
    #[cfg(test)]
    pub(super) fn proves_what_is_wanted(&self, now: BootInstant) -> bool {
        self.users.load(Ordering::Acquire) == 0 || self.can_hold_at(now)
    }

    /// Whether something is held, and what is proven for it ends in less than T/2: as just after a
    /// handle was taken over.
    pub(super) fn is_short_at(&self, now: BootInstant) -> bool {
        self.users.load(Ordering::Acquire) > 0 && self.proven_until() < now + self.timeout() / 2
    }

    /// How long it is until trust ends if no server answers any more: when to look again.
    pub(super) fn ends_in(&self, now: BootInstant) -> Duration {
        let alive = self.latest() + (self.timeout() - self.timeout() / 5);
        match self.users.load(Ordering::Acquire) {
            0 => alive - now,
            _ => alive.min(self.proven_until()) - now,
        }
    }

    /// Whether the session was alive lately, as far as a sync shows: enough to begin something by,
    /// not to hold anything by.
    pub(super) fn is_alive_at(&self, now: BootInstant) -> bool {
        let timeout = self.timeout();
        now < self.latest() + (timeout - timeout / 5)
    }

    /// Hears of every renewal from now on.
    pub(super) fn renewed(&self) -> EventListener {
        self.renewed.listen()
    }

    /// From now on the lease is renewed by writes, until [`unwanted`](Lease::unwanted).
    pub(super) fn wanted(&self) {
        self.users.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn unwanted(&self) {
        self.users.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether a sync is due. The last one was submitted at `last`.
    pub(super) fn is_sync_due(&self, last: BootInstant, now: BootInstant) -> bool {
        let timeout = self.timeout();
        let is_silent = now >= self.latest().max(last) + timeout / HEARTBEATS;
        let would_prove_more =
            || now >= last + timeout / REPEATS && self.answers.lock().is_reported_by(now);
        is_silent || self.is_short_at(now) && would_prove_more()
    }

    /// Whether a write is due. The last one was submitted at `last`.
    pub(super) fn is_write_due(&self, last: BootInstant, now: BootInstant) -> bool {
        if self.users.load(Ordering::Acquire) == 0 {
            return false;
        }
        let timeout = self.timeout();
        let (known, proves) = (self.counted(), self.answers.lock().counted_by(now));
        let is_short = self.is_short_at(now) && proves > known;
        let renews = is_short || proves >= known + timeout / WRITES;
        if renews {
            now >= last + timeout / REPEATS
        } else {
            !self.can_hold_at(now) && now >= last + timeout / HEARTBEATS
        }
    }
}

impl Answers {
    /// The leader has counted the session since then, and this is known now, without another request.
    fn begin(&mut self, counted: BootInstant, now: BootInstant) {
        self.push(Answer { submitted: counted, answered: now, counted, known: now });
    }

    /// Since when the session is counted, at the least, by a leader that executes a write which is
    /// submitted then.
    fn counted_by(&self, submitted: BootInstant) -> BootInstant {
        let known = self.recent.iter().filter(|answer| answer.known <= submitted);
        known.map(|answer| answer.counted).max().unwrap_or(BootInstant::from_nanos(0))
    }

    /// The latest request that was reported before one which is submitted then.
    fn reported_by(&self, submitted: BootInstant) -> BootInstant {
        let is_reported = |answer: &&Answer| answer.answered + self.between_pings <= submitted;
        let reported = self.recent.iter().filter(is_reported).map(|answer| answer.submitted);
        reported.max().unwrap_or(BootInstant::from_nanos(0))
    }

    /// Whether a sync which is submitted then would show of more requests that they were reported.
    fn is_reported_by(&self, submitted: BootInstant) -> bool {
        let shown = self.recent.iter().map(|answer| answer.counted).max();
        self.reported_by(submitted) > shown.unwrap_or(BootInstant::from_nanos(0))
    }

    fn note(&mut self, submitted: BootInstant, answered: BootInstant) {
        let counted = self.reported_by(submitted);
        let last = self.recent.back();
        if last.is_none_or(|last| {
            submitted >= last.submitted + self.timeout / 40 || counted > last.counted
        }) {
            let known = answered + self.timeout / LATENESS;
            self.push(Answer { submitted, answered, counted, known });
        }
    }

    fn push(&mut self, answer: Answer) {
        let is_too_old = |old: &Answer| old.submitted + self.timeout < answer.answered;
        while self.recent.front().is_some_and(is_too_old) {
            self.recent.pop_front();
        }
        self.recent.push_back(answer);
    }
}

#[cfg(test)]
#[path = "../../tests/inside/lease_model/mod.rs"]
mod model;
