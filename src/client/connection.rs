//! The last known state of a handle's connection. A new connection changes the lease.

use std::time::Duration;

use super::lease::Lease;
use crate::raw::HandleState;
use crate::runtime::BootInstant;

/// The connection of a handle, over all its reconnections.
pub(super) struct Connection {
    /// When there was none.
    last_absent: BootInstant,
    /// A time before the handshake of the present or the next one was sent; `None` for a handle that was adopted
    /// connected.
    before_handshake: Option<BootInstant>,
    /// Whether the lease knows of the present one.
    is_known: bool,
    /// How many there were since a server last answered on one, and when that was.
    unanswered: u32,
    answered_at: BootInstant,
}

/// How many connections in a row bring no answer before a session is abandoned.
const HOPELESS: u32 = 8;

impl Connection {
    /// The connection of a handle that is opened or adopted after `now`.
    pub(super) fn new(now: BootInstant, is_adopted: bool) -> Connection {
        Connection {
            last_absent: now,
            before_handshake: (!is_adopted).then_some(now),
            is_known: false,
            unanswered: 0,
            answered_at: now,
        }
    }

    pub(super) fn is_absent(&mut self, state: Option<HandleState>, now: BootInstant) {
        self.last_absent = now;
        self.is_known = false;
        if state != Some(HandleState::HANDSHAKE) {
            self.before_handshake = Some(now);
        }
    }

    /// Tells the lease of a new connection. Returns whether a server has recently answered on this connection.
    pub(super) fn is_usable(&mut self, lease: &Lease, now: BootInstant) -> bool {
        if !std::mem::replace(&mut self.is_known, true) {
            self.unanswered += 1;
            match self.before_handshake {
                Some(before) => lease.connected(before, now),
                None => lease.adopted(now),
            }
        }
        let is_usable = lease.is_alive_at(now) && lease.latest() >= self.last_absent;
        if is_usable {
            self.unanswered = 0;
            self.answered_at = now;
        }
        is_usable
    }

    /// Whether connections come and go without an answer, for so long that nothing is held on the session any more.
    /// Each connection renews the session, and so keeps from others what it claims.
    pub(super) fn is_hopeless(&self, timeout: Duration) -> bool {
        self.unanswered >= HOPELESS && BootInstant::now() - self.answered_at > 3 * timeout
    }
}

#[cfg(all(test, not(zklock_loom)))]
mod tests {
    use super::*;
    use crate::client::lease::Proof;

    #[test]
    fn a_session_counts_from_the_last_moment_before_its_handshake() {
        let at = |ms| BootInstant::from_nanos(0) + Duration::from_millis(ms);
        let lease = Lease::default();
        lease.set_terms(Duration::from_secs(10), None);
        let mut connection = Connection::new(at(1_000), false);
        connection.is_absent(Some(HandleState::CONNECTING), at(1_100));
        connection.is_absent(Some(HandleState::HANDSHAKE), at(5_000));
        assert!(!connection.is_usable(&lease, at(8_000)), "no server has answered");
        lease.answered(at(8_100), at(8_200), Proof::Write);
        assert!(connection.is_usable(&lease, at(8_200)));
        // Less the notice, a twentieth.
        assert!(lease.is_proven_at(at(10_599)) && !lease.is_proven_at(at(10_600)));
    }
}
