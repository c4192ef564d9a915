//! The contender ahead of an acquire.

use parking_lot::Mutex;

use crate::client::Znode;
use crate::lock::{Contender, LockError};
use crate::runtime::Late;
use crate::zookeeper::claim::payload;

/// The claim that was ahead when that was last seen, for the error of an acquire that has not ended in time.
#[derive(Default)]
pub(crate) struct SeenAhead(Mutex<Option<(String, Znode)>>);

impl SeenAhead {
    pub(crate) fn note(&self, path: String, claim: Znode) {
        *self.0.lock() = Some((path, claim));
    }

    pub(crate) fn take(&self) -> Option<Contender> {
        let (path, claim) = self.0.lock().take()?;
        Some(payload::read(path, &claim.data, &claim.stat))
    }
}

impl Late<LockError> for SeenAhead {
    fn error(&self, path: &str) -> LockError {
        LockError::timed_out(path, self.take())
    }
}
