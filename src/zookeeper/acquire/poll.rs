//! Create the lock's znode; while it exists, pause and try again.

use std::time::Duration;

use super::attempt::{Attempt, ClaimStatus, clear_orphan};
use crate::client::TrustedSession;
use crate::error::Result;
use crate::zookeeper::refusal::{NOT_A_LOCK, found};

const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// How many attempts go by between two looks at what stands in the way.
const LOOK_EVERY: u32 = 32;

pub(super) async fn step(attempt: &mut Attempt, session: &TrustedSession) -> Result<ClaimStatus> {
    if let Some(status) = attempt.create_own(session).await? {
        return Ok(status);
    }
    if attempt.attempts % LOOK_EVERY == 0 {
        let lock = &attempt.spec.lock;
        if let Some(znode) = found(session.get(&lock.path).await)? {
            if !znode.stat.is_ephemeral() {
                return Ok(ClaimStatus::Impossible(NOT_A_LOCK));
            }
            if clear_orphan(lock, session, &lock.path, &znode).await {
                return Ok(ClaimStatus::Again);
            }
            attempt.ahead.note(lock.path.to_string(), znode);
        }
    }
    attempt.attempts += 1;
    if attempt.no_wait {
        return Ok(ClaimStatus::Taken);
    }
    Ok(ClaimStatus::Pausing(pause(attempt.attempts)))
}

/// Doubles up to the longest, and takes between half and all of that, so that pollers spread out.
fn pause(attempts: u32) -> Duration {
    let full = FIRST_PAUSE * 2u32.saturating_pow(attempts.saturating_sub(1).min(10));
    full.min(LONGEST_PAUSE).mul_f64(0.5 + fastrand::f64() / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_are_never_zero() {
        for attempts in [1, 2, 5, 20, u32::MAX] {
            let pause = pause(attempts);
            assert!(pause >= FIRST_PAUSE / 2 && pause <= LONGEST_PAUSE, "{attempts}: {pause:?}");
        }
        assert!(pause(1) <= FIRST_PAUSE);
    }
}
