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

/// The reasons of others for a release: see [`Guard::release_requests`].
pub type ReleaseRequests = Updates<String>;

/// Taking a lock from its holder. Find the [`Contender`] with [`holder`](Lock::holder) or
/// [`contenders`](Lock::contenders).
impl Lock {
    /// Asks a holder to release the lock, with a reason: one line of up to 256 characters. Gives `false` if that holder
    /// no longer holds the lock. The holder's guard reports the request ([`Guard::release_requests`]). A program that
    /// does not check keeps the lock; `zklock run` ends its command.
    ///
    /// In ZooKeeper the request is a line in the claim's znode, so the session needs `WRITE` there. With [announced
    /// releases](crate::ClientOptions::announced_releases), the line is in the lock's znode.
    ///
    /// # Errors
    /// - [`NotPermitted`](LockError::NotPermitted): a permission is missing.
    /// - [`Store`](LockError::Store) with `BAD_ARGUMENTS`: the claim is another library's, which would not read the
    ///   request.
    /// - [`OutcomeUnknown`](LockError::OutcomeUnknown): no server confirmed it within the client's operation timeout.
    /// - Otherwise as [`contenders`](Lock::contenders).
    ///
    /// # On connection loss
    /// It is repeated until the outcome is certain.
    ///
    /// # Cancel safety
    /// If it is dropped, the holder may or may not be asked.
    pub fn request_release(&self, holder: &Contender, reason: &str) -> Pending<bool, LockError> {
        let reason = reason.to_owned();
        self.shared().view().revoke(holder.clone(), Revocation::Ask { reason })
    }

    /// Takes the lock from a holder and waits until its claim is gone. Gives `false` if that holder no longer held the
    /// lock.
    ///
    /// **The holder's guard is [`Lost`](crate::GuardState::Lost) before another client can hold the lock**, for the
    /// reason [`Broken`](crate::LostReason::Broken). The holder's own library deletes the claim after that: as soon as
    /// the program drops the guard, or when the grace is over. From the loss on, its [guarded writes](Guard::multi)
    /// fail, and the next holder has a larger [fencing token](Guard::fencing_token). Work that ends with its guard
    /// ([`while_held`](Lock::while_held), `zklock run`) ends before the next holder's begins, if it ends within the
    /// grace.
    ///
    /// A holder that cannot be reached loses its session within its session timeout. A holder that neither reads the
    /// order nor loses its session keeps this waiting: its program is stuck in a callback, or uses an earlier version
    /// of this library. So set a [limit](Pending::within). As a last resort, delete the claim by hand; [`Guard`] says
    /// what that means.
    ///
    /// In ZooKeeper the order is a line in the claim's znode, so the session needs `WRITE` there. A holder reads it at
    /// the earliest about 100 ms after its acquire.
    ///
    /// # Errors
    /// As [`request_release`](Lock::request_release). [`OutcomeUnknown`](crate::LockError::OutcomeUnknown) after a
    /// [limit](Pending::within), or if the store is closed or fails after the order was given: the hold may still be
    /// broken later.
    ///
    /// # On connection loss
    /// It continues until the outcome is certain, also in the next session.
    ///
    /// # Cancel safety
    /// If it is dropped, the hold may still be broken.
    pub fn break_hold(
        &self,
        holder: &Contender,
        reason: &str,
        grace: Duration,
    ) -> Pending<bool, LockError> {
        let reason = reason.to_owned();
        self.shared().view().revoke(holder.clone(), Revocation::Break { reason, grace })
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
    /// The reasons of other clients that [ask](Lock::request_release) for a release: a stream and a blocking receiver.
    /// It ends when the lock is lost or released. It neither holds the lock nor keeps its store open. Requests do not
    /// end the hold.
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
