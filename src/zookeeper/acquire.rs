//! The acquire loop: the one place that owns the deadline, the recovery after a lost reply, the
//! loss of a session and the end of a claim. Strategies only say where the claim stands.

use std::sync::Arc;
use std::time::Instant;

use super::acquired::Acquired;
use super::attempt::{AFTER_TROUBLE, Attempt, ClaimStatus};
use super::refusal::refused;
use super::seen_ahead::SeenAhead;
use super::spec::Spec;
use super::{poll, queue, watch};
use crate::client::TrustedSession;
use crate::error::Result;
use crate::lock::{Contender, LockError, Strategy};
use crate::logging::log;
use crate::runtime::{Late, Timer, within};

/// Acquires the lock.
///
/// Wherever this future is dropped, the claim goes with it and deletes what it has, or may have,
/// on the server.
pub(super) async fn acquire(
    spec: &Arc<Spec>,
    ahead: &Arc<SeenAhead>,
) -> Result<Acquired, LockError> {
    let mut attempt = Attempt::new(spec, false, Arc::clone(ahead));
    let acquired = contend(spec, &mut attempt).await?;
    acquired.ok_or_else(|| ahead.error(&spec.path))
}

/// Acquires the lock, or gives who is ahead instead of waiting. Of dropping it, the same holds as of [`acquire`].
pub(super) async fn try_acquire(
    spec: &Arc<Spec>,
    deadline: Option<Instant>,
) -> Result<Result<Acquired, Option<Contender>>, LockError> {
    let ahead = Arc::new(SeenAhead::default());
    let mut attempt = Attempt::new(spec, true, Arc::clone(&ahead));
    let late = || Err(ahead.error(&spec.path));
    let acquired = within(deadline, Box::pin(contend(spec, &mut attempt)), late).await?;
    Ok(acquired.ok_or_else(|| ahead.take()))
}

async fn contend(spec: &Spec, attempt: &mut Attempt) -> Result<Option<Acquired>, LockError> {
    loop {
        let session = spec.client.trusted_session().await;
        let session = session.map_err(|error| LockError::closed(&spec.path, error))?;
        let status = match attempt.claim.reconcile(&session).await {
            Ok(()) => {
                attempt.claim.given_up_are_gone().await;
                // In a box of its own, which goes while the claim waits: there may be many.
                Box::pin(step(attempt, &session)).await
            }
            Err(error) => Err(error),
        };
        match status {
            // The end of the session deletes the claims ahead first, so this one seems to hold.
            Ok(ClaimStatus::Held) if spec.client.is_closing() => drop(spec.client.closed().await),
            Ok(ClaimStatus::Held) => match session.hold() {
                // The node was there in this period of trust, and the session is proven to live yet:
                // nobody else can hold.
                Some(hold) => return Ok(attempt.acquired(hold)),
                None => session.proven().await,
            },
            Ok(ClaimStatus::Again) => {}
            Ok(ClaimStatus::Taken) => {
                // Once the caller knows, its claim stands in the way of no other that tries.
                attempt.claim.withdraw().await;
                attempt.claim.given_up_are_gone().await;
                return Ok(None);
            }
            Ok(ClaimStatus::Watching(watch)) => attempt.wait_for(watch).await,
            Ok(ClaimStatus::Pausing(pause)) => {
                attempt.behind = None;
                Timer::after(pause).await;
            }
            Ok(ClaimStatus::Impossible(obstacle)) => return Err(obstacle.at(&spec.path)),
            Err(error) if error.is_transient() => {
                log!(DEBUG, %error, "acquire goes on");
                Timer::after(AFTER_TROUBLE).await;
            }
            Err(error) => return Err(refused(&spec.path, error)),
        }
    }
}

/// Claims, or looks again where the claim stands.
async fn step(attempt: &mut Attempt, session: &TrustedSession) -> Result<ClaimStatus> {
    match attempt.spec.strategy {
        Strategy::Poll => poll::step(attempt, session).await,
        Strategy::Watch => watch::step(attempt, session).await,
        Strategy::Queue => queue::step(attempt, session).await,
    }
}
