//! Create the lock's znode; while it exists, watch it and try again when it is gone.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::Spec;
use super::algorithm::{Ahead, Algorithm, Attempt, ClaimStatus, create_parents};
use super::claim::NodeLayout;
use super::refusal::NOT_A_LOCK;
use crate::client::TrustedSession;
use crate::error::Result;

pub(super) struct WatchHolder;

impl Algorithm for WatchHolder {
    fn layout(&self, spec: &Spec) -> NodeLayout {
        NodeLayout::At(Arc::clone(&spec.path))
    }

    fn step<'a>(
        &'a self,
        attempt: &'a mut Attempt,
        session: &'a TrustedSession,
    ) -> Pin<Box<dyn Future<Output = Result<ClaimStatus>> + Send + 'a>> {
        Box::pin(async move {
            if let Some(status) = attempt.look_at_own(session).await? {
                return Ok(status);
            }
            attempt.claim.send(session);
            match attempt.claim.confirm().await {
                Ok(_) => return Ok(ClaimStatus::Held),
                Err(error) if error.is_no_node() => {
                    return create_parents(session, &attempt.spec, &attempt.spec.path).await;
                }
                Err(error) if error.is_node_exists() => {}
                Err(error) => return Err(error),
            }
            let path = attempt.spec.path.clone();
            match attempt.look_ahead(session, &path).await {
                Ok(Ahead::Data) => Ok(ClaimStatus::Impossible(NOT_A_LOCK)),
                Ok(Ahead::Claim(_, status)) => Ok(status),
                Ok(Ahead::Nobody) => Ok(ClaimStatus::Again),
                Err(error) if error.is_no_node() => Ok(ClaimStatus::Again),
                Err(error) => Err(error),
            }
        })
    }
}
