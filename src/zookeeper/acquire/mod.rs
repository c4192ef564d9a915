//! The acquire loop: the one place that owns the recovery after a lost reply, the loss of a session and the end of
//! claims. Strategies say where a claim stands.

pub(super) mod attempt;
mod claiming;
pub(super) mod listing;
mod poll;
mod queue;
pub(super) mod scan;
pub(super) mod seen_ahead;
mod together;
mod watch;

use std::slice;
use std::sync::Arc;
use std::time::Instant;

use super::refusal::refused;
use super::spec::Spec;
use crate::client::TrustedSession;
use crate::error::{Error, Result};
use crate::lock::{Contender, LockError, Strategy};
use crate::logging::log;
use crate::retry;
use crate::runtime::{Late, Timer, within};
use attempt::{Acquired, Attempt, ClaimStatus};
use seen_ahead::SeenAhead;

/// Acquires the lock.
///
/// Wherever this future is dropped, the claim goes with it and deletes what it has, or may have, on the server.
pub(super) async fn acquire(
    spec: &Arc<Spec>,
    ahead: &Arc<SeenAhead>,
) -> Result<Acquired, LockError> {
    let mut attempt = Attempt::new(spec, false, Arc::clone(ahead));
    contend(slice::from_mut(&mut attempt)).await?;
    attempt.acquired().ok_or_else(|| ahead.error(&spec.lock.path))
}

/// Acquires the lock, or returns the contender ahead instead of waiting. Dropping it is like dropping [`acquire`].
pub(super) async fn try_acquire(
    spec: &Arc<Spec>,
    deadline: Option<Instant>,
) -> Result<Result<Acquired, Option<Contender>>, LockError> {
    let ahead = Arc::new(SeenAhead::default());
    let mut attempt = Attempt::new(spec, true, Arc::clone(&ahead));
    let late = || Err(ahead.error(&spec.lock.path));
    within(deadline, Box::pin(contend(slice::from_mut(&mut attempt))), late).await?;
    Ok(attempt.acquired().ok_or_else(|| ahead.take()))
}

/// Acquires all of these locks, which are queues of one client, with claims of one transaction. `None` if a contender
/// is ahead and the caller does not wait.
pub(super) async fn acquire_together(
    specs: impl Iterator<Item = Arc<Spec>>,
    no_wait: bool,
    ahead: &Arc<SeenAhead>,
) -> Result<Option<Vec<Acquired>>, LockError> {
    let attempt = |spec| Attempt::new(&spec, no_wait, Arc::clone(ahead));
    let mut attempts: Vec<Attempt> = specs.map(attempt).collect();
    contend(&mut attempts).await?;
    Ok(attempts.iter_mut().map(Attempt::acquired).collect())
}

/// Runs until all attempts hold. If one is blocked and must not wait, none holds.
async fn contend(attempts: &mut [Attempt]) -> Result<(), LockError> {
    let lock = Arc::clone(&attempts[0].spec.lock);
    loop {
        let session = lock.session().await?;
        // In a box of its own, which goes while a claim waits: there may be many.
        let (at, status) = match Box::pin(step(attempts, &session)).await {
            Ok(standing) => standing,
            Err(error) if error.is_transient() => {
                log!(DEBUG, %error, "acquire goes on");
                Timer::after(retry::SOON).await;
                continue;
            }
            Err(error) => return Err(refused_at_one(attempts, error)),
        };
        match status {
            // The end of the session deletes the claims ahead first, so ours seem to hold.
            ClaimStatus::Held if lock.client.is_closing() => drop(lock.client.closed().await),
            // All znodes were there in this period of trust, and the session is proven to be alive: nobody else can
            // hold.
            ClaimStatus::Held if attempts.iter_mut().all(|attempt| attempt.hold(&session)) => {
                return Ok(());
            }
            ClaimStatus::Held => session.proven().await,
            ClaimStatus::Again => {}
            ClaimStatus::Taken => {
                // Once the caller knows, its claims stand in the way of no other that tries.
                withdraw(attempts).await;
                return Ok(());
            }
            ClaimStatus::Watching(watch) => {
                attempts[at].wait_for(&session, watch).await;
                look_again_at(attempts);
            }
            ClaimStatus::Pausing(pause) => {
                attempts[at].behind = None;
                Timer::after(pause).await;
                look_again_at(attempts);
            }
            ClaimStatus::Impossible(obstacle) => {
                return Err(obstacle.at(&attempts[at].spec.lock.path));
            }
        }
    }
}

/// Claims, or looks again where the claims stand. Returns the first that does not hold, or `Held` if all do.
async fn step(attempts: &mut [Attempt], session: &TrustedSession) -> Result<(usize, ClaimStatus)> {
    for attempt in &mut *attempts {
        attempt.claim.reconcile(session).await?;
        attempt.claim.abandoned_are_gone().await;
    }
    if attempts.len() > 1 {
        if let Some(waits) = together::claim(attempts, session).await? {
            return Ok(waits);
        }
    }
    for (at, attempt) in attempts.iter_mut().enumerate() {
        if attempt.was_found_to_hold(session) {
            continue;
        }
        match look(attempt, session).await? {
            ClaimStatus::Held => attempt.held_in = Some(session.clone()),
            status => return Ok((at, status)),
        }
    }
    let is_one_gone = attempts.iter_mut().any(Attempt::abandon_if_deleted);
    Ok((0, if is_one_gone { ClaimStatus::Again } else { ClaimStatus::Held }))
}

async fn look(attempt: &mut Attempt, session: &TrustedSession) -> Result<ClaimStatus> {
    match attempt.spec.lock.strategy {
        Strategy::Poll => poll::step(attempt, session).await,
        Strategy::Watch => watch::step(attempt, session).await,
        Strategy::Queue => queue::step(attempt, session).await,
    }
}

/// While another was waited for, somebody may have deleted a claim that was found to hold, or proven to.
fn look_again_at(attempts: &mut [Attempt]) {
    for attempt in attempts {
        attempt.held_in = None;
    }
}

async fn withdraw(attempts: &mut [Attempt]) {
    for attempt in &mut *attempts {
        attempt.claim.withdraw();
    }
    for attempt in attempts {
        attempt.claim.abandoned_are_gone().await;
    }
}

/// The error of a request that the servers refused to one of them.
fn refused_at_one(attempts: &[Attempt], error: Error) -> LockError {
    let at = error.failed_op_index().filter(|at| *at < attempts.len());
    refused(&attempts[at.unwrap_or_default()].spec.lock.path, error)
}
