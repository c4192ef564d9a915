//! The end of a client: the request for it, and the wait until its session has ended.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::ClientInner;
use crate::error::{Code, Error, Result};
use crate::retry;
use crate::runtime::{Timer, Unfinished, now};

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

    /// Whether it is closed, and has nothing to do on a handle any more.
    #[cfg(feature = "capi")]
    pub(crate) fn is_over(&self) -> bool {
        self.status().over.is_some()
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

    /// As [`closed`](ClientInner::closed), for callers that need the session to be over.
    ///
    /// # Errors
    /// `CONNECTION_LOSS`: the session may live on, as that of a handle that went back to its program does.
    pub(crate) async fn closed_for_certain(self: &Arc<Self>) -> Result<()> {
        let _awaits = Arc::clone(&self.awaits_end);
        self.closed().await?;
        if self.given_back.load(Ordering::Acquire) {
            let why = "the handle went back to its program, and its session goes on";
            return Err(Error::with_detail("close", "", Code::CONNECTION_LOSS, why));
        }
        Ok(())
    }

    /// Waits until a session of this client is over. A request has reported that already.
    ///
    /// # Errors
    /// `CONNECTION_LOSS`: it may live on.
    pub(crate) async fn session_gone(self: &Arc<Self>, session: i64) -> Result<()> {
        let deadline = self.operation_deadline();
        loop {
            if self.is_closing() {
                return self.closed_for_certain().await;
            }
            // A session that was given up is ended in the background.
            if !self.left_behind.lock().iter().any(|left| left.session.id() == session) {
                return Ok(());
            }
            if deadline.is_some_and(|deadline| now() >= deadline) {
                let why = "no server has confirmed the end of its session";
                return Err(Error::with_detail("close", "", Code::CONNECTION_LOSS, why));
            }
            Timer::after(retry::LATER).await;
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
