//! The contender ahead of an acquire or an upgrade.

use std::sync::Arc;

use parking_lot::Mutex;

use super::queue::{Claim, Queues};
use crate::lock::LockError;
use crate::runtime::Late;

/// For the error of an acquire that has not ended in time.
pub(super) struct Ahead {
    pub(super) queues: Arc<Queues>,
    pub(super) claim: Mutex<Option<Arc<Claim>>>,
}

impl Late<LockError> for Ahead {
    fn error(&self, path: &str) -> LockError {
        let claim = self.claim.lock();
        let ahead = claim.as_ref().and_then(|claim| self.queues.ahead_of(path, claim));
        LockError::timed_out(path, ahead)
    }
}
