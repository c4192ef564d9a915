//! A stretch of time in which a session was alive, judged by the local clock alone.
//!
//! It ends by silence: when the link is cut, or carries one direction only, when a thread is stalled,
//! the process is stopped, the machine sleeps. Locks on the session are held for as long as the
//! [`Lease`] proves that no server can have ended it. If no lock is held, the answers to syncs are
//! enough.
//!
//! A lost period stays lost, even if the session turns out to have survived: the program may have acted
//! on the loss. Then another period begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use event_listener::{Event, listener};
use futures_lite::future::or;

use super::lease::Lease;
use crate::runtime::{BootInstant, wake};

pub(crate) struct TrustPeriod {
    session: i64,
    lease: Arc<Lease>,
    /// How many locks are held in it.
    holds: AtomicUsize,
    lost: AtomicBool,
    ended: Event,
}

impl TrustPeriod {
    pub(super) fn begin(session: i64, lease: Arc<Lease>) -> TrustPeriod {
        let (holds, lost) = (AtomicUsize::new(0), AtomicBool::new(false));
        TrustPeriod { session, lease, holds, lost, ended: Event::new() }
    }

    /// The session's id.
    pub(crate) fn session(&self) -> i64 {
        self.session
    }

    /// Whether the session can be trusted now. The first call after trust has ended declares the
    /// period lost, and notifies everybody.
    pub(crate) fn is_trusted(&self) -> bool {
        let trusted = self.is_trusted_at(BootInstant::now());
        if !trusted {
            self.announce();
        }
        trusted
    }

    /// As [`is_trusted`](TrustPeriod::is_trusted), but notifies nobody.
    pub(super) fn is_trusted_at(&self, now: BootInstant) -> bool {
        let alive = match self.holds.load(Ordering::Acquire) {
            0 => self.lease.is_alive_at(now),
            _ => self.lease.is_proven_at(now),
        };
        if !alive {
            self.declare_lost();
        }
        !self.lost.load(Ordering::Acquire)
    }

    /// The server, or the end of the client, has said so.
    pub(super) fn declare_lost(&self) {
        self.lost.store(true, Ordering::Release);
    }

    /// Wakes the tasks that wait for the end of the period, if it is lost. Wakers are foreign code, so
    /// no lock is held during this call.
    pub(super) fn announce(&self) {
        if self.lost.load(Ordering::Acquire) {
            wake::all(&self.ended);
        }
    }

    /// Waits until the period is lost.
    pub(crate) async fn lost(&self) {
        loop {
            listener!(self.ended => listener);
            if !self.is_trusted() {
                return;
            }
            wake::DeferredWake(listener).await;
        }
    }

    /// Whether anything is held on the session.
    pub(super) fn is_held(&self) -> bool {
        self.holds.load(Ordering::Acquire) > 0
    }

    /// Holds something on the session, if it is proven to be alive.
    pub(super) fn hold(self: &Arc<Self>) -> Option<Hold> {
        if !self.lease.can_hold_at(BootInstant::now()) {
            return None;
        }
        self.lease.wanted();
        self.holds.fetch_add(1, Ordering::AcqRel);
        let hold = Hold { period: Arc::clone(self), over: AtomicBool::new(false) };
        // Read after it was counted: nobody else reads it by the weaker rule any more.
        hold.is_held().then_some(hold)
    }

    /// Waits until something can be held on the session, or the period is lost. `ask` makes the
    /// servers prove it.
    pub(super) async fn proven(&self, ask: impl Fn()) {
        self.lease.wanted();
        let wanted = Wanted(&self.lease);
        let proven = async {
            loop {
                let listener = self.lease.renewed();
                if self.lease.can_hold_at(BootInstant::now()) {
                    return;
                }
                ask();
                wake::DeferredWake(listener).await;
            }
        };
        or(proven, self.lost()).await;
        drop(wanted);
    }
}

struct Wanted<'a>(&'a Lease);

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        self.0.unwanted();
    }
}

/// Something that is held on a session, from when it was acquired until it is given back or lost.
pub(crate) struct Hold {
    period: Arc<TrustPeriod>,
    over: AtomicBool,
}

impl Hold {
    /// The session's id.
    pub(crate) fn session(&self) -> i64 {
        self.period.session()
    }

    /// Whether it was not given back, and the session is proven to be alive.
    pub(crate) fn is_held(&self) -> bool {
        !self.over.load(Ordering::Acquire) && self.period.is_trusted()
    }

    /// How long it is held if no server answers any more.
    pub(crate) fn remaining(&self) -> Duration {
        if !self.is_held() {
            return Duration::ZERO;
        }
        self.period.lease.proven_for(BootInstant::now())
    }

    /// How long before the session can end its holder hears of that.
    pub(crate) fn notice(&self) -> Duration {
        self.period.lease.notice()
    }

    /// It is held no more.
    pub(crate) fn end(&self) {
        if !self.over.swap(true, Ordering::AcqRel) {
            self.period.holds.fetch_sub(1, Ordering::AcqRel);
            self.period.lease.unwanted();
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::super::lease::Proof;
    use super::*;

    /// A lease that proves a session of a minute to be alive.
    fn proven() -> Arc<Lease> {
        let lease = Arc::new(Lease::default());
        lease.set_terms(Duration::from_secs(60), None);
        let now = BootInstant::now();
        lease.connected(now, now);
        lease.answered(now, now, Proof::Write);
        lease
    }

    #[test]
    fn nothing_is_held_in_a_period_that_is_lost() {
        let period = Arc::new(TrustPeriod::begin(1, proven()));
        let hold = period.hold().unwrap();
        assert!(hold.is_held() && period.is_held());
        assert!(
            hold.remaining() > Duration::from_secs(50),
            "the session timeout, less a twentieth"
        );
        assert!(hold.remaining() <= Duration::from_secs(57));
        period.declare_lost();
        assert!(!hold.is_held(), "lost in spite of what is proven");
        assert!(period.hold().is_none());
        assert_eq!(hold.remaining(), Duration::ZERO);
        drop(hold);
        assert!(!period.is_held(), "what could not be held is not counted");
    }

    #[test]
    fn nothing_is_held_that_would_be_lost_at_once() {
        let lease = Arc::new(Lease::default());
        lease.set_terms(Duration::from_secs(60), None);
        let now = BootInstant::now();
        // Alive, as far as a sync shows.
        lease.connected(now, now);
        lease.answered(now, now, Proof::Sync);
        let period = Arc::new(TrustPeriod::begin(1, lease));
        assert!(period.is_trusted());
        assert!(period.hold().is_none());
        assert!(period.is_trusted(), "nobody else is judged by what a hold needs");
    }
}
