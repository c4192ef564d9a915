//! Create the lock's znode; while it exists, watch it and try again when it is gone.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::Spec;
use super::claim::ClaimPlace;
use super::service::Session;
use super::steps::{Ahead, Attempt, Standing, Steps, make_way, not_a_lock};
use crate::error::Result;

pub(super) struct WatchHolder;

impl Steps for WatchHolder {
    fn place(&self, spec: &Spec) -> ClaimPlace {
        ClaimPlace::At(spec.path.clone())
    }

    fn step<'a>(
        &'a self,
        attempt: &'a mut Attempt,
        session: &'a Arc<dyn Session>,
    ) -> Pin<Box<dyn Future<Output = Result<Standing>> + Send + 'a>> {
        Box::pin(async move {
            if let Some(standing) = attempt.look_at_own(session).await? {
                return Ok(standing);
            }
            attempt.claim.send(session);
            match attempt.claim.confirm().await {
                Ok(_) => return Ok(Standing::Held),
                Err(error) if error.is_no_node() => {
                    return make_way(session, &attempt.spec, &attempt.spec.path).await;
                }
                Err(error) if error.is_node_exists() => {}
                Err(error) => return Err(error),
            }
            let path = attempt.spec.path.clone();
            match attempt.look_ahead(session, &path).await {
                Ok(Ahead::Data) => Err(not_a_lock("acquire", &path)),
                Ok(Ahead::Claim(_, standing)) => Ok(standing),
                Ok(Ahead::Nobody) => Ok(Standing::Again),
                Err(error) if error.is_no_node() => Ok(Standing::Again),
                Err(error) => Err(error),
            }
        })
    }
}
