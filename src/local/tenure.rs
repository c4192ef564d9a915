//! One holding of a local lock.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use futures_lite::future::Boxed;

use super::change::{self, Claimed};
use super::queue::{Claim, Queues, Status};
use crate::lock::{Access, LockError, LostReason, StoreRef, ready, tenure};
use crate::process::Process;
use crate::runtime::Pending;

pub(super) struct Tenure {
    held: Arc<Claimed>,
    process: Process,
}

impl Tenure {
    pub(super) fn begin(queues: Arc<Queues>, lock: Arc<str>, claim: Arc<Claim>) -> Arc<Tenure> {
        let held = Arc::new(Claimed { queues, lock, claim });
        Arc::new(Tenure { held, process: Process::this() })
    }
}

impl tenure::Tenure for Tenure {
    fn lock_path(&self) -> &str {
        &self.held.lock
    }

    fn claim_path(&self) -> Arc<str> {
        Arc::clone(&self.held.claim.path)
    }

    fn token(&self) -> i64 {
        self.held.claim.token
    }

    fn access(&self) -> Option<Access> {
        self.held.access()
    }

    fn change(self: Arc<Self>, to: Access) -> Option<Pending<(), LockError>> {
        Some(match to {
            Access::Write => change::upgrade(Arc::clone(&self.held)),
            to => self.held.downgrade(to),
        })
    }

    fn ended(&self) -> Option<LostReason> {
        if !self.process.is_this() {
            return Some(LostReason::Session);
        }
        match self.held.claim.status.get() {
            Status::Over(reason) => Some(reason),
            Status::Waits | Status::Holds => None,
        }
    }

    fn remaining(&self) -> Duration {
        if self.ended().is_some() { Duration::ZERO } else { Duration::MAX }
    }

    fn over(self: Arc<Self>) -> Boxed<LostReason> {
        Box::pin(async move { self.held.over().await })
    }

    fn request_other_than(self: Arc<Self>, seen: Option<Arc<str>>) -> Boxed<Option<Arc<str>>> {
        let over = Arc::clone(&self).over();
        Box::pin(async move { self.held.claim.requests.other_than(seen, over).await })
    }

    fn release(self: Arc<Self>, _store: Option<StoreRef>) -> Pending<(), LockError> {
        self.held.queues.leave(&self.held.lock, &self.held.claim, LostReason::Released);
        // The first reason stays: it may have been taken away up to the very end.
        let released = match self.ended() {
            Some(LostReason::Released) | None => Ok(()),
            Some(reason) => Err(LockError::lost(&self.held.lock, reason)),
        };
        ready(released)
    }

    fn let_go(self: Arc<Self>) {
        self.held.queues.leave(&self.held.lock, &self.held.claim, LostReason::Released);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
