//! One guard of several that stand for one claim.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_lite::future::{Boxed, or};
use parking_lot::Mutex;

use super::error::LockError;
use super::guard::Guard;
use super::loss::{GuardState, LostReason};
use super::op::ready;
use super::tenure::{StoreRef, Tenure};
use crate::runtime::{Latest, Pending, wake};

pub(super) trait Sharer: Send + 'static {
    fn turn(&self) -> u64 {
        0
    }

    fn holds(&self) -> usize {
        1
    }

    /// Gives it up; gives the store's guard if nobody else has a part in it.
    fn leave(self) -> Option<Guard>;
}

pub(super) struct SharedTenure<P> {
    tenure: Arc<dyn Tenure>,
    part: Mutex<Option<P>>,
    /// Why it ended, where that was before the end of the store's, or it was released after that.
    end: Latest<Option<LostReason>>,
}

impl<P: Sharer> SharedTenure<P> {
    /// A guard beside the store's, and what is to be [given](SharedTenure::give) the part that it stands for.
    pub(super) fn beside(guard: &Guard, asked: Instant) -> (Guard, Arc<SharedTenure<P>>) {
        let tenure = Arc::clone(guard.tenure());
        let end = Latest::new(None);
        let parts = Arc::new(SharedTenure { tenure, part: Mutex::default(), end });
        (guard.of_another_tenure(Arc::clone(&parts) as _, asked), parts)
    }

    pub(super) fn give(&self, part: P) {
        *self.part.lock() = Some(part);
    }

    /// Ends it; gives the store's guard if nobody else has a part in it.
    fn end(&self) -> Option<Guard> {
        let part = self.part.lock().take()?;
        // What is lost stays lost for that reason.
        let reason = self.tenure.ended().unwrap_or(LostReason::Released);
        self.end.update(|end| end.replace(reason).is_none());
        part.leave()
    }
}

impl<P: Sharer> Tenure for SharedTenure<P> {
    fn lock_path(&self) -> &str {
        self.tenure.lock_path()
    }

    fn claim_path(&self) -> Arc<str> {
        self.tenure.claim_path()
    }

    fn token(&self) -> i64 {
        self.tenure.token()
    }

    fn turn(&self) -> u64 {
        self.part.lock().as_ref().map_or(0, Sharer::turn)
    }

    fn holds(&self) -> usize {
        self.part.lock().as_ref().map_or(0, Sharer::holds)
    }

    fn state(&self) -> GuardState {
        if self.end.get().is_some() { GuardState::Lost } else { self.tenure.state() }
    }

    fn remaining(&self) -> Duration {
        if self.end.get().is_some() { Duration::ZERO } else { self.tenure.remaining() }
    }

    fn ended(&self) -> Option<LostReason> {
        self.end.get().or_else(|| self.tenure.ended())
    }

    fn changed(self: Arc<Self>) -> Boxed<()> {
        let (released, changed) = (self.end.listen(), Arc::clone(&self.tenure).changed());
        Box::pin(or(changed, async {
            wake::DeferredWake(released).await;
        }))
    }

    fn over(self: Arc<Self>) -> Boxed<LostReason> {
        let lost = Arc::clone(&self.tenure).over();
        let released = async move { self.end.wait_for(|end| *end).await };
        // Looked at first: where it was released before, the store's end is another's.
        Box::pin(or(released, lost))
    }

    fn request_other_than(self: Arc<Self>, seen: Option<Arc<str>>) -> Boxed<Option<Arc<str>>> {
        let asked = Arc::clone(&self.tenure).request_other_than(seen);
        let over = self.over();
        Box::pin(or(asked, async {
            over.await;
            None
        }))
    }

    fn release(self: Arc<Self>, _store: Option<StoreRef>) -> Pending<(), LockError> {
        let lost = self.tenure.ended();
        match self.end() {
            // It ends there, lost or not.
            Some(guard) => guard.release(),
            None => {
                let lost =
                    lost.map_or(Ok(()), |reason| Err(LockError::lost(self.lock_path(), reason)));
                ready(lost)
            }
        }
    }

    fn let_go(self: Arc<Self>) {
        drop(self.end());
    }

    fn as_any(&self) -> &dyn Any {
        self.tenure.as_any()
    }
}
