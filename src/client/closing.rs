//! The end of a client: the request for it, and the wait until its session has ended.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::ClientInner;
use crate::error::Result;
use crate::runtime::Unfinished;

impl ClientInner {
    pub(super) fn request_close(&self) {
        if !self.closing.swap(true, Ordering::AcqRel) && !self.is_inherited() {
            *self.ending.lock() = Some(Unfinished::begin());
        }
        self.wake();
    }

    /// As [`request_close`](ClientInner::request_close), and waits as [`closed`](ClientInner::closed) does.
    pub(super) fn close(self: &Arc<Self>) -> impl Future<Output = Result<()>> + Send + use<> {
        let (awaits, closed) = (Arc::clone(&self.awaits_end), self.closed());
        self.request_close();
        async move {
            let _awaits = awaits;
            closed.await
        }
    }

    /// Whether somebody has asked for the end of the client.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Whether somebody wants to know that its end is committed.
    pub(super) fn is_end_awaited(&self) -> bool {
        Arc::strong_count(&self.awaits_end) > 1
    }

    /// Waits until the client is closed, and its session has ended.
    ///
    /// # Errors
    /// `CONNECTION_LOSS`: no server has confirmed that in time.
    pub(crate) fn closed(self: &Arc<Self>) -> impl Future<Output = Result<()>> + Send + use<> {
        let inner = Arc::clone(self);
        async move {
            if inner.is_inherited() {
                return Ok(());
            }
            inner.status.wait_for(|status| status.over.clone()).await
        }
    }

    /// The client is closed; `ended` says whether its session is over, too.
    pub(super) fn set_over(&self, ended: Result<()>) {
        self.status.update(|status| {
            status.over = Some(ended);
            true
        });
        drop(self.ending.lock().take());
    }
}
