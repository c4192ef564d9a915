//! A guard of several locks.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use futures_lite::future::{Boxed, or};
use parking_lot::Mutex;

use super::error::LockError;
use super::guard::Guard;
use super::loss::{GuardState, LostReason};
use super::op::LockOp;
use super::tenure::{StoreRef, Tenure};
use crate::runtime::Pending;

/// Several tenures that are one: it is held while all of them are.
pub(super) struct Together {
    tenures: Vec<Arc<dyn Tenure>>,
    guards: Mutex<Vec<Guard>>,
}

impl Together {
    /// One guard for all of `guards`; `None` if there are none.
    pub(super) fn begin(guards: Vec<Guard>) -> Option<Guard> {
        let tenures = guards.iter().map(|guard| Arc::clone(guard.tenure())).collect();
        let together = Arc::new(Together { tenures, guards: Mutex::default() });
        let asked = guards.iter().map(Guard::asked).min()?;
        let guard = guards.first()?.of_another_tenure(Arc::clone(&together) as _, asked);
        *together.guards.lock() = guards;
        Some(guard)
    }

    fn first(&self) -> &dyn Tenure {
        &*self.tenures[0]
    }

    fn any_of<T: 'static>(&self, of: impl Fn(Arc<dyn Tenure>) -> Boxed<T>) -> Boxed<T> {
        let each = self.tenures.iter().map(|tenure| of(Arc::clone(tenure)));
        each.reduce(|first, second| Box::pin(or(first, second)))
            .unwrap_or_else(|| Box::pin(std::future::pending()))
    }
}

impl Tenure for Together {
    fn lock_path(&self) -> &str {
        self.first().lock_path()
    }

    fn claim_path(&self) -> Arc<str> {
        self.first().claim_path()
    }

    fn token(&self) -> i64 {
        self.first().token()
    }

    fn members(&self) -> &[Arc<dyn Tenure>] {
        &self.tenures
    }

    fn state(&self) -> GuardState {
        let mut worst = GuardState::Held;
        for tenure in &self.tenures {
            match tenure.state() {
                GuardState::Lost => return GuardState::Lost,
                GuardState::Suspended => worst = GuardState::Suspended,
                GuardState::Held => {}
            }
        }
        worst
    }

    fn remaining(&self) -> Duration {
        let remaining = self.tenures.iter().map(|tenure| tenure.remaining());
        remaining.min().unwrap_or_default()
    }

    fn ended(&self) -> Option<LostReason> {
        self.tenures.iter().find_map(|tenure| tenure.ended())
    }

    fn changed(self: Arc<Self>) -> Boxed<()> {
        self.any_of(Tenure::changed)
    }

    fn over(self: Arc<Self>) -> Boxed<LostReason> {
        self.any_of(Tenure::over)
    }

    /// Each of them is asked by itself.
    fn request_other_than(self: Arc<Self>, _seen: Option<Arc<str>>) -> Boxed<Option<Arc<str>>> {
        Box::pin(std::future::ready(None))
    }

    fn release(self: Arc<Self>, store: Option<StoreRef>) -> Pending<(), LockError> {
        let guards = std::mem::take(&mut *self.guards.lock());
        // All are submitted before any is waited for.
        let released: Vec<_> = guards.into_iter().map(Guard::release).collect();
        LockOp::Release.run(self.lock_path(), async move {
            let mut outcome = Ok(());
            for released in released {
                outcome = outcome.and(released.await);
            }
            drop(store);
            outcome
        })
    }

    fn let_go(self: Arc<Self>) {
        let guards = std::mem::take(&mut *self.guards.lock());
        drop(guards);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
