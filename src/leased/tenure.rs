//! One holding of a lock in a store of leases.

use std::any::Any;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_lite::future::{Boxed, or};

use super::claim::{Claim, Place, Status};
use super::duties::Deleted;
use super::inner::{Inner, refused, unsure};
use crate::lock::{Access, GuardState, LockError, LockOp, LostReason, StoreRef, tenure};
use crate::process::Process;
use crate::runtime::Pending;

pub(super) struct Tenure {
    /// The guard keeps it open.
    inner: Weak<Inner>,
    claim: Arc<Claim>,
    path: Arc<str>,
    process: Process,
}

impl Tenure {
    pub(super) fn begin(inner: &Arc<Inner>, claim: Arc<Claim>) -> Arc<Tenure> {
        let path = claim.path();
        Arc::new(Tenure { inner: Arc::downgrade(inner), claim, path, process: Process::this() })
    }

    fn place(&self) -> Option<&Place> {
        self.claim.place()
    }

    /// Ends it by its holder's will. Gives why it has ended before, if it has.
    fn end(&self) -> (Option<LostReason>, Option<oneshot::AsyncReceiver<Deleted>>) {
        let before = tenure::Tenure::ended(self);
        self.claim.set(Status::Over(LostReason::Released));
        // It may have been lost in between.
        let lost =
            before.or_else(|| self.over_for().filter(|reason| *reason != LostReason::Released));
        let is_theirs = matches!(lost, Some(LostReason::Deleted | LostReason::Released));
        let inner = self.inner.upgrade().filter(|_| self.process.is_this() && !is_theirs);
        (lost, inner.map(|inner| inner.release(&self.claim)))
    }

    fn over_for(&self) -> Option<LostReason> {
        match self.claim.status.get() {
            Status::Over(reason) => Some(reason),
            Status::Waits | Status::Holds => None,
        }
    }

    /// Waits until the session is over, on which it is held.
    async fn session_lost(&self) {
        match self.place() {
            Some(place) => place.session.lost().await,
            None => std::future::pending().await,
        }
    }
}

impl tenure::Tenure for Tenure {
    fn lock_path(&self) -> &str {
        &self.claim.lock
    }

    fn claim_path(&self) -> Arc<str> {
        Arc::clone(&self.path)
    }

    fn token(&self) -> i64 {
        self.claim.token()
    }

    fn access(&self) -> Option<Access> {
        Access::of(self.claim.kind())
    }

    fn state(&self) -> GuardState {
        match self.ended() {
            Some(_) => GuardState::Lost,
            None if self.place().is_some_and(|place| place.session.is_suspended()) => {
                GuardState::Suspended
            }
            None => GuardState::Held,
        }
    }

    fn ended(&self) -> Option<LostReason> {
        if !self.process.is_this() {
            return Some(LostReason::Session);
        }
        if self.over_for().is_none()
            && !self.place().is_some_and(|place| place.session.is_trusted())
        {
            self.claim.set(Status::Over(LostReason::Session));
        }
        self.over_for()
    }

    fn remaining(&self) -> Duration {
        match (self.ended(), self.place()) {
            (None, Some(place)) => place.session.trusted_for(),
            _ => Duration::ZERO,
        }
    }

    fn changed(self: Arc<Self>) -> Boxed<()> {
        Box::pin(async move {
            let over = async {
                Arc::clone(&self).over().await;
            };
            let changed = async {
                match self.place() {
                    Some(place) => place.session.changed().await,
                    None => std::future::pending().await,
                }
            };
            or(over, changed).await;
        })
    }

    fn over(self: Arc<Self>) -> Boxed<LostReason> {
        Box::pin(async move {
            let reason = |status: &Status| match status {
                Status::Over(reason) => Some(*reason),
                Status::Waits | Status::Holds => None,
            };
            let session = async {
                self.session_lost().await;
                self.claim.set(Status::Over(LostReason::Session));
                self.over_for().unwrap_or(LostReason::Session)
            };
            or(self.claim.status.wait_for(reason), session).await
        })
    }

    fn request_other_than(self: Arc<Self>, seen: Option<Arc<str>>) -> Boxed<Option<Arc<str>>> {
        let over = Arc::clone(&self).over();
        Box::pin(async move { self.claim.requests.other_than(seen, over).await })
    }

    fn release(self: Arc<Self>, store: Option<StoreRef>) -> Pending<(), LockError> {
        let (lost, gone) = self.end();
        let path = Arc::clone(&self.claim.lock);
        LockOp::Release.run(path, async move {
            let was_lost = |reason| Err(LockError::lost(&self.claim.lock, reason));
            let gone = match (lost, gone) {
                (None, Some(gone)) => gone,
                (lost, _) => return was_lost(lost.unwrap_or(LostReason::Session)),
            };
            let confirmed = async {
                match gone.await {
                    Ok(Ok(true)) => Ok(()),
                    Ok(Err(failure)) => {
                        Err(unsure(refused(LockOp::Release, &self.claim.lock, failure)))
                    }
                    Ok(Ok(false))
                        if self.place().is_some_and(|place| place.session.is_trusted()) =>
                    {
                        was_lost(LostReason::Deleted)
                    }
                    _ => was_lost(LostReason::Session),
                }
            };
            let session_lost = async {
                self.session_lost().await;
                was_lost(LostReason::Session)
            };
            let released = or(confirmed, session_lost).await;
            drop(store);
            released
        })
    }

    fn let_go(self: Arc<Self>) {
        drop(self.end());
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
