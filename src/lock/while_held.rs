//! Work that is done while a lock is held, and at no other time.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::Lock;
use super::error::LockError;
use super::guard::{Guard, LostSignal};
use super::loss::LostReason;
use super::op::ready;
use crate::error::recognisable;
use crate::runtime::{Pending, block_on};

impl Lock {
    /// Acquires the lock, does the work, and releases the lock when the work ends. The acquire starts before this
    /// returns, as in [`acquire`](Lock::acquire). To limit the wait, acquire [within](Pending::within) a limit and call
    /// [`Guard::while_held`].
    ///
    /// **The work ends before another client can hold the lock**: when the lock is lost, the future of the work is
    /// dropped at its current `await`. Work that computes or blocks its thread can only end itself. Let it check
    /// [`Guard::is_lost`] before each step that matters, or use [fencing tokens](Guard::fencing_token). If another
    /// client deletes the znode by hand, the holder finds out only afterwards: see [`Guard::lost`].
    ///
    /// ```no_run
    /// # async fn example(zk: zklock::Client) -> Result<(), zklock::LockError> {
    /// let lock = zk.lock("/services/billing");
    /// let billed = lock.while_held(|guard| async move { bill(guard.fencing_token()).await }).await?;
    /// println!("{billed} customers");
    /// # Ok(()) }
    /// # async fn bill(token: i64) -> u32 { 0 }
    /// ```
    ///
    /// Work that outlives the future is not stopped: a task that the work spawns (`tokio::spawn`) or a thread continues
    /// after the loss. Keep such work inside the future, or pass it [`guard.lost()`](Guard::lost):
    ///
    /// ```no_run
    /// # async fn example(lock: zklock::Lock) -> Result<(), zklock::WhileHeldError<()>> {
    /// lock.while_held(|guard| async move {
    ///     let lost = guard.lost();
    ///     std::thread::spawn(move || {
    ///         while lost.get().is_none() {
    ///             // one step; nothing but this check stops the thread
    ///         }
    ///     });
    ///     serve().await;
    /// })
    /// .await
    /// # }
    /// # async fn serve() {}
    /// ```
    ///
    /// The result is that of the work. The release continues in the background.
    ///
    /// # Errors
    /// - [`NotStarted`](WhileHeldError::NotStarted): the lock was not acquired, for a reason of
    ///   [`acquire`](Lock::acquire). Nothing was done.
    /// - [`Lost`](WhileHeldError::Lost): the lock was lost after the work started. Either the work was dropped, or it
    ///   ended too late and the error has its result.
    ///
    /// # Cancel safety
    /// Dropping it drops the work, then releases the lock. The work may be done in part.
    pub fn while_held<W, F>(&self, work: W) -> WhileHeld<W, F>
    where
        W: FnOnce(Arc<Guard>) -> F,
        F: Future,
    {
        WhileHeld { course: Course::Acquiring(self.acquire()), work: Some(work) }
    }

    /// As [`while_held`](Lock::while_held), for work that blocks. The work runs on this thread, and only it can end
    /// itself: [`Guard::lost`] and [`Guard::states`] report when it should.
    ///
    /// # Errors
    /// As [`while_held`](Lock::while_held). [`Lost`](WhileHeldError::Lost) always has the result.
    pub fn while_held_blocking<T>(
        &self,
        work: impl FnOnce(&Guard) -> T,
    ) -> Result<T, WhileHeldError<T>> {
        let guard = self.acquire().wait().map_err(WhileHeldError::NotStarted)?;
        let done = work(&guard);
        match guard.lost().get() {
            Some(reason) => Err(WhileHeldError::lost(&guard, reason, Some(done))),
            None => Ok(done),
        }
    }
}

impl Guard {
    /// As [`Lock::while_held`], for a lock that is already held.
    pub fn while_held<W, F>(self, work: W) -> WhileHeld<W, F>
    where
        W: FnOnce(Arc<Guard>) -> F,
        F: Future,
    {
        let acquired = ready(Ok(self));
        WhileHeld { course: Course::Acquiring(acquired), work: Some(work) }
    }
}

