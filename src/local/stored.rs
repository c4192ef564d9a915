//! A lock of a local store, for the face.

use std::any::Any;
use std::future::Future;
use std::sync::Arc;

use futures_lite::future::or;
use parking_lot::Mutex;

use super::ahead::Ahead;
use super::queue::{Claim, Queues, Status, Wanted};
use super::tenure::Tenure;
use crate::error::Code;
use crate::lock::{
    ACQUIRED, AcquireTrace, Caller, Change, Contender, Guard, Interop, Kind, LockError, LockOp,
    LockView, LostReason, MAX_TEXT, NO_ACL, NO_OTHER_LIBRARIES, Revocation, StoredLock, Strategy,
    TAKEN, ready,
};
use crate::runtime::{Pending, Timer, machine};
use crate::text::one_line;

#[derive(Clone)]
pub(super) struct LocalLock {
    queues: Arc<Queues>,
    path: Arc<str>,
    strategy: Strategy,
    kind: Kind,
    limit: u32,
    label: Arc<str>,
    /// Why every operation fails.
    refused: Option<&'static str>,
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

/// A hold that is broken, and ends here at the latest.
struct Leaving {
    lock: Arc<LocalLock>,
    claim: Arc<Claim>,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.lock.queues.leave(&self.lock.path, &self.claim, LostReason::Broken);
    }
}

impl LocalLock {
    pub(super) fn new(queues: Arc<Queues>, path: &str) -> LocalLock {
        LocalLock {
            queues,
            path: path.into(),
            strategy: Strategy::default(),
            kind: Kind::default(),
            limit: 0,
            label: Arc::default(),
            refused: None,
        }
    }

