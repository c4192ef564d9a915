//! Create the lock's znode; while it exists, watch it and try again when it is gone.

use super::attempt::{Ahead, Attempt, ClaimStatus};
use crate::client::TrustedSession;
use crate::error::Result;
use crate::zookeeper::refusal::NOT_A_LOCK;

pub(super) async fn step(attempt: &mut Attempt, session: &TrustedSession) -> Result<ClaimStatus> {
    if let Some(status) = attempt.create_own(session).await? {
        return Ok(status);
    }
    let path = attempt.spec.lock.path.clone();
    match attempt.look_ahead(session, &path).await {
        Ok(Ahead::Data) => Ok(ClaimStatus::Impossible(NOT_A_LOCK)),
        Ok(Ahead::Claim { status, .. }) => Ok(status),
        Ok(Ahead::Nobody) => Ok(ClaimStatus::Again),
        Err(error) if error.is_no_node() => Ok(ClaimStatus::Again),
        Err(error) => Err(error),
    }
}
