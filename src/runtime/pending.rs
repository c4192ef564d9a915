//! The result of an operation in flight: a future and a blocking receiver in one.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::timer::Timer;
use super::{block_on, block_on_until, continuation, machine};
use crate::error::{Code, Error, Result};
use crate::process::{INHERITED, Process};
use crate::scarcity;

/// The result of an operation in flight: `.await` it, or call [`wait`](Pending::wait) to block.
/// [`within`](Pending::within) limits the time. It fails with the client's [`Error`], or for locks with a
/// [`LockError`](crate::LockError).
///
/// The operation starts before the function that returns the `Pending` returns: what can be sent by then is sent.
/// Further steps, such as the next request of an acquire, happen while it is awaited or waited for.
///
/// # Cancel safety
/// Dropping it drops the result, not the request: what was submitted is still executed. If that would leave something
/// behind (a lock's claim, a watch), the operation says how it is cleaned up.
#[must_use = "the outcome is lost unless this is awaited or waited for"]
pub struct Pending<T, E = Error> {
    /// The operation and its path, for the errors that are made here.
    op: &'static str,
    path: Arc<str>,
    /// Turns those into the operation's type of error.
    into_error: fn(Error) -> E,
    source: Source<T, E>,
    /// How a thread blocks for what runs, if that may go on elsewhere.
    carried_on: Option<Wait<T, E>>,
    limit: Option<Limit>,
    late: Option<Arc<dyn Late<E>>>,
    /// Where it will end.
    process: Process,
}

enum Source<T, E> {
    Ready(Option<Result<T, E>>),
    Reply(oneshot::AsyncReceiver<Result<T, E>>),
    Run(Running<T, E>),
}

type Running<T, E> = continuation::Running<Result<T, E>>;
type Wait<T, E> =
    fn(Option<Instant>, Running<T, E>) -> std::result::Result<Result<T, E>, Running<T, E>>;

struct Limit {
    /// As the caller said it.
    duration: Duration,
    timer: Timer,
}

/// Describes an operation that has not ended in time.
pub(crate) trait Late<E>: Send + Sync {
    /// The error that it ends with then.
    fn error(&self, path: &str) -> E;
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

    /// Runs a future: up to where it first has to wait at once, from there on when it is polled.
    pub(crate) fn run(
        op: &'static str,
        path: &str,
        future: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Pending<T> {
        Pending::run_as(op, path, std::convert::identity, future)
    }
}

impl<T, E> Pending<T, E> {
    /// As [`ready`](Pending::ready), for an operation with another type of error.
    pub(crate) fn ready_as(into_error: fn(Error) -> E, result: Result<T, E>) -> Pending<T, E> {
        Pending::new("wait", Arc::default(), into_error, Source::Ready(Some(result)))
    }

