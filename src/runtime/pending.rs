//! The result of something under way: a future and a blocking receiver in one.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::{block_on, block_on_until};
use crate::error::{Code, Error, Result};
use crate::process::{INHERITED, Process};

/// The result of something under way. Await it, or [`wait`](Pending::wait) for it. It fails with the
/// client's [`Error`], or of a lock with a [`LockError`](crate::LockError).
///
/// # Cancellation
/// Dropping it forgets the result, not the request: what was submitted is still executed. Where
/// that would leave something behind (a lock's claim, a watch), the operation that returned it
/// says how it is cleaned up.
#[must_use = "the outcome is lost unless this is awaited or waited for"]
pub struct Pending<T, E = Error> {
    /// What is under way, and on which path: for the errors that are made here.
    op: &'static str,
    path: Arc<str>,
    /// Makes of those what the operation fails with.
    into_error: fn(Error) -> E,
    source: Source<T, E>,
    /// Where it will end.
    process: Process,
}

enum Source<T, E> {
    Ready(Option<Result<T, E>>),
    Reply(oneshot::AsyncReceiver<Result<T, E>>),
    Run(Pin<Box<dyn Future<Output = Result<T, E>> + Send>>),
}

impl<T> Pending<T> {
    pub(crate) fn ready(result: Result<T>) -> Pending<T> {
        Pending::ready_as(std::convert::identity, result)
    }

    pub(crate) fn reply(
        op: &'static str,
        path: Arc<str>,
        reply: oneshot::AsyncReceiver<Result<T>>,
    ) -> Pending<T> {
        Pending::new(op, path, std::convert::identity, Source::Reply(reply))
    }

    /// Runs a future when it is polled. It should have submitted its first request already.
    pub(crate) fn run(
        op: &'static str,
        path: &str,
        future: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Pending<T> {
        Pending::run_as(op, path, std::convert::identity, future)
    }
}

impl<T, E> Pending<T, E> {
    /// As [`ready`](Pending::ready), for an operation that fails with errors of its own.
    pub(crate) fn ready_as(into_error: fn(Error) -> E, result: Result<T, E>) -> Pending<T, E> {
        Pending::new("wait", Arc::default(), into_error, Source::Ready(Some(result)))
    }

    /// As [`run`](Pending::run), for an operation that fails with errors of its own.
    pub(crate) fn run_as(
        op: &'static str,
        path: impl Into<Arc<str>>,
        into_error: fn(Error) -> E,
        future: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Pending<T, E> {
        Pending::new(op, path.into(), into_error, Source::Run(Box::pin(future)))
    }

    fn new(
        op: &'static str,
        path: Arc<str>,
        into_error: fn(Error) -> E,
        source: Source<T, E>,
    ) -> Pending<T, E> {
        Pending { op, path, into_error, source, process: Process::this() }
    }

    /// Blocks this thread until the result is there.
    ///
    /// # Errors
    /// The operation's own.
    pub fn wait(self) -> Result<T, E> {
        block_on(self)
    }

    /// Blocks this thread until the result is there, but no longer than `timeout`; zero looks once.
    ///
    /// # Errors
    /// `OPERATION_TIMEOUT` when the time is over: the outcome is unknown then, see
    /// [Cancellation](Pending#cancellation). Of a lock's acquire it is the same as [when the acquire itself times
    /// out](crate::LockError::TimedOut): it is given up. Otherwise the operation's own.
    pub fn wait_timeout(self, timeout: Duration) -> Result<T, E> {
        let (op, path, into_error) = (self.op, Arc::clone(&self.path), self.into_error);
        // A time too far to name is no deadline.
        let deadline = Instant::now().checked_add(timeout);
        block_on_until(deadline, self).unwrap_or_else(|| {
            let detail = format!("no result within {timeout:?}");
            Err(into_error(Error::with_detail(op, &path, Code::OPERATION_TIMEOUT, detail)))
        })
    }
}

impl<T: Send + 'static, E: Send + 'static> Pending<T, E> {
    pub(crate) fn map<U: Send + 'static>(
        self,
        map: impl FnOnce(Result<T, E>) -> Result<U, E> + Send + 'static,
    ) -> Pending<U, E> {
        let (op, path, into_error) = (self.op, Arc::clone(&self.path), self.into_error);
        Pending::new(op, path, into_error, Source::Run(Box::pin(async move { map(self.await) })))
    }
}

// Nothing in it is pinned structurally.
impl<T, E> Unpin for Pending<T, E> {}

impl<T, E> Future for Pending<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, E>> {
        let this = &mut *self;
        if !this.process.is_this() {
            // Whoever answers it does so there.
            let error = Error::with_detail(this.op, &this.path, Code::CLOSING, INHERITED);
            return Poll::Ready(Err((this.into_error)(error)));
        }
        let error = |code| (this.into_error)(Error::new(this.op, &this.path, code));
        match &mut this.source {
            Source::Ready(result) => {
                Poll::Ready(result.take().unwrap_or_else(|| Err(error(Code::NOTHING))))
            }
            Source::Reply(reply) => Pin::new(reply).poll(cx).map(|reply| {
                // The sender answers always; should it ever be dropped instead, the request may
                // still have been executed.
                reply.unwrap_or_else(|_| Err(error(Code::CLOSING)))
            }),
            Source::Run(future) => future.as_mut().poll(cx),
        }
    }
}

impl<T, E> Drop for Pending<T, E> {
    fn drop(&mut self) {
        if !self.process.is_this() {
            // What it would give up is not ours.
            std::mem::forget(std::mem::replace(&mut self.source, Source::Ready(None)));
        }
    }
}

impl<T, E> std::fmt::Debug for Pending<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending")
            .field("op", &self.op)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
