//! One turn at a lock that its store's guard goes round for.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use futures_lite::future::{Boxed, or};
use parking_lot::Mutex;

use super::line::{Round, Turn};
use crate::lock::error::LockError;
use crate::lock::guard::Guard;
use crate::lock::loss::{GuardState, LostReason};
use crate::lock::tenure::{StoreRef, Tenure};
use crate::runtime::{Latest, Pending, wake};

pub(super) struct LocalTenure {
    /// The store's.
    tenure: Arc<dyn Tenure>,
    /// How many have held with it before.
    number: u64,
    turn: Mutex<Option<Turn>>,
    is_released: Latest<bool>,
}

impl LocalTenure {
    /// A guard for that turn in the round.
    pub(super) fn begin(turn: Turn, mut round: Round) -> Guard {
        let number = round.turns;
        round.turns += 1;
        round.unlooked = round.unlooked.saturating_add(1);
        let tenure = Arc::clone(round.guard.tenure());
        let is_released = Latest::new(false);
        let local = Arc::new(LocalTenure { tenure, number, turn: Mutex::default(), is_released });
        let guard = round.guard.of_another_tenure(Arc::clone(&local) as _);
        *local.turn.lock() = Some(turn.holds(round));
        guard
    }

    /// Ends it; gives the store's guard if nobody else of the process waits for it.
    fn end(&self) -> Option<Guard> {
        let turn = self.turn.lock().take()?;
        self.is_released.update(|is_released| !std::mem::replace(is_released, true));
        turn.pass().round.map(|round| round.guard)
    }
}

impl Tenure for LocalTenure {
    fn path(&self) -> &str {
        self.tenure.path()
    }

    fn token(&self) -> i64 {
        self.tenure.token()
    }

    fn turn(&self) -> u64 {
        self.number
    }

    fn state(&self) -> GuardState {
        if self.is_released.get() { GuardState::Lost } else { self.tenure.state() }
    }

    fn remaining(&self) -> Duration {
        if self.is_released.get() { Duration::ZERO } else { self.tenure.remaining() }
    }

    fn ended(&self) -> Option<LostReason> {
        if self.is_released.get() { Some(LostReason::Released) } else { self.tenure.ended() }
    }

    fn changed(self: Arc<Self>) -> Boxed<()> {
        let (released, changed) = (self.is_released.listen(), Arc::clone(&self.tenure).changed());
        Box::pin(or(changed, async {
            wake::DeferredWake(released).await;
        }))
    }

    fn over(self: Arc<Self>) -> Boxed<LostReason> {
        let lost = Arc::clone(&self.tenure).over();
        let released = async move {
            let reason = |is_released: &bool| is_released.then_some(LostReason::Released);
            self.is_released.wait_for(reason).await
        };
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
                let lost = lost.map_or(Ok(()), |reason| Err(LockError::lost(self.path(), reason)));
                Pending::ready_as(LockError::of_pending, lost)
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
