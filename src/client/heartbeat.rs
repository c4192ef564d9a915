//! Heartbeats: their replies renew a session's lease.

use std::sync::Arc;
use std::time::Duration;

use super::Link;
use super::lease::{Proof, is_server_decision};
use crate::error::{Code, Error};
use crate::raw::{Sink, Turn};
use crate::runtime::BootInstant;

/// A heartbeat asks the servers to delete this version of this znode. They refuse, because no znode has that version.
const NO_ZNODE: &str = "/zklock/heartbeat";
pub(super) const NO_VERSION: i32 = i32::MAX;

impl Link {
    /// The longest pause before the next look: until trust in the session would end without an answer, and less while that
    /// is near.
    pub(super) fn next_look_in(&self) -> Duration {
        let timeout = self.session_timeout().unwrap_or_default();
        // Often enough that a loss is reported when it happens, seldom enough to cost nothing.
        let usual = (timeout / 30).clamp(Duration::from_millis(10), Duration::from_millis(200));
        let now = BootInstant::now();
        let pause = if self.lease.is_short_at(now) { usual.min(timeout / 100) } else { usual };
        match self.lease.ends_in(now) {
            Duration::ZERO => usual,
            ends_in => pause.min(ends_in + Duration::from_millis(1)),
        }
    }

    /// Asks the servers to renew the lease, if that is due.
    pub(super) fn heartbeat(self: &Arc<Self>) {
        let now = BootInstant::now();
        let (sync, write) = {
            let asked = self.asked.lock();
            (asked.sync.max(asked.write), asked.write)
        };
        if self.lease.is_write_due(write, now) {
            self.asked.lock().write = now;
            // The servers refuse it, and a quorum has to commit the refusal.
            let (terms, renewal) = (self.terms(Turn::Ahead), self.renewal(now, Proof::Write));
            self.handle.delete(terms, NO_ZNODE, NO_VERSION, renewal);
        } else if self.lease.is_sync_due(sync, now) {
            self.send_sync();
        }
    }

    pub(super) fn send_sync(self: &Arc<Self>) {
        let now = BootInstant::now();
        self.asked.lock().sync = now;
        self.handle.sync(self.terms(Turn::Ahead), "/", self.renewal(now, Proof::Sync));
    }

    fn renewal(self: &Arc<Self>, submitted: BootInstant, proof: Proof) -> Sink<()> {
        let link = Arc::downgrade(self);
        Box::new(move |reply| {
            let Some(link) = link.upgrade() else { return };
            let Some(owner) = link.owner.upgrade() else { return };
            link.lease.learn(&reply, submitted, proof);
            match reply {
                // Another handle has taken the session over, and may end it at any time.
                Err(Code::SESSION_MOVED) => owner.lose_trust(&link),
                // Every later session would get the same answer.
                Err(code @ Code::SESSION_CLOSED_REQUIRE_SASL_AUTH) => {
                    owner.refused(Error::answered("connect", "", code));
                }
                // A connection counts once a server has answered on it.
                reply if is_server_decision(&reply) => owner.observe(&link),
                _ => {}
            }
        })
    }
}
