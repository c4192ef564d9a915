//! Requests and orders of other clients to a holder, as the store hands them to the guard.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_lite::future::or;

use crate::runtime::Latest;

/// A request or an order to a holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Revocation {
    /// That it releases the lock by itself.
    Ask { reason: String },
    /// That it has lost the lock from now on. After the grace the lock passes on, also if the guard is still there.
    Break { reason: String, grace: Duration },
}

#[derive(Default)]
pub(crate) struct Requests(Latest<Option<Arc<str>>>);

impl Requests {
    pub(crate) fn add(&self, reason: &str) {
        self.0.update(|request| {
            let is_new = request.as_deref() != Some(reason);
            *request = Some(reason.into());
            is_new
        });
    }

    /// The latest, as soon as that is another than this one; `None` once the hold is over.
    pub(crate) async fn other_than<T>(
        &self,
        seen: Option<Arc<str>>,
        over: impl Future<Output = T>,
    ) -> Option<Arc<str>> {
        let over = async {
            over.await;
            None
        };
        let other = |request: &Option<Arc<str>>| request.clone().filter(|_| *request != seen);
        or(over, async { Some(self.0.wait_for(other).await) }).await
    }
}
