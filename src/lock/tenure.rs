//! The interface of a store for a lock that is held.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use futures_lite::future::Boxed;

use super::access::Access;
use super::error::LockError;
use super::loss::{GuardState, LostReason};
use crate::runtime::Pending;

/// One holding of a lock, from the acquire on. It ends once, for one reason.
pub(crate) trait Tenure: Send + Sync + 'static {
    /// The lock's path; of several locks that of the first.
    fn lock_path(&self) -> &str;

    /// Where the claim is in the store; of several locks that of the first.
    fn claim_path(&self) -> Arc<str>;

    /// Grows with every holding of the lock.
    fn token(&self) -> i64;

    /// How many have held with that token before.
    fn turn(&self) -> u64 {
        0
    }

    fn holds(&self) -> usize {
        1
    }

    /// The parts of a hold of several locks; empty for one lock.
    fn members(&self) -> &[Arc<dyn Tenure>] {
        &[]
    }

    /// The access that a hold of a read/write lock gives; `None` for any other lock, and for several.
    fn access(&self) -> Option<Access> {
        None
    }

    /// Changes the access to `to`, which differs from the [present one](Tenure::access) and can be reached from it. If
    /// the change fails or is cancelled, the access stays the same.
    fn change(self: Arc<Self>, _to: Access) -> Option<Pending<(), LockError>> {
        None
    }

    /// By the local clock, without a request.
    fn state(&self) -> GuardState {
        if self.ended().is_some() { GuardState::Lost } else { GuardState::Held }
    }

    /// Why it is over, if it is: by the local clock, without a request.
    fn ended(&self) -> Option<LostReason>;

    /// For how long it stays held if nothing is heard of its store any more: by the local clock, without a request.
    fn remaining(&self) -> Duration;

    /// Comes when [`state`](Tenure::state) may have changed, from now on.
    fn changed(self: Arc<Self>) -> Boxed<()> {
        let over = self.over();
        Box::pin(async move {
            over.await;
        })
    }

    fn over(self: Arc<Self>) -> Boxed<LostReason>;

    /// Why it is asked to end, as soon as that is another reason than this one; `None` once it is over.
    fn request_other_than(self: Arc<Self>, seen: Option<Arc<str>>) -> Boxed<Option<Arc<str>>>;

    /// Ends it by its holder's will: submits that before it returns, and goes on with it whether the result is
    /// waited for or not. `store` is kept until the end is known, or nobody waits for it any more.
    fn release(self: Arc<Self>, store: Option<StoreRef>) -> Pending<(), LockError>;

    /// As [`release`](Tenure::release), where nobody wants to know. It may be over already, then this does nothing.
    fn let_go(self: Arc<Self>);

    fn as_any(&self) -> &dyn Any;
}

/// Keeps a store open, a session say.
pub(crate) type StoreRef = Arc<dyn Any + Send + Sync>;
