//! The contender ahead of an acquire that waits for another acquire.

use std::sync::Arc;

use parking_lot::Mutex;

use super::error::LockError;
use crate::runtime::Late;

/// The contender ahead of the present acquire.
#[derive(Default)]
pub(super) struct Ahead(Mutex<Option<Arc<dyn Late<LockError>>>>);

impl Ahead {
    pub(super) fn is_of(&self, acquire: Option<Arc<dyn Late<LockError>>>) {
        *self.0.lock() = acquire;
    }
}

impl Late<LockError> for Ahead {
    fn error(&self, path: &str) -> LockError {
        let of_store = self.0.lock().clone();
        of_store.map_or_else(|| LockError::timed_out(path, None), |late| late.error(path))
    }
}
