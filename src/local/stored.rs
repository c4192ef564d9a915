//! A lock of a local store, for the face.

use std::any::Any;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::queue::{Claim, Queues, Status};
use super::tenure::Tenure;
use crate::error::{Code, Error};
use crate::lock::{Change, Contender, Guard, LockError, LostReason, StoredLock, Strategy};
use crate::runtime::{Pending, machine, now, within};

#[derive(Clone)]
pub(super) struct LocalLock {
    queues: Arc<Queues>,
    path: Arc<str>,
    strategy: Strategy,
    label: Arc<str>,
}

/// A claim that does not hold yet, and is taken back unless it comes to.
struct Waiting<'a> {
    lock: &'a LocalLock,
    claim: Option<Arc<Claim>>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(claim) = &self.claim {
            self.lock.queues.leave(&self.lock.path, claim, LostReason::Released);
        }
    }
}

impl LocalLock {
    pub(super) fn new(queues: Arc<Queues>, path: &str) -> LocalLock {
        LocalLock {
            queues,
            path: path.into(),
            strategy: Strategy::default(),
            label: Arc::default(),
        }
    }

    /// Waits until it holds, for so long; behind nobody where that is nothing.
    async fn acquire_in(&self, limit: Option<Duration>) -> Result<Guard, LockError> {
        let deadline = limit.and_then(|limit| now().checked_add(limit));
        if deadline.is_some() {
            machine::start().map_err(|error| {
                let error =
                    Error::with_detail("acquire", "", Code::SYSTEM_ERROR, error.to_string());
                LockError::store(&self.path, error)
            })?;
        }
        let only_tries = limit.is_some_and(|limit| limit.is_zero());
        loop {
            let claim = match self.queues.join(&self.path, &self.label, only_tries)? {
                Ok(claim) => claim,
                Err(ahead) => return Err(LockError::timed_out(&self.path, Some(ahead))),
            };
            let mut waiting = Waiting { lock: self, claim: Some(Arc::clone(&claim)) };
            let reached = |status: &Status| (*status != Status::Waits).then_some(*status);
            match within(deadline, claim.status.wait_for(reached), || Status::Waits).await {
                Status::Holds => {
                    waiting.claim = None;
                    return Ok(self.guard(claim));
                }
                Status::Waits => {
                    let ahead = self.queues.ahead_of(&self.path, &claim);
                    return Err(LockError::timed_out(&self.path, ahead));
                }
                // Taken away before anybody had a guard of it; where the store is closed, it ends with the next.
                Status::Over(_) => {}
            }
        }
    }

    fn guard(&self, claim: Arc<Claim>) -> Guard {
        let store = Arc::clone(&self.queues);
        let tenure = Tenure::begin(Arc::clone(&store), Arc::clone(&self.path), claim);
        Guard::new(tenure, store)
    }

    /// Runs an operation, unless there can be no such lock.
    fn run<T: Send + 'static>(
        &self,
        op: &'static str,
        work: impl Future<Output = Result<T, LockError>> + Send + 'static,
    ) -> Pending<T, LockError> {
        match self.strategy.check_path(&self.path) {
            Ok(()) => Pending::run_as(op, Arc::clone(&self.path), LockError::of_pending, work),
            Err(why) => {
                let refused = LockError::unusable(&self.path, why, Code::BAD_ARGUMENTS);
                Pending::ready_as(LockError::of_pending, Err(refused))
            }
        }
    }
}

impl StoredLock for LocalLock {
    fn path(&self) -> &str {
        &self.path
    }

    fn strategy(&self) -> Strategy {
        self.strategy
    }

    fn with(&self, change: Change) -> Arc<dyn StoredLock> {
        let mut changed = self.clone();
        match change {
            Change::Strategy(strategy) => changed.strategy = strategy,
            Change::Label(label) => changed.label = label.into(),
        }
        Arc::new(changed)
    }

    fn acquire(self: Arc<Self>, limit: Option<Duration>) -> Pending<Guard, LockError> {
        let lock = Arc::clone(&self);
        self.run("acquire", async move { lock.acquire_in(limit).await })
    }

    fn try_acquire(self: Arc<Self>) -> Pending<Option<Guard>, LockError> {
        let lock = Arc::clone(&self);
        self.run("acquire", async move {
            let joined = lock.queues.join(&lock.path, &lock.label, true)?;
            Ok(joined.ok().map(|claim| lock.guard(claim)))
        })
    }

    fn contenders(self: Arc<Self>, number: usize) -> Pending<Vec<Contender>, LockError> {
        let lock = Arc::clone(&self);
        self.run("contenders", async move { lock.queues.first(&lock.path, number) })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
