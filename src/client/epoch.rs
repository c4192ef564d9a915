//! A stretch of time in which a session was certainly alive, judged by the local clock alone.
//!
//! # Why it can be trusted
//! The servers end a session T (the session timeout) after the leader last heard of it. A reply to a
//! write, or to a sync, comes from the leader; it proves that the session was alive, and its server
//! in touch with the leader, no earlier than the request was *submitted*. (A read proves nothing: a
//! follower answers it alone, also when it has lost its leader and the leader counts the session
//! out.) The keeper sends a sync whenever nothing else has proved anything for T/10.
//!
//! A follower tells the leader of its sessions every half `tickTime`, so what the leader knows can
//! be older than the latest proof: by half a tick, or by the pause between two proofs. Trust
//! therefore ends a margin of T/5 before the submission of the latest answered request plus T. That
//! covers every loss and partition if the servers' `tickTime` is at most 2/5 of T.
//!
//! Nothing but such an answer moves the end of trust. A cut link, one that carries only one
//! direction, a frozen process, a stalled thread, a sleeping machine: all of them end it by mere
//! silence, before the servers can give the session's locks to another.
//!
//! A lost epoch stays lost, even when the session turns out to have survived: whoever was told may
//! have acted on it. A new epoch begins then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use event_listener::Event;

use super::clock::Moment;
use super::wake;

/// What the leader has proved of a session by its answers.
#[derive(Default)]
pub(super) struct Proof {
    /// When the latest answered request was submitted; 0 before there is one.
    latest: AtomicU64,
    /// The session timeout in nanoseconds, as the server granted it.
    session_timeout: AtomicU64,
}

impl Proof {
    /// A request that was submitted then has been answered by the server.
    pub(super) fn record(&self, submitted: Moment) {
        self.latest.fetch_max(submitted.as_nanos(), Ordering::AcqRel);
    }

    pub(super) fn set_session_timeout(&self, timeout: Duration) {
        let nanos = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        self.session_timeout.store(nanos, Ordering::Release);
    }

    /// When the latest answered request was submitted.
    pub(super) fn latest(&self) -> Moment {
        Moment::from_nanos(self.latest.load(Ordering::Acquire))
    }

    /// Until when the session is certainly alive.
    fn until(&self) -> Moment {
        let timeout = Duration::from_nanos(self.session_timeout.load(Ordering::Acquire));
        self.latest() + (timeout - timeout / 5)
    }

    /// Whether the session is certainly alive.
    pub(super) fn holds_at(&self, now: Moment) -> bool {
        now < self.until()
    }
}

pub(crate) struct Epoch {
    session: i64,
    proof: Arc<Proof>,
    lost: AtomicBool,
    told: Event,
}

impl Epoch {
    /// Begins while `proof` holds.
    pub(super) fn begin(session: i64, proof: Arc<Proof>) -> Epoch {
        Epoch { session, proof, lost: AtomicBool::new(false), told: Event::new() }
    }

    /// The session's id.
    pub(crate) fn session(&self) -> i64 {
        self.session
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

    /// As [`is_trusted`](Epoch::is_trusted), but tells nobody.
    pub(super) fn is_trusted_at(&self, now: Moment) -> bool {
        if !self.proof.holds_at(now) {
            self.declare_lost();
        }
        !self.lost.load(Ordering::Acquire)
    }

    /// The server, or the end of the client, has said so.
    pub(super) fn declare_lost(&self) {
        self.lost.store(true, Ordering::Release);
    }

    /// Wakes those who wait for the epoch to be lost, if it is. Wakers are other people's code, so
    /// this is called under no lock.
    pub(super) fn announce(&self) {
        if self.lost.load(Ordering::Acquire) {
            wake::all(&self.told);
        }
    }

    /// Waits until the epoch is lost.
    pub(crate) async fn lost(&self) {
        loop {
            let listener = self.told.listen();
            if !self.is_trusted() {
                return;
            }
            wake::Careful(listener).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Duration = Duration::from_secs(30);

    fn answered_at(submitted: Moment) -> (Arc<Proof>, Epoch) {
        let proof = Arc::new(Proof::default());
        proof.set_session_timeout(T);
        proof.record(submitted);
        (Arc::clone(&proof), Epoch::begin(1, proof))
    }

    #[test]
    fn trust_ends_before_the_server_can_end_the_session() {
        let submitted = Moment::now();
        let (_, epoch) = answered_at(submitted);
        assert!(epoch.is_trusted_at(submitted + (T - T / 5 - Duration::from_millis(1))));
        assert!(!epoch.is_trusted_at(submitted + (T - T / 5)));
    }

    #[test]
    fn an_answer_in_time_extends_trust_and_a_late_one_does_not_bring_it_back() {
        let submitted = Moment::now();
        let (proof, epoch) = answered_at(submitted);
        proof.record(submitted + T / 2);
        assert!(epoch.is_trusted_at(submitted + T));
        assert!(!epoch.is_trusted_at(submitted + 2 * T));
        proof.record(submitted + 2 * T);
        assert!(proof.holds_at(submitted + 2 * T), "the session has survived");
        assert!(!epoch.is_trusted_at(submitted + 2 * T), "but the epoch stays lost");
    }

    #[test]
    fn an_answer_counts_from_when_its_request_was_submitted() {
        let submitted = Moment::now();
        let (proof, epoch) = answered_at(submitted + T / 3);
        // Answers to earlier requests, read late after a freeze, prove nothing new.
        proof.record(submitted);
        assert!(epoch.is_trusted_at(submitted + T));
        assert!(!epoch.is_trusted_at(submitted + Duration::from_secs(3_600)));
    }

    #[test]
    fn nothing_is_trusted_before_the_first_answer() {
        let proof = Proof::default();
        proof.set_session_timeout(T);
        assert!(!proof.holds_at(Moment::now()));
    }
}
