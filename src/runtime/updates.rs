//! A stream of changes.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_core::Stream;

use super::{block_on, block_on_until};
use crate::process::Process;

/// No new value came in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing came in time")]
pub struct Timeout;

/// A value that changes: the present value first, then each value that differs from the one before.
///
/// It is a [`Stream`](futures_core::Stream) and a blocking receiver in one. It gives the latest value: values that come
/// and go between two looks may be left out, but never the last one. The function that returns it says what else it
/// leaves out and when it ends. If it gives results, it ends after an error.
///
/// It does no work and stores nothing while nobody reads it.
///
/// # Cancel safety
/// Dropping [`next`](Updates::next) early loses no value.
///
/// # In a child process
/// In a child made by `fork` it ends, usually after one last value that says that it does not work there.
#[must_use = "it does nothing unless it is looked at"]
pub struct Updates<T> {
    stream: Option<Pin<Box<dyn Stream<Item = T> + Send>>>,
    /// The last value in a child of the process that it works in.
    inherited: Option<T>,
    process: Process,
}

impl<T> Updates<T> {
    pub(crate) fn new(
        process: Process,
        inherited: T,
        stream: impl Stream<Item = T> + Send + 'static,
    ) -> Updates<T> {
        Updates { stream: Some(Box::pin(stream)), inherited: Some(inherited), process }
    }

    /// A stream that gives nothing in a child process.
    pub(crate) fn silent_in_a_child(
        process: Process,
        stream: impl Stream<Item = T> + Send + 'static,
    ) -> Updates<T> {
        Updates { stream: Some(Box::pin(stream)), inherited: None, process }
    }

    /// The next value. The first call gives the present one; `None` marks the end. Cancel safety: dropping it loses no
    /// value.
    pub async fn next(&mut self) -> Option<T> {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    /// Blocks this thread until the next value: see [`next`](Updates::next).
    pub fn wait(&mut self) -> Option<T> {
        block_on(self.next())
    }

    /// As [`wait`](Updates::wait), for at most `timeout`.
    ///
    /// # Errors
    /// [`Timeout`]: no other value came, and the stream has not ended.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<Option<T>, Timeout> {
        block_on_until(Instant::now().checked_add(timeout), self.next()).ok_or(Timeout)
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let Some(stream) = &mut self.stream else { return Poll::Ready(None) };
        let next = if self.process.is_this() {
            std::task::ready!(stream.as_mut().poll_next(cx))
        } else {
            // Another thread of the parent may have been inside of it.
            std::mem::forget(self.stream.take());
            return Poll::Ready(self.inherited.take());
        };
        if next.is_none() {
            self.stream = None;
        }
        Poll::Ready(next)
    }
}

impl<T> Drop for Updates<T> {
    fn drop(&mut self) {
        if !self.process.is_this() {
            std::mem::forget(self.stream.take());
        }
    }
}

// Nothing in it is pinned structurally.
impl<T> Unpin for Updates<T> {}

impl<T> Stream for Updates<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.poll(cx)
    }
}

impl<T> std::fmt::Debug for Updates<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Updates").field("ended", &self.stream.is_none()).finish_non_exhaustive()
    }
}
