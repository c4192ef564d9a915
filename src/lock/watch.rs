//! Create the lock's znode; while it exists, watch it and try again when it is gone.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::claim::ClaimPlace;
use super::contender;
use super::service::Session;
use super::steps::{Attempt, Standing, Steps, not_a_lock};
use crate::error::Result;

pub(super) struct WatchHolder;

impl Steps for WatchHolder {
    fn place(&self, path: &str) -> ClaimPlace {
        ClaimPlace::At(path.to_owned())
    }

    fn step<'a>(
        &'a self,
        attempt: &'a mut Attempt,
        session: &'a Arc<dyn Session>,
    ) -> Pin<Box<dyn Future<Output = Result<Standing>> + Send + 'a>> {
        Box::pin(async move {
            if attempt.claim.node().is_some() {
                return Ok(Standing::Held);
            }
            attempt.claim.send(session);
            match attempt.claim.confirm().await {
                Ok(_) => return Ok(Standing::Held),
                Err(error) if error.is_no_node() => {
                    session.make_parents(&attempt.path).await?;
                    return Ok(Standing::Again);
                }
                Err(error) if error.is_node_exists() => {}
                Err(error) => return Err(error),
            }
            // A read that sets the watch: if the holder went meanwhile, none is left behind.
            match session.get_and_watch(&attempt.path).await {
                Ok((_, stat, _)) if !stat.is_ephemeral() => Err(not_a_lock(&attempt.path)),
                Ok(_) if attempt.once => Ok(Standing::Taken),
                Ok((data, stat, watch)) => {
                    attempt.note_ahead(contender::read(attempt.path.clone(), &data, &stat));
                    Ok(Standing::Watching(watch))
                }
                Err(error) if error.is_no_node() => Ok(Standing::Again),
                Err(error) => Err(error),
            }
        })
    }
}
