//! Taking a lock from its holder: by asking for it, or by breaking it.

use std::sync::Arc;
use std::time::Duration;

use futures_lite::future::{Boxed, or};
use futures_lite::stream;

use super::Lock;
use super::contender::Contender;
use super::error::LockError;
use super::guard::Guard;
use super::requests::Revocation;
use super::tenure::Tenure;
use crate::process::Process;
use crate::runtime::{Pending, Updates};

/// Why others ask the holder to release the lock: see [`Guard::release_requests`].
pub type ReleaseRequests = Updates<String>;

/// Of a holder that does not release its lock by itself. [`Contender`]s are found by [`holder`](Lock::holder) and
/// [`contenders`](Lock::contenders).
impl Lock {
    /// Asks a holder to release the lock. Nothing happens to it but that its guard says so
    /// ([`Guard::release_requests`]), with the reason: one line of up to 256 characters. A program that does not look there
    /// keeps the lock; `zklock run` ends its command. Gives `false` when that holder holds it no more.
    ///
    /// In ZooKeeper the request is a line in the claim's znode, so the session needs `WRITE` there; of a claim whose release
    /// will be [announced](crate::ClientOptions::announced_releases), in the lock's own.
    ///
    /// # Errors
    /// [`NotPermitted`](LockError::NotPermitted); [`Store`](LockError::Store) with `BAD_ARGUMENTS` for a claim of another
    /// library, which would not read it; [`OutcomeUnknown`](LockError::OutcomeUnknown) when no server has confirmed it
    /// within the client's operation timeout; otherwise as [`contenders`](Lock::contenders).
    ///
    /// # On connection loss
    /// It is repeated until it is certain.
    ///
    /// # Cancellation
    /// It may have been asked, or not.
    pub fn request_release(&self, holder: &Contender, reason: &str) -> Pending<bool, LockError> {
        let reason = reason.to_owned();
        self.shared().revoke(holder.clone(), Revocation::Ask { reason })
    }

    /// Breaks a holder's hold, and waits until its claim is gone. Gives `false` when it held the lock no more before.
    ///
    /// **The holder's guard is [`Lost`](crate::GuardState::Lost) before another can hold the lock**, with
    /// [`Broken`](crate::LostReason::Broken): it is the holder's own library that deletes the claim, after that, as soon
    /// as the program drops the guard, and when the grace is over in any case. From the loss on its [guarded
    /// writes](Guard::multi) fail, and whoever holds next has a larger [fencing token](Guard::fencing_token). So work that
    /// ends with its guard, as that of [`while_held`](Lock::while_held) and of `zklock run`, has ended before the next
    /// begins, if it ends within the grace.
    ///
    /// A holder that can't be reached can't break off either: it loses its session, within its session timeout. One that
    /// neither reads the order nor loses its session (its program is stuck in a callback that drives the session, or was
    /// made with an earlier version of this library) keeps this waiting: set a [limit](Pending::within). Then the claim
    /// can be deleted by hand, with what [`Guard`] says of that.
    ///
    /// In ZooKeeper the order is a line in the claim's znode, so the session needs `WRITE` there. It is read about 100 ms
    /// after the lock was acquired, at the earliest.
    ///
    /// # Errors
    /// As [`request_release`](Lock::request_release); [within](Pending::within) a limit, or where the store is closed or
    /// fails after the order was given, `OutcomeUnknown`: the hold may be broken later.
    ///
    /// # On connection loss
    /// It goes on until it is certain, also with the next session.
    ///
    /// # Cancellation
    /// The hold may be broken all the same.
    pub fn break_hold(
        &self,
        holder: &Contender,
        reason: &str,
        grace: Duration,
    ) -> Pending<bool, LockError> {
        let reason = reason.to_owned();
        self.shared().revoke(holder.clone(), Revocation::Break { reason, grace })
    }
}

/// A tenure, and the last request for it that was reported.
type Asked = (Arc<dyn Tenure>, Option<Arc<str>>);

/// The next request that was not reported, and for which of these; `None` once one of them is over.
async fn next_request(asked: &[Asked]) -> Option<(usize, Arc<str>)> {
    let next = |(at, (tenure, seen)): (usize, &Asked)| -> Boxed<_> {
        let request = Arc::clone(tenure).request_other_than(seen.clone());
        Box::pin(async move { Some((at, request.await?)) })
    };
    let next = asked.iter().enumerate().map(next);
    next.reduce(|first, second| Box::pin(or(first, second)))?.await
}

impl Guard {
    /// Why others ask for the lock to be released, as they [do](Lock::request_release): a stream, and a blocking
    /// receiver. It ends when the lock is lost or released. It neither holds the lock nor keeps its store open. The lock
    /// stays held, whatever is asked.
    ///
    /// ```no_run
    /// # async fn example(lock: zklock::Lock) -> Result<(), zklock::LockError> {
    /// let guard = lock.acquire().await?;
    /// if let Some(reason) = guard.release_requests().next().await {
    ///     println!("released for {reason}");
    ///     guard.release().await?;
    /// }
    /// # Ok(()) }
    /// ```
    pub fn release_requests(&self) -> ReleaseRequests {
        let tenures = match self.tenure().members() {
            [] => std::slice::from_ref(self.tenure()),
            members => members,
        };
        let asked: Vec<Asked> = tenures.iter().map(|tenure| (Arc::clone(tenure), None)).collect();
        let stream = stream::unfold(asked, |mut asked| async move {
            let (at, next) = next_request(&asked).await?;
            asked[at].1 = Some(Arc::clone(&next));
            Some((next.to_string(), asked))
        });
        Updates::silent_in_a_child(Process::this(), stream)
    }
}
