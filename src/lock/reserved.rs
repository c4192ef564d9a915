//! Locks at paths that zklock reserves for itself. They can be inspected, but not acquired.
//!
//! Recipes keep znodes below the paths that programs choose: the hand-over of an election, the end of a latch, the
//! claims of a lock. A program's lock with the name of one of these would be mistaken for it.

use std::any::Any;
use std::sync::Arc;

use super::Lock;
use super::error::LockError;
use super::guard::Guard;
use super::op::ready;
use super::store::{Change, LockView, StoredLock, Tried};
use super::strategy::Strategy;
use crate::error::Code;
use crate::path::check_name;
use crate::runtime::Pending;

impl Lock {
    /// A lock at a path that the program has chosen.
    pub(crate) fn of_program(stored: impl StoredLock) -> Lock {
        match check_name(stored.path()) {
            Ok(()) => Lock::new(Arc::new(stored)),
            Err(why) => Lock::new(Arc::new(Reserved { stored: Arc::new(stored), why })),
        }
    }
}

struct Reserved {
    stored: Arc<dyn StoredLock>,
    why: &'static str,
}

impl Reserved {
    fn refused<T>(&self) -> Pending<T, LockError> {
        let refused = LockError::unusable(self.path(), self.why, Code::BAD_ARGUMENTS);
        ready(Err(refused))
    }
}

impl StoredLock for Reserved {
    fn path(&self) -> &str {
        self.stored.path()
    }

    fn strategy(&self) -> Strategy {
        self.stored.strategy()
    }

    fn with(&self, change: Change) -> Arc<dyn StoredLock> {
        Arc::new(Reserved { stored: self.stored.with(change), why: self.why })
    }

    fn acquire(self: Arc<Self>) -> Pending<Guard, LockError> {
        self.refused()
    }

    fn try_acquire(self: Arc<Self>) -> Pending<Tried<Guard>, LockError> {
        self.refused()
    }

    fn set_limit(self: Arc<Self>, _limit: u32) -> Pending<(), LockError> {
        self.refused()
    }

    fn view(self: Arc<Self>) -> Arc<dyn LockView> {
        Arc::clone(&self.stored).view()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
