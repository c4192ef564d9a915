//! A lock in a store of leases, for the face.

use std::any::Any;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_lite::future::or;

use super::acquire::{self, Ahead, late};
use super::backlog::Progress;
use super::database::{Cause, StepError};
use super::inner::{Inner, error_of, refused, unsure};
use super::spec::Spec;
use super::worker::Worker;
use crate::error::Code;
use crate::lock::{
    ACQUIRED, Change, Contender, Guard, Interop, LockError, LockOp, LockView, MAX_TEXT, NO_ACL,
    NO_OTHER_LIBRARIES, Revocation, StoredLock, Strategy, TAKEN, Tried, ready,
};
use crate::runtime::{Pending, Timer, wake};
use crate::text::one_line;

/// Somebody waits for a change of the database.
struct Watching<'a>(&'a Inner);

impl<'a> Watching<'a> {
    fn begin(inner: &'a Inner) -> Watching<'a> {
        inner.shared.watching.fetch_add(1, Ordering::AcqRel);
        inner.submit(Box::new(|worker| {
            worker.look_soon();
            Progress::Done
        }));
        Watching(inner)
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        self.0.shared.watching.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Spec {
    /// Runs an operation, unless there can be no such lock or the store is closed.
    fn run<T: Send + 'static>(
        &self,
        op: LockOp,
        work: impl Future<Output = Result<T, LockError>> + Send + 'static,
    ) -> Pending<T, LockError> {
        if let Err(why) = self.check() {
            let refused = LockError::unusable(&self.path, why, Code::BAD_ARGUMENTS);
            return ready(Err(refused));
        }
        match self.inner.refusal(op, &self.path) {
            None => op.run(Arc::clone(&self.path), work),
            Some(error) => {
                let closed = LockError::closed(&self.path, error);
                ready(Err(closed))
            }
        }
    }

    /// Has the database's thread do `work`. Fails if that takes longer than a lease.
    async fn ask<T: Send + 'static>(
        &self,
        op: LockOp,
        work: impl FnMut(&mut Worker) -> Result<T, StepError> + Send + 'static,
    ) -> Result<T, LockError> {
        if let Some(error) = self.inner.refusal(op, &self.path) {
            return Err(LockError::closed(&self.path, error));
        }
        let asked = self.inner.ask(&self.path, work);
        self.in_time(op, async { asked.await.map_err(|failure| refused(op, &self.path, failure)) })
            .await
    }

    /// Fails where a lease passes before it ends.
    async fn in_time<T>(
        &self,
        op: LockOp,
        work: impl Future<Output = Result<T, LockError>>,
    ) -> Result<T, LockError> {
        or(work, async {
            Timer::after(self.inner.shared.lease).await;
            let mut why = "the store has not answered for a whole lease".to_owned();
            if let Some(more) = self.inner.shared.why_late() {
                why = format!("{why}; {more}");
            }
            let late = StepError::new(Cause::Busy, why);
            Err(LockError::store(&self.path, error_of(op.name(), &self.path, late)))
        })
        .await
    }

    /// Looks until that gives something, whenever the database has changed.
    async fn watch<T, F>(&self, mut look: impl FnMut() -> F) -> Result<T, LockError>
    where
        F: Future<Output = Result<Option<T>, LockError>>,
    {
        let _watching = Watching::begin(&self.inner);
        loop {
            let change = self.inner.shared.changes.listen();
            match look().await {
                Ok(None) => {}
                // It is not answered in time, but may be later.
                Err(error) if error.is_timeout() => {}
                Ok(Some(found)) => return Ok(found),
                Err(error) => return Err(error),
            }
            wake::DeferredWake(change).await;
        }
    }
}

impl StoredLock for Spec {
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
        let ahead = Arc::new(Ahead::of(&self.inner));
        let (lock, trace, late) = (Arc::clone(&self), self.trace(), Arc::clone(&ahead));
        let acquired = async move {
            let acquired = acquire::acquire(lock, ahead, &trace).await;
            trace.ended(&acquired, |_| ACQUIRED);
            acquired
        };
        self.run(LockOp::Acquire, acquired).when_late(late)
    }

