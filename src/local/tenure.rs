//! One holding of a local lock.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use futures_lite::future::Boxed;

use super::queue::{Claim, Queues, Status};
use crate::lock::{GuardState, LockError, LostReason, StoreRef, tenure};
use crate::process::Process;
use crate::runtime::Pending;

pub(super) struct Tenure {
    queues: Arc<Queues>,
    lock: Arc<str>,
    claim: Arc<Claim>,
    process: Process,
}

impl Tenure {
    pub(super) fn begin(queues: Arc<Queues>, lock: Arc<str>, claim: Arc<Claim>) -> Arc<Tenure> {
        Arc::new(Tenure { queues, lock, claim, process: Process::this() })
    }
}

impl tenure::Tenure for Tenure {
    fn path(&self) -> &str {
        &self.claim.path
    }

    fn token(&self) -> i64 {
        self.claim.token
    }

    fn state(&self) -> GuardState {
        if self.ended().is_some() { GuardState::Lost } else { GuardState::Held }
    }

    fn ended(&self) -> Option<LostReason> {
        if !self.process.is_this() {
            return Some(LostReason::Session);
        }
        match self.claim.status.get() {
            Status::Over(reason) => Some(reason),
            Status::Waits | Status::Holds => None,
        }
    }

    fn remaining(&self) -> Duration {
        if self.ended().is_some() { Duration::ZERO } else { Duration::MAX }
    }

    fn changed(self: Arc<Self>) -> Boxed<()> {
        let over = self.over();
        Box::pin(async move {
            over.await;
        })
    }

    fn over(self: Arc<Self>) -> Boxed<LostReason> {
        let reason = |status: &Status| match status {
            Status::Over(reason) => Some(*reason),
            Status::Waits | Status::Holds => None,
        };
        Box::pin(async move { self.claim.status.wait_for(reason).await })
    }

    fn request_other_than(self: Arc<Self>, seen: Option<Arc<str>>) -> Boxed<Option<Arc<str>>> {
        let over = Arc::clone(&self).over();
        Box::pin(async move { self.claim.requests.other_than(seen, over).await })
    }

    fn release(self: Arc<Self>, _store: Option<StoreRef>) -> Pending<(), LockError> {
        self.queues.leave(&self.lock, &self.claim, LostReason::Released);
        // The first reason stays: it may have been taken away up to the very end.
        let released = match self.ended() {
            Some(LostReason::Released) | None => Ok(()),
            Some(reason) => Err(LockError::lost(self.path(), reason)),
        };
        Pending::ready_as(LockError::of_pending, released)
    }

    fn let_go(self: Arc<Self>) {
        self.queues.leave(&self.lock, &self.claim, LostReason::Released);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
