//! The acquire loop of a store of leases.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::claim::{Claim, Status};
use super::database::Cause;
use super::inner::{Inner, refused};
use super::spec::Spec;
use super::tenure::Tenure;
use super::worker::Shared;
use crate::lock::{AcquireTrace, Caller, Contender, Guard, LockError, LockOp, LostReason};
use crate::runtime::{Late, Timer};

/// Before a claim is looked up that may have been made, or made again.
const PAUSE: Duration = Duration::from_millis(10);

/// The contender ahead of an acquire, and what is wrong with the store: for its error when it has not ended in time.
pub(super) struct Ahead {
    shared: Arc<Shared>,
    claim: Mutex<Option<Arc<Claim>>>,
}

impl Ahead {
    pub(super) fn of(inner: &Inner) -> Ahead {
        Ahead { shared: Arc::clone(&inner.shared), claim: Mutex::default() }
    }
}

impl Late<LockError> for Ahead {
    fn error(&self, path: &str) -> LockError {
        let claim = self.claim.lock().clone();
        late(&self.shared, path, claim.and_then(|claim| claim.ahead.lock().clone()))
    }
}

/// The error of an acquire that was too late.
pub(super) fn late(shared: &Shared, path: &str, ahead: Option<Contender>) -> LockError {
    let mut error = LockError::timed_out(path, ahead);
    if let LockError::TimedOut { why, .. } = &mut error {
        *why = shared.why_late();
    }
    error
}

/// A claim that does not hold yet. Unless it gets the lock it is deleted, even if its creation is unconfirmed.
struct Unsettled {
    inner: Arc<Inner>,
    claim: Option<Arc<Claim>>,
}

impl Unsettled {
    fn begin(inner: &Arc<Inner>, claim: &Arc<Claim>) -> Unsettled {
        Unsettled { inner: Arc::clone(inner), claim: Some(Arc::clone(claim)) }
    }
}

impl Drop for Unsettled {
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take().filter(|_| self.inner.shared.process.is_this()) {
            claim.set(Status::Over(LostReason::Released));
            drop(self.inner.release(&claim));
        }
    }
}

/// Waits until it holds.
pub(super) async fn acquire(
    lock: Arc<Spec>,
    ahead: Arc<Ahead>,
    trace: &AcquireTrace,
) -> Result<Guard, LockError> {
    let caller = Caller::present();
    loop {
        let claim = caller.acts(|| lock.new_claim());
        *ahead.claim.lock() = Some(Arc::clone(&claim));
        let mut unsettled = Unsettled::begin(&lock.inner, &claim);
        if !make(&lock, &claim, false).await? {
            continue;
        }
        let holds = |status: &Status| match status {
            Status::Waits => None,
            Status::Holds => Some(true),
            Status::Over(_) => Some(false),
        };
        if claim.status.wait_for(holds).await {
            unsettled.claim = None;
            return Ok(guard(&lock.inner, claim, trace));
        }
        // Its session is over, or somebody has deleted it: a closed store says so at the next claim.
    }
}

/// Acquires it, or gives who is ahead.
pub(super) async fn try_acquire(
    lock: Arc<Spec>,
    trace: &AcquireTrace,
) -> Result<Result<Guard, Option<Contender>>, LockError> {
    let caller = Caller::present();
    loop {
        let claim = caller.acts(|| lock.new_claim());
        let mut unsettled = Unsettled::begin(&lock.inner, &claim);
        if !make(&lock, &claim, true).await? {
            let is_blocked = claim.place().is_none() && !claim.is_over();
            if is_blocked {
                unsettled.claim = None;
                return Ok(Err(claim.ahead.lock().take()));
            }
            continue;
        }
        if claim.status.get() == Status::Holds {
            unsettled.claim = None;
            return Ok(Ok(guard(&lock.inner, claim, trace)));
        }
    }
}

/// Makes a claim. `false`: it was not made, or its session is over.
async fn make(lock: &Spec, claim: &Arc<Claim>, unless_blocked: bool) -> Result<bool, LockError> {
    loop {
        if let Some(error) = lock.inner.refusal(LockOp::Acquire, &lock.path) {
            return Err(LockError::closed(&lock.path, error));
        }
        let made = Arc::clone(claim);
        let asked = lock.inner.ask(&lock.path, move |worker| {
            if made.is_over() {
                // Given up before its turn came.
                return Ok(false);
            }
            worker.claim(&made, unless_blocked)
        });
        match asked.await {
            Ok(made) => return Ok(made),
            // It is looked up by its id, in the step that would make it.
            Err(failure) if failure.is(Cause::Unknown) => {}
            Err(failure) if failure.is(Cause::SessionOver) => {
                claim.set(Status::Over(LostReason::Session));
                Timer::after(PAUSE).await;
                return Ok(false);
            }
            Err(failure) => return Err(refused(LockOp::Acquire, &lock.path, failure)),
        }
        Timer::after(PAUSE).await;
    }
}

fn guard(inner: &Arc<Inner>, claim: Arc<Claim>, trace: &AcquireTrace) -> Guard {
    claim.trace(trace);
    let store = Arc::clone(inner);
    Guard::new(Tenure::begin(inner, claim), store, trace.started)
}