/// Why work was not done under a lock from beginning to end: see [`Lock::while_held`].
///
/// `?` converts it to a [`LockError`], without the result.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum WhileHeldError<T> {
    /// The lock was not acquired, or was lost at once. Nothing was done; a retry is safe.
    #[error("{0}")]
    NotStarted(#[source] LockError),
    /// The lock was lost after the work started. Another holder may have worked at the same time.
    #[error(
        "work under {}: the lock was lost {}: {reason}",
        path.escape_debug(),
        if result.is_some() { "before the work ended" } else { "and the work stopped half-way" }
    )]
    Lost {
        /// The path of the lock: [`Guard::path`].
        path: String,
        /// Why it was lost.
        reason: LostReason,
        /// The result of the work, if it ended. `None` if it was dropped.
        result: Option<T>,
    },
}

impl<T> WhileHeldError<T> {
    fn lost(guard: &Guard, reason: LostReason, result: Option<T>) -> WhileHeldError<T> {
        WhileHeldError::Lost { path: recognisable(guard.path()), reason, result }
    }
}

impl<T> From<WhileHeldError<T>> for LockError {
    fn from(error: WhileHeldError<T>) -> LockError {
        match error {
            WhileHeldError::NotStarted(error) => error,
            WhileHeldError::Lost { path, reason, .. } => LockError::Lost { path, reason },
        }
    }
}

impl<T> std::fmt::Debug for WhileHeldError<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WhileHeldError({self})")
    }
}

/// Work that is done while a lock is held: see [`Lock::while_held`].
#[must_use = "nothing is done unless this is awaited or waited for"]
pub struct WhileHeld<W, F> {
    course: Course<F>,
    work: Option<W>,
}

impl<W, F> WhileHeld<W, F>
where
    W: FnOnce(Arc<Guard>) -> F,
    F: Future,
{
    /// Blocks this thread until the work is done. The work runs on this thread.
    ///
    /// # Errors
    /// As [`Lock::while_held`].
    pub fn wait(self) -> Result<F::Output, WhileHeldError<F::Output>> {
        block_on(self)
    }
}

// What is pinned is in a box.
impl<W, F> Unpin for WhileHeld<W, F> {}

impl<W, F> Future for WhileHeld<W, F>
where
    W: FnOnce(Arc<Guard>) -> F,
    F: Future,
{
    type Output = Result<F::Output, WhileHeldError<F::Output>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let WhileHeld { course, work } = &mut *self;
        course.poll(cx, |guard| work.take().map(|work| work(guard)))
    }
}

impl<W, F> std::fmt::Debug for WhileHeld<W, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WhileHeld").finish_non_exhaustive()
    }
}

pub(super) enum Course<F> {
    Acquiring(Pending<Guard, LockError>),
    Working(Working<F>),
    Over,
}

pub(super) struct Working<F> {
    // In this order they are dropped: the lock is released when the work is gone.
    work: Pin<Box<F>>,
    lost: LostSignal,
    guard: Held,
}

/// Releases the lock when it is dropped, also where the work has kept the guard.
struct Held(Arc<Guard>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.let_go();
    }
}

impl<F: Future> Course<F> {
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        start: impl FnOnce(Arc<Guard>) -> Option<F>,
    ) -> Poll<Result<F::Output, WhileHeldError<F::Output>>> {
        if let Course::Acquiring(acquire) = self {
            let acquired = ready!(Pin::new(acquire).poll(cx));
            *self = Course::Over;
            let guard = Held(Arc::new(acquired.map_err(WhileHeldError::NotStarted)?));
            let lost = guard.0.lost();
            if let Some(reason) = lost.get() {
                let error = LockError::not_held(guard.0.path(), reason);
                return Poll::Ready(Err(WhileHeldError::NotStarted(error)));
            }
            if let Some(work) = start(Arc::clone(&guard.0)) {
                *self = Course::Working(Working { work: Box::pin(work), lost, guard });
            }
        }
        let ended = match self {
            Course::Working(working) => ready!(working.poll(cx)),
            // It has given its result.
            Course::Acquiring(_) | Course::Over => return Poll::Pending,
        };
        *self = Course::Over;
        Poll::Ready(ended)
    }
}

impl<F: Future> Working<F> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<F::Output, WhileHeldError<F::Output>>> {
        // It wakes when the lock is lost. But before each step of the work the clock decides: the process may have
        // stood still since the last one.
        let _ = Pin::new(&mut self.lost).poll(cx);
        let guard = &self.guard.0;
        if let Some(reason) = self.lost.get() {
            return Poll::Ready(Err(WhileHeldError::lost(guard, reason, None)));
        }
        let done = ready!(self.work.as_mut().poll(cx));
        Poll::Ready(match self.lost.get() {
            Some(reason) => Err(WhileHeldError::lost(guard, reason, Some(done))),
            None => Ok(done),
        })
    }
}
