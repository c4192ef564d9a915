//! The holders of a lock, one after the other.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use super::contender::Contender;
use super::error::LockError;
use super::store::StoredLock;
use crate::runtime::{Pending, block_on, block_on_until};

/// The holders of a lock as they change, from the present one on; `None` is nobody.
///
/// It gives the latest: a holder that came and went between two looks is left out. It costs one watch, and
/// a listing with each change.
///
/// # On connection loss
/// It goes on with the next connection or session, and keeps what it has reported.
///
/// # Cancellation
/// Dropping it, or [`next`](Holders::next), forgets nothing that was not reported.
pub struct Holders {
    lock: Arc<dyn StoredLock>,
    /// The token of the last that was reported, if any was.
    reported: Option<Option<i64>>,
    next: Option<Pending<Option<Contender>, LockError>>,
    failed: bool,
}

impl Holders {
    pub(super) fn new(lock: Arc<dyn StoredLock>) -> Holders {
        Holders { lock, reported: None, next: None, failed: false }
    }

    /// The holder, when that is another than was reported last; the first call gives the present one.
    ///
    /// # Errors
    /// As [`Lock::contenders`](super::Lock::contenders), but it waits for a server to answer. Another call tries again.
    pub async fn next(&mut self) -> Result<Option<Contender>, LockError> {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    /// Blocks this thread until the holder is another than was reported last.
    ///
    /// # Errors
    /// As [`next`](Holders::next).
    pub fn wait(&mut self) -> Result<Option<Contender>, LockError> {
        block_on(self.next())
    }

    /// As [`wait`](Holders::wait), but no longer than `timeout`: `None` when it has passed.
    pub fn wait_timeout(
        &mut self,
        timeout: Duration,
    ) -> Option<Result<Option<Contender>, LockError>> {
        block_on_until(Instant::now().checked_add(timeout), self.next())
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Contender>, LockError>> {
        let Holders { lock, reported, next, .. } = self;
        let next = next.get_or_insert_with(|| Arc::clone(lock).holder_other_than(*reported));
        let holder = ready!(Pin::new(next).poll(cx));
        self.next = None;
        if let Ok(holder) = &holder {
            self.reported = Some(holder.as_ref().map(|holder| holder.token));
        }
        Poll::Ready(holder)
    }
}

/// Ends after an error.
impl futures_core::Stream for Holders {
    type Item = Result<Option<Contender>, LockError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.failed {
            return Poll::Ready(None);
        }
        let holder = ready!(self.poll(cx));
        self.failed = holder.is_err();
        Poll::Ready(Some(holder))
    }
}

impl std::fmt::Debug for Holders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Holders")
            .field("path", &self.lock.path())
            .field("reported", &self.reported)
            .finish_non_exhaustive()
    }
}
