//! A stretch of time in which a session was certainly alive, judged by the local clock alone.
//!
//! # Why it can be trusted
//! Let T be the session timeout. The server ends a session T after it last heard from it. The C
//! client gives a connection up after 2/3 T of silence. So whenever the C client is seen
//! connected, the session lives for at least another T/3. Each such sight moves the end of trust
//! to that moment plus T/3, less a margin of T/10 for what the clocks and the ensemble can differ
//! by. Nothing else moves it: a lost connection, a frozen process, a sleeping machine all end
//! trust by mere silence, before the server can give the session's locks to another.
//!
//! A lost epoch stays lost, even when the session turns out to have survived: whoever was told
//! may have acted on it. A new epoch begins then.
//!
//! The margin covers a follower that dies before it has told the leader of our last word, if the
//! servers' `tickTime` is at most T/5 (the leader hears from followers every half tick).

use std::time::Duration;

use event_listener::Event;
use parking_lot::Mutex;

use super::clock::Moment;

pub(crate) struct Epoch {
    session: i64,
    trust: Mutex<Trust>,
    lost: Event,
}

struct Trust {
    until: Moment,
    lost: bool,
}

impl Trust {
    fn judge(&mut self, now: Moment) -> bool {
        self.lost |= now >= self.until;
        !self.lost
    }
}

/// How long a session with that timeout may be trusted after it was seen connected.
pub(super) fn trust_after_sight(session_timeout: Duration) -> Duration {
    session_timeout / 3 - session_timeout / 10
}

impl Epoch {
    /// Begins with the session seen connected at `seen`.
    pub(super) fn begin(session: i64, seen: Moment, session_timeout: Duration) -> Epoch {
        let until = seen + trust_after_sight(session_timeout);
        Epoch { session, trust: Mutex::new(Trust { until, lost: false }), lost: Event::new() }
    }

    /// The session's id.
    pub(crate) fn session(&self) -> i64 {
        self.session
    }

    /// The session was seen connected at `seen`. Returns whether the epoch still stands: a sight
    /// that comes after trust has ended does not bring it back.
    pub(super) fn sight(&self, seen: Moment, session_timeout: Duration) -> bool {
        let mut trust = self.trust.lock();
        if !trust.judge(seen) {
            return false;
        }
        trust.until = trust.until.max(seen + trust_after_sight(session_timeout));
        true
    }

    /// Whether the session can be trusted now. The first look after trust has ended declares the
    /// epoch lost, and tells everybody.
    pub(crate) fn is_trusted(&self) -> bool {
        let trusted = self.is_trusted_at(Moment::now());
        if !trusted {
            self.announce();
        }
        trusted
    }

    pub(super) fn is_trusted_at(&self, now: Moment) -> bool {
        self.trust.lock().judge(now)
    }

    /// The server, or the end of the client, has said so.
    pub(super) fn declare_lost(&self) {
        self.trust.lock().lost = true;
    }

    /// Wakes those who wait for the epoch to be lost, if it is. Wakers are other people's code, so
    /// this is called under no lock.
    pub(super) fn announce(&self) {
        if self.trust.lock().lost {
            self.lost.notify(usize::MAX);
        }
    }

    /// Waits until the epoch is lost.
    pub(crate) async fn lost(&self) {
        loop {
            let listener = self.lost.listen();
            if !self.is_trusted() {
                return;
            }
            listener.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Duration = Duration::from_secs(30);

    #[test]
    fn trust_ends_before_the_server_can_end_the_session() {
        let seen = Moment::now();
        let epoch = Epoch::begin(1, seen, T);
        // The last word may be 2/3 T older than the sight, so T/3 is all there is.
        assert!(epoch.is_trusted_at(seen + (T / 3 - T / 10 - Duration::from_millis(1))));
        assert!(!epoch.is_trusted_at(seen + (T / 3 - T / 10)));
    }

    #[test]
    fn a_sight_in_time_extends_trust_and_a_late_one_does_not() {
        let seen = Moment::now();
        let epoch = Epoch::begin(1, seen, T);
        assert!(epoch.sight(seen + T / 5, T));
        assert!(epoch.is_trusted_at(seen + T / 5 + T / 5));
        assert!(!epoch.sight(seen + T, T));
        assert!(!epoch.is_trusted_at(seen), "lost stays lost");
    }

    #[test]
    fn a_sight_from_before_a_freeze_does_not_reach_beyond_it() {
        let seen = Moment::now();
        let epoch = Epoch::begin(1, seen, T);
        // The thread read the clock, was frozen for an hour, and only then reported.
        assert!(epoch.sight(seen + T / 10, T));
        assert!(!epoch.is_trusted_at(seen + Duration::from_secs(3_600)));
    }
}
