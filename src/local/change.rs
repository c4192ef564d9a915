//! Turns a hold of a read/write lock into one of another kind.

use std::sync::Arc;

use futures_lite::future::or;
use parking_lot::Mutex;

use super::ahead::Ahead;
use super::queue::{Claim, Queues, Status};
use crate::error::Code;
use crate::lock::{Access, IS_BEING_CHANGED, Kind, LockError, LockOp, LostReason, ready};
use crate::runtime::Pending;

/// The claim of a hold, and its place.
pub(super) struct Claimed {
    pub(super) queues: Arc<Queues>,
    pub(super) lock: Arc<str>,
    pub(super) claim: Arc<Claim>,
}

/// The claim for an upgrade. It is withdrawn unless it gets the lock.
struct Waiting<'a> {
    of: &'a Claimed,
    claim: Option<Arc<Claim>>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(claim) = &self.claim {
            self.of.queues.withdraw(&self.of.lock, claim);
        }
    }
}

impl Claimed {
    /// The access that it leaves to others.
    pub(super) fn access(&self) -> Option<Access> {
        if self.queues.has_upgraded(&self.lock, &self.claim) {
            return Some(Access::Write);
        }
        Access::of(self.claim.kind())
    }

    pub(super) fn downgrade(&self, to: Access) -> Pending<(), LockError> {
        let kind = if to == Access::Read { Kind::Read } else { Kind::Upgradeable };
        let is_done = self.queues.turn_into(&self.lock, &self.claim, kind);
        if is_done { ready(Ok(())) } else { self.refused() }
    }

    fn refused(&self) -> Pending<(), LockError> {
        let refused = LockError::unusable(&self.lock, IS_BEING_CHANGED, Code::INVALID_STATE);
        ready(Err(refused))
    }

    /// Comes when it is over.
    pub(super) async fn over(&self) -> LostReason {
        let reason = |status: &Status| match status {
            Status::Over(reason) => Some(*reason),
            Status::Waits | Status::Holds => None,
        };
        self.claim.status.wait_for(reason).await
    }
}

/// Becomes a writer's; what is abandoned is taken back.
pub(super) fn upgrade(of: Arc<Claimed>) -> Pending<(), LockError> {
    let Some(claim) = of.queues.upgrade(&of.lock, &of.claim) else { return of.refused() };
    let (path, queues) = (Arc::clone(&of.lock), Arc::clone(&of.queues));
    let ahead = Arc::new(Ahead { queues, claim: Mutex::new(Some(Arc::clone(&claim))) });
    let upgraded = async move {
        let mut waiting = Waiting { of: &of, claim: Some(Arc::clone(&claim)) };
        let holds = |status: &Status| (*status == Status::Holds).then_some(());
        let lost = async { Err(LockError::not_held(&of.lock, of.over().await)) };
        let written = async {
            claim.status.wait_for(holds).await;
            Ok(())
        };
        or(lost, written).await?;
        waiting.claim = None;
        Ok(())
    };
    LockOp::Upgrade.run(path, upgraded).when_late(ahead)
}
