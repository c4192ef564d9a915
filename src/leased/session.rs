//! The session that the claims of a store live on, and until when it can be trusted, by the local clock.
//!
//! The database ends the session one lease after it executed the last renewal. It executes a renewal no earlier than
//! the client submits it. So the session is trusted for one lease from the *submission* of the last confirmed renewal.
//! A twentieth is subtracted for clocks of different speed. Silence alone ends the trust. Once lost, it stays lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use uuid::Uuid;

use crate::runtime::{BootInstant, Latest, Timer};

pub(super) struct Session {
    pub(super) id: Uuid,
    lease: Duration,
    /// Until when it is trusted, in nanoseconds of the boot clock.
    until: AtomicU64,
    is_lost: Latest<bool>,
    /// Whether the last renewal has failed.
    is_suspended: Latest<bool>,
}

impl Session {
    /// One that has begun, by a step that was submitted then.
    pub(super) fn begun(id: Uuid, lease: Duration, submitted: BootInstant) -> Arc<Session> {
        let (until, is_lost) = (AtomicU64::new(0), Latest::new(false));
        let session = Session { id, lease, until, is_lost, is_suspended: Latest::new(false) };
        session.renewed(submitted);
        Arc::new(session)
    }

    /// How long before the end of the lease holders hear of it.
    pub(super) fn notice(&self) -> Duration {
        self.lease / 20
    }

    /// A renewal was confirmed that was submitted then.
    pub(super) fn renewed(&self, submitted: BootInstant) {
        let until = submitted + (self.lease - self.notice());
        self.until.fetch_max(until.as_nanos(), Ordering::AcqRel);
        self.set_suspended(false);
    }

    /// Whether a renewal was not confirmed, and none has been since.
    pub(super) fn set_suspended(&self, is_suspended: bool) {
        self.is_suspended.update(|was| std::mem::replace(was, is_suspended) != is_suspended);
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.is_suspended.get()
    }

    /// Whether the session's claims certainly still exclude other clients. The first look after that time loses the
    /// session for good.
    pub(super) fn is_trusted(&self) -> bool {
        if self.left().is_zero() {
            self.lose();
        }
        !self.is_lost.get()
    }

    /// For how long it is trusted if no renewal is confirmed any more.
    pub(super) fn trusted_for(&self) -> Duration {
        if self.is_trusted() { self.left() } else { Duration::ZERO }
    }

    fn left(&self) -> Duration {
        BootInstant::from_nanos(self.until.load(Ordering::Acquire)) - BootInstant::now()
    }

    /// It is over.
    pub(super) fn lose(&self) {
        self.is_lost.update(|is_lost| !std::mem::replace(is_lost, true));
    }

    /// Waits until it is lost.
    pub(super) async fn lost(&self) {
        self.is_lost.wait_for(|_| (!self.is_trusted()).then_some(())).await;
    }

    /// Waits until it seems to be alive or not, other than now.
    pub(super) async fn changed(&self) {
        let now = self.is_suspended();
        self.is_suspended.wait_for(|is_suspended| (*is_suspended != now).then_some(())).await;
    }

    /// Loses it when its time is over, whatever the database's thread waits for.
    pub(super) async fn watch(self: Arc<Session>) {
        while self.is_trusted() {
            Timer::after(self.left()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(60);

    #[test]
    fn trust_is_counted_from_the_submission_and_ends_before_the_lease() {
        let submitted = BootInstant::now();
        let session = Session::begun(Uuid::new_v4(), LEASE, submitted);
        assert!(session.trusted_for() <= LEASE - LEASE / 20);
        assert!(session.trusted_for() > LEASE / 2);
        // One that was in flight for long proves little.
        let session = Session::begun(Uuid::new_v4(), LEASE, submitted.earlier(LEASE));
        assert!(!session.is_trusted());
    }

    #[test]
    fn an_answer_that_comes_late_shortens_nothing_and_what_is_lost_stays_lost() {
        let now = BootInstant::now();
        let session = Session::begun(Uuid::new_v4(), LEASE, now);
        session.renewed(now.earlier(LEASE / 2));
        assert!(session.trusted_for() > LEASE / 2);
        session.lose();
        session.renewed(BootInstant::now());
        assert!(!session.is_trusted() && session.trusted_for().is_zero());
    }
}