    fn try_acquire(self: Arc<Self>) -> Pending<Tried<Guard>, LockError> {
        let (lock, trace) = (Arc::clone(&self), self.trace());
        self.run(LockOp::Acquire, async move {
            let trying = acquire::try_acquire(Arc::clone(&lock), &trace);
            let over = async {
                Timer::after(lock.inner.shared.lease).await;
                Err(late(&lock.inner.shared, &lock.path, None))
            };
            let tried = or(trying, over).await;
            trace.ended(&tried, |tried| if tried.is_ok() { ACQUIRED } else { TAKEN });
            tried
        })
    }

    fn view(self: Arc<Self>) -> Arc<dyn LockView> {
        self
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl LockView for Spec {
    fn contenders(self: Arc<Self>, number: usize) -> Pending<Vec<Contender>, LockError> {
        let lock = Arc::clone(&self);
        self.run(LockOp::Contenders, async move {
            let path = Arc::clone(&lock.path);
            lock.ask(LockOp::Contenders, move |worker| worker.database.contenders(&path, number))
                .await
        })
    }

    fn holder_other_than(
        self: Arc<Self>,
        reported: Option<Option<i64>>,
    ) -> Pending<Option<Contender>, LockError> {
        let lock = Arc::clone(&self);
        self.run(LockOp::Holder, async move {
            let look = || async {
                let path = Arc::clone(&lock.path);
                let look = move |worker: &mut Worker| worker.database.contenders(&path, 1);
                let first = lock.ask(LockOp::Holder, look).await?.into_iter().next();
                let is_other = reported != Some(first.as_ref().map(|first| first.token));
                Ok(is_other.then_some(first))
            };
            lock.watch(look).await
        })
    }

    fn revoke(
        self: Arc<Self>,
        holder: Contender,
        revocation: Revocation,
    ) -> Pending<bool, LockError> {
        let lock = Arc::clone(&self);
        let number = holder.token;
        let is_final = matches!(revocation, Revocation::Break { .. });
        let revocation = match revocation {
            Revocation::Ask { reason } => Revocation::Ask { reason: one_line(&reason, MAX_TEXT) },
            broken @ Revocation::Break { .. } => broken,
        };
        self.run(LockOp::Revoke, async move {
            let path = Arc::clone(&lock.path);
            let write = move |worker: &mut Worker| {
                let is_held = worker.database.revoke(&path, number, &revocation)?;
                // It may be a claim of this store.
                worker.check_wants();
                Ok(is_held)
            };
            let is_held = lock.ask(LockOp::Revoke, write).await.map_err(unsure)?;
            if !is_held || !is_final {
                return Ok(is_held);
            }
            let gone = || async {
                let path = Arc::clone(&lock.path);
                let look = move |worker: &mut Worker| worker.database.is_there(&path, number);
                let there = lock.ask(LockOp::Revoke, look).await?;
                Ok((!there).then_some(true))
            };
            lock.watch(gone).await.map_err(LockError::after_a_write)
        })
    }

    fn limit(self: Arc<Self>) -> Pending<u32, LockError> {
        let lock = Arc::clone(&self);
        self.run(LockOp::Limit, async move {
            let path = Arc::clone(&lock.path);
            let limit = lock.ask(LockOp::Limit, move |worker| worker.database.limit(&path)).await?;
            Ok(limit.unwrap_or(lock.limit))
        })
    }

    fn set_limit(self: Arc<Self>, limit: u32) -> Pending<(), LockError> {
        let lock = Spec { limit, ..Spec::clone(&self) };
        let setting = lock.clone();
        lock.run(LockOp::SetLimit, async move {
            let path = Arc::clone(&setting.path);
            let set = move |worker: &mut Worker| {
                worker.database.set_limit(&path, limit)?;
                worker.look_at_lock(&path);
                Ok(())
            };
            setting.ask(LockOp::SetLimit, set).await.map_err(unsure)
        })
    }
}
