//! A holding of a ZooKeeper lock, for the face.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use futures_lite::future::Boxed;

use super::Tenure;
use super::change;
use crate::lock::{Access, GuardState, LockError, LockOp, LostReason, StoreRef, tenure};
use crate::runtime::{Pending, wake};

impl tenure::Tenure for Tenure {
    fn lock_path(&self) -> &str {
        &self.spec.lock.path
    }

    fn claim_path(&self) -> Arc<str> {
        Arc::clone(&self.present().path)
    }

    fn access(&self) -> Option<Access> {
        let claims = self.claims.lock();
        if claims.write.is_some() { Some(Access::Write) } else { Access::of(claims.kind) }
    }

    fn change(self: Arc<Self>, to: Access) -> Option<Pending<(), LockError>> {
        Some(change::change(&self, to))
    }

    fn token(&self) -> i64 {
        self.node.czxid
    }

    fn state(&self) -> GuardState {
        match Tenure::ended(self) {
            Some(_) => GuardState::Lost,
            None if self.client.is_connected() => GuardState::Held,
            None => GuardState::Suspended,
        }
    }

    fn ended(&self) -> Option<LostReason> {
        Tenure::ended(self)
    }

    fn remaining(&self) -> Duration {
        match Tenure::ended(self) {
            Some(_) => Duration::ZERO,
            None => self.hold.remaining(),
        }
    }

    fn changed(self: Arc<Self>) -> Boxed<()> {
        let listener = self.client.listen();
        Box::pin(async move {
            let over = async {
                Tenure::over(&self).await;
            };
            futures_lite::future::or(over, wake::DeferredWake(listener)).await;
        })
    }

    fn over(self: Arc<Self>) -> Boxed<LostReason> {
        Box::pin(async move { Tenure::over(&self).await })
    }

    fn request_other_than(self: Arc<Self>, seen: Option<Arc<str>>) -> Boxed<Option<Arc<str>>> {
        Box::pin(async move { self.requests.other_than(seen, Tenure::over(&self)).await })
    }

    fn release(self: Arc<Self>, store: Option<StoreRef>) -> Pending<(), LockError> {
        let path = Arc::clone(&self.spec.lock.path);
        LockOp::Release.run(path, self.submit_release(store))
    }

    fn let_go(self: Arc<Self>) {
        drop(self.submit_release(None));
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
