//! Who is ahead of an acquire.

use parking_lot::Mutex;

use crate::lock::{Contender, LockError};
use crate::runtime::Late;

/// Who was ahead when that was last seen: for the error of an acquire that has not ended in time.
#[derive(Default)]
pub(crate) struct SeenAhead(Mutex<Option<Contender>>);

impl SeenAhead {
    pub(crate) fn note(&self, who: Contender) {
        *self.0.lock() = Some(who);
    }

    pub(crate) fn take(&self) -> Option<Contender> {
        self.0.lock().take()
    }
}

impl Late<LockError> for SeenAhead {
    fn error(&self, path: &str) -> LockError {
        LockError::timed_out(path, self.take())
    }
}