    /// As [`run`](Pending::run), for an operation with another type of error.
    pub(crate) fn run_as(
        op: &'static str,
        path: impl Into<Arc<str>>,
        into_error: fn(Error) -> E,
        future: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Pending<T, E> {
        let mut future: Running<T, E> = Box::pin(future);
        let first = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let source = match first {
            Poll::Ready(result) => Source::Ready(Some(result)),
            Poll::Pending => Source::Run(future),
        };
        Pending::new(op, path.into(), into_error, source)
    }

    fn new(
        op: &'static str,
        path: Arc<str>,
        into_error: fn(Error) -> E,
        source: Source<T, E>,
    ) -> Pending<T, E> {
        let process = Process::this();
        Pending { op, path, into_error, source, carried_on: None, limit: None, late: None, process }
    }

    /// Fails with that error when a limit has passed.
    pub(crate) fn when_late(mut self, late: Arc<dyn Late<E>>) -> Pending<T, E> {
        self.late = Some(late);
        self
    }

    /// Describes it, if it does not end in time.
    pub(crate) fn late(&self) -> Option<Arc<dyn Late<E>>> {
        self.late.clone()
    }

    /// Limits the time from now on. When it has passed, the operation ends as if it were
    /// [dropped](Pending#cancel-safety), and fails. Of several limits the first to pass counts.
    ///
    /// # Errors
    /// - An operation of a client: `OPERATION_TIMEOUT`; the outcome is unknown.
    /// - An acquire: [`TimedOut`](crate::LockError::TimedOut), which names the contender ahead. It is cancelled, and
    ///   nothing is left behind.
    /// - A release or a guarded write: [`OutcomeUnknown`](crate::LockError::OutcomeUnknown). It continues.
    pub fn within(mut self, limit: Duration) -> Pending<T, E> {
        let limit = Limit { duration: limit, timer: Timer::after(limit) };
        if self.limit.as_ref().is_none_or(|other| limit.timer.is_before(&other.timer)) {
            self.limit = Some(limit);
        }
        self
    }

    /// Ends it, because that limit has passed.
    fn end_late(&mut self, limit: Duration) -> E {
        // Read before it is given up.
        let error = match &self.late {
            Some(late) => late.error(&self.path),
            None => {
                let detail = format!("no result within {limit:?}");
                let code = Code::OPERATION_TIMEOUT;
                (self.into_error)(Error::with_detail(self.op, &self.path, code, detail))
            }
        };
        self.source = Source::Ready(None);
        error
    }

    /// Blocks this thread until the result has arrived.
    ///
    /// # Errors
    /// The operation's own, and those of a [limit](Pending::within).
    pub fn wait(mut self) -> Result<T, E> {
        if let Some(wait) = self.carried_on.filter(|_| self.process.is_this()) {
            self.source = match std::mem::replace(&mut self.source, Source::Ready(None)) {
                Source::Run(future) => {
                    let until = self.limit.as_ref().and_then(|limit| limit.timer.time());
                    match wait(until, future) {
                        Ok(result) => return result,
                        Err(late) => Source::Run(late),
                    }
                }
                other => other,
            };
        }
        // This thread wakes by itself when the time is over.
        match self.limit.take() {
            None => block_on(self),
            Some(limit) => block_on_until(limit.timer.time(), &mut self)
                .unwrap_or_else(|| Err(self.end_late(limit.duration))),
        }
    }
}

impl<T: Send + 'static, E: Send + 'static> Pending<T, E> {
    /// While a thread blocks for it, the threads that bring the servers' answers run its steps. So it must run no code of
    /// other programs, and never block.
    pub(crate) fn carried_on(mut self) -> Pending<T, E> {
        self.carried_on = Some(continuation::wait);
        self
    }

    pub(crate) fn map<U: Send + 'static>(
        self,
        map: impl FnOnce(Result<T, E>) -> Result<U, E> + Send + 'static,
    ) -> Pending<U, E> {
        self.then(|result| std::future::ready(map(result)))
    }

    /// Goes on with the result: one operation, which knows of itself what the first part does.
    pub(crate) fn then<U: Send + 'static, F>(
        self,
        next: impl FnOnce(Result<T, E>) -> F + Send + 'static,
    ) -> Pending<U, E>
    where
        F: Future<Output = Result<U, E>> + Send + 'static,
    {
        let (op, path, into_error) = (self.op, Arc::clone(&self.path), self.into_error);
        let late = self.late.clone();
        let both = async move { next(self.await).await };
        let mut both = Pending::run_as(op, path, into_error, both);
        both.late = late;
        both
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
        let result = match &mut this.source {
            Source::Ready(result) => {
                Poll::Ready(result.take().unwrap_or_else(|| Err(error(Code::NOTHING))))
            }
            Source::Reply(reply) => Pin::new(reply).poll(cx).map(|reply| {
                // The sender answers always; should it ever be dropped instead, the request may
                // still have been executed.
                reply.unwrap_or_else(|_| Err(error(Code::CLOSING)))
            }),
            Source::Run(future) => future.as_mut().poll(cx),
        };
        match &mut this.limit {
            Some(limit) if result.is_pending() => {
                let driven = if limit.timer.is_waited_for() { Ok(()) } else { machine::start() };
                if let Err(why) = driven {
                    let why = scarcity::describe(&why);
                    let error = Error::with_detail(this.op, &this.path, Code::SYSTEM_ERROR, why);
                    return Poll::Ready(Err((this.into_error)(error)));
                }
                let duration = limit.duration;
                Pin::new(&mut limit.timer).poll(cx).map(|()| Err(this.end_late(duration)))
            }
            _ => result,
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
