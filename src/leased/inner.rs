//! The locks and guards of a store share this: the way to the thread that works on its database.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::Duration;

use super::backlog::{Progress, Step};
use super::claim::Claim;
use super::database::{Cause, StepError};
use super::duties::Deleted;
use super::worker::{Shared, Work, Worker};
use crate::error::{Code, Error};
use crate::lock::{LockError, LockOp};
use crate::process::inherited;
use crate::runtime::{Unfinished, wake};

pub(super) struct Inner {
    pub(super) shared: Arc<Shared>,
    /// Empty once it is dropped.
    pub(super) steps: Option<Sender<Step<Work>>>,
}

impl Inner {
    /// Why nothing can be asked of it, if nothing can.
    pub(super) fn refusal(&self, op: LockOp, path: &str) -> Option<Error> {
        if !self.shared.process.is_this() {
            return Some(inherited(op.name(), path));
        }
        let is_closed = self.shared.is_closed.load(Ordering::Acquire);
        is_closed.then(|| Error::new(op.name(), path, Code::CLOSING))
    }

    /// Has something done that concerns no lock, or is never busy.
    pub(super) fn submit(&self, work: Work) {
        self.submit_on(Arc::default(), work);
    }

    fn submit_on(&self, lock: Arc<str>, work: Work) {
        if let Some(steps) = &self.steps {
            // Its thread is there as long as this is.
            let _ = steps.send(Step { lock, work });
        }
    }

    /// Others have changed something.
    pub(super) fn look(&self) -> bool {
        if !self.shared.is_look_queued.swap(true, Ordering::AcqRel) {
            self.submit(Box::new(|worker| {
                worker.shared.is_look_queued.store(false, Ordering::Release);
                worker.look_now();
                Progress::Done
            }));
        }
        true
    }

    /// Has something done by the store's thread on a lock, as often as others are at it. It is submitted before this
    /// returns.
    pub(super) fn ask<T: Send + 'static, W>(
        &self,
        lock: &Arc<str>,
        mut work: W,
    ) -> impl Future<Output = Result<T, StepError>> + Send + use<T, W>
    where
        W: FnMut(&mut Worker) -> Result<T, StepError> + Send + 'static,
    {
        let (send, answer) = oneshot::async_channel();
        let mut send = Some(send);
        let work = Box::new(move |worker: &mut Worker| {
            if send.as_ref().is_none_or(oneshot::Sender::is_closed) {
                return Progress::Done;
            }
            let done = work(worker);
            worker.shared.note(&done);
            match done {
                Err(failure) if failure.is(Cause::Busy) => Progress::Again,
                result => {
                    if let Some(send) = send.take() {
                        wake::send(send, result);
                    }
                    Progress::Done
                }
            }
        });
        self.submit_on(Arc::clone(lock), work);
        async move {
            let lost = || Err(StepError::new(Cause::Unknown, "the store's thread has ended"));
            answer.await.unwrap_or_else(|_| lost())
        }
    }

    /// Deletes a claim that is over, whether or not anybody waits for the answer.
    pub(super) fn release(&self, claim: &Arc<Claim>) -> oneshot::AsyncReceiver<Deleted> {
        let (send, answer) = oneshot::async_channel();
        let (claim, mut send) = (Arc::clone(claim), Some(send));
        let unfinished = Unfinished::begin();
        self.submit(Box::new(move |worker| {
            let _until_done = &unfinished;
            worker.release(&claim, Duration::ZERO, send.take());
            Progress::Done
        }));
        answer
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.shared.process.is_this() {
            // Another thread of the parent may have been inside of it.
            std::mem::forget(self.steps.take());
        }
    }
}

/// A database's answer, as an error.
pub(super) fn error_of(op: &'static str, path: &str, failure: StepError) -> Error {
    let code = match failure.cause {
        Cause::Busy => Code::OPERATION_TIMEOUT,
        Cause::Unknown => Code::CONNECTION_LOSS,
        Cause::SessionOver => Code::SESSION_EXPIRED,
        Cause::NotPermitted => Code::NO_AUTH,
        Cause::TooFewPermits | Cause::Unusable => Code::BAD_ARGUMENTS,
        Cause::Failed => Code::API_ERROR,
    };
    Error::with_detail(op, path, code, failure.why)
}

/// The meaning of a database's answer for a lock.
pub(super) fn refused(op: LockOp, path: &str, failure: StepError) -> LockError {
    match failure.cause {
        Cause::TooFewPermits | Cause::Unusable => {
            LockError::unusable(path, failure.why, Code::BAD_ARGUMENTS)
        }
        Cause::NotPermitted => LockError::not_permitted(path, failure.why),
        _ => LockError::store(path, error_of(op.name(), path, failure)),
    }
}

/// Of a write: whether it was done is not known where no answer came.
pub(super) fn unsure(error: LockError) -> LockError {
    match error {
        LockError::Store { path, source } if source.is_outcome_unknown() => {
            LockError::outcome_unknown(&path, source)
        }
        error => error,
    }
}
