//! Create the lock's znode; while it exists, watch it and try again when it is gone.

use super::attempt::{Ahead, Attempt, ClaimStatus};
use crate::client::TrustedSession;
use crate::error::Result;
use crate::zookeeper::refusal::{NOT_A_LOCK, found};

pub(super) async fn step(attempt: &mut Attempt, session: &TrustedSession) -> Result<ClaimStatus> {
    if let Some(status) = attempt.create_own(session).await? {
        return Ok(status);
    }
    let path = attempt.spec.lock.path.clone();
    Ok(match found(attempt.look_ahead(session, &path).await)? {
        Some(Ahead::Data) => ClaimStatus::Impossible(NOT_A_LOCK),
        Some(Ahead::Claim { status, .. }) => status,
        Some(Ahead::Nobody) | None => ClaimStatus::Again,
    })
}
