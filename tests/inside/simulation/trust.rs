//! Until when a client may believe in its session. This applies the rules of `tests/spec/lease.pml` to the requests and
//! answers of a run, without `client/lease.rs`.

use std::time::Duration;

use super::request::Op;
use super::server::SESSION_TIMEOUT;

/// A leader that runs has pinged the session's server within that time: half a tick, and its lateness.
const PAUSE: Duration = SESSION_TIMEOUT.checked_div(4).unwrap().checked_add(LATE).unwrap();
const LATE: Duration = SESSION_TIMEOUT.checked_div(50).unwrap();
const MARGIN: Duration = SESSION_TIMEOUT.checked_div(20).unwrap();

/// The answers that a client received in one session. Times are of its own clock.
#[derive(Default)]
pub(super) struct Heard {
    answers: Vec<Answer>,
    until: Duration,
}

/// The answer to a request, or to a handshake.
struct Answer {
    sent: Duration,
    heard: Duration,
    by_leader: bool,
    /// The leader counts the session when it reads it.
    is_handshake: bool,
}

impl Heard {
    /// A server has accepted a connection. The handshake was sent before.
    pub(super) fn connected(&mut self, now: Duration) {
        let handshake = Answer { sent: now, heard: now, by_leader: true, is_handshake: true };
        self.answers.push(handshake);
    }

    /// A server has answered a request. A write is a *w*, after any *k* and *m*. Each request is a *k* for later ones, and
    /// a sync or a write is an *m*.
    pub(super) fn answered(&mut self, op: &Op, sent: Duration, now: Duration) {
        self.answers.retain(|answer| answer.sent + SESSION_TIMEOUT > now);
        if op.is_write() {
            let all_m = self.answers.iter().filter(|m| m.by_leader);
            let counted = all_m.filter_map(|m| self.counted(m, sent)).max();
            let until = counted.map(|counted| counted + SESSION_TIMEOUT - MARGIN);
            self.until = self.until.max(until.unwrap_or_default());
        }
        let by_leader = op.needs_leader();
        self.answers.push(Answer { sent, heard: now, by_leader, is_handshake: false });
    }

    /// Since when a leader has counted the session that executes a write which is sent then, as *m* shows.
    fn counted(&self, m: &Answer, sent: Duration) -> Option<Duration> {
        if m.is_handshake {
            return (m.heard <= sent).then_some(m.sent);
        }
        let is_shown = |k: &&Answer| k.heard + PAUSE <= m.sent;
        let shown = self.answers.iter().filter(is_shown).map(|k| k.sent).max();
        shown.filter(|_| m.heard + LATE <= sent)
    }

    /// Whether it may believe in its session now.
    pub(super) fn proves(&self, now: Duration) -> bool {
        now < self.until
    }
}