    fn wanted(&self) -> Wanted<'_> {
        Wanted { kind: self.kind, limit: self.limit, label: &self.label }
    }

    /// Says why there can be no such lock, if there can't.
    fn check(&self) -> Result<(), &'static str> {
        self.refused.map_or(Ok(()), Err)?;
        self.strategy.check_path(&self.path)?;
        self.kind.check(self.strategy, &self.path, self.limit)
    }

    /// Waits until it holds.
    async fn wait_in(&self, ahead: &Ahead, trace: &AcquireTrace) -> Result<Guard, LockError> {
        let caller = Caller::present();
        loop {
            let claim = caller.acts(|| self.queues.join(&self.path, &self.wanted()))?;
            *ahead.claim.lock() = Some(Arc::clone(&claim));
            let mut waiting = Waiting { lock: self, claim: Some(Arc::clone(&claim)) };
            let holds = |status: &Status| match status {
                Status::Waits => None,
                Status::Holds => Some(true),
                // Taken away before anybody had a guard of it; where the store is closed, it ends with the next.
                Status::Over(_) => Some(false),
            };
            if claim.status.wait_for(holds).await {
                waiting.claim = None;
                return Ok(self.guard(claim, trace));
            }
        }
    }

    fn trace(&self) -> AcquireTrace {
        AcquireTrace::begin(&self.path, self.strategy, &self.label)
    }

    fn guard(&self, claim: Arc<Claim>, trace: &AcquireTrace) -> Guard {
        claim.trace(trace);
        let store = Arc::clone(&self.queues);
        let tenure = Tenure::begin(Arc::clone(&store), Arc::clone(&self.path), claim);
        Guard::new(tenure, store, trace.started)
    }

    /// Runs an operation, unless there can be no such lock.
    fn run<T: Send + 'static>(
        &self,
        op: LockOp,
        work: impl Future<Output = Result<T, LockError>> + Send + 'static,
    ) -> Pending<T, LockError> {
        match self.check() {
            Ok(()) => op.run(Arc::clone(&self.path), work),
            Err(why) => {
                let refused = LockError::unusable(&self.path, why, Code::BAD_ARGUMENTS);
                ready(Err(refused))
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
            Change::Label(label) => changed.label = label,
            Change::Kind(kind) => changed.kind = kind,
            Change::Limit(limit) => changed.limit = limit,
            Change::Path(path) | Change::Key(path) => changed.path = path.into(),
            Change::Interop(Interop::Most) => {}
            Change::Interop(Interop::All) => changed.refused = Some(NO_OTHER_LIBRARIES),
            Change::Acl(_) => changed.refused = Some(NO_ACL),
        }
        Arc::new(changed)
    }

    fn acquire(self: Arc<Self>) -> Pending<Guard, LockError> {
        let ahead = Ahead { queues: Arc::clone(&self.queues), claim: Mutex::default() };
        let (lock, ahead) = (Arc::clone(&self), Arc::new(ahead));
        let (late, trace) = (Arc::clone(&ahead), self.trace());
        let acquired = async move {
            let acquired = lock.wait_in(&ahead, &trace).await;
            trace.ended(&acquired, |_| ACQUIRED);
            acquired
        };
        self.run(LockOp::Acquire, acquired).when_late(late)
    }

    fn try_acquire(self: Arc<Self>) -> Pending<Result<Guard, Option<Contender>>, LockError> {
        let (lock, trace) = (Arc::clone(&self), self.trace());
        self.run(LockOp::Acquire, async move {
            let tried = lock.queues.try_join(&lock.path, &lock.wanted());
            trace.ended(&tried, |tried| if tried.is_ok() { ACQUIRED } else { TAKEN });
            Ok(tried?.map(|claim| lock.guard(claim, &trace)).map_err(Some))
        })
    }

    fn view(self: Arc<Self>) -> Arc<dyn LockView> {
        self
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl LockView for LocalLock {
    fn contenders(self: Arc<Self>, number: usize) -> Pending<Vec<Contender>, LockError> {
        let lock = Arc::clone(&self);
        self.run(LockOp::Contenders, async move { lock.queues.first(&lock.path, number) })
    }

    fn holder_other_than(
        self: Arc<Self>,
        reported: Option<Option<i64>>,
    ) -> Pending<Option<Contender>, LockError> {
        let lock = Arc::clone(&self);
        self.run(
            LockOp::Holder,
            async move { lock.queues.first_other_than(&lock.path, reported).await },
        )
    }

    fn revoke(
        self: Arc<Self>,
        holder: Contender,
        revocation: Revocation,
    ) -> Pending<bool, LockError> {
        let lock = Arc::clone(&self);
        self.run(LockOp::Revoke, async move {
            let Some(claim) = lock.queues.holder(&lock.path, holder.token)? else {
                return Ok(false);
            };
            match revocation {
                Revocation::Ask { reason } => claim.requests.add(&one_line(&reason, MAX_TEXT)),
                Revocation::Break { grace, .. } => {
                    let leaving = Leaving { lock: Arc::clone(&lock), claim: Arc::clone(&claim) };
                    claim.set(Status::Over(LostReason::Broken));
                    // The grace goes on where this is dropped.
                    machine::drive(async move {
                        let Leaving { lock, claim } = &leaving;
                        or(lock.queues.gone(&lock.path, claim.token), Timer::after(grace)).await;
                    });
                    lock.queues.gone(&lock.path, claim.token).await;
                }
            }
            Ok(true)
        })
    }

    fn limit(self: Arc<Self>) -> Pending<u32, LockError> {
        let lock = Arc::clone(&self);
        self.run(
            LockOp::Limit,
            async move { Ok(lock.queues.limit(&lock.path)?.unwrap_or(lock.limit)) },
        )
    }

    fn set_limit(self: Arc<Self>, limit: u32) -> Pending<(), LockError> {
        let lock = LocalLock { limit, ..LocalLock::clone(&self) };
        let queues = Arc::clone(&self.queues);
        let path = Arc::clone(&self.path);
        lock.run(LockOp::SetLimit, async move { queues.set_limit(&path, limit) })
    }
}
