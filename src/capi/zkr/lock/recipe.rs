//! The lock behind a mutex of the C recipe and its copies.

use std::time::Instant;

use event_listener::{Event, Listener};
use parking_lot::{Mutex, MutexGuard};

use super::layout::zkr_lock_mutex;
use super::program::Completion;
use super::state::{Phase, State};
use crate::capi::boundary::Failure;
use crate::client::Client;
use crate::error::{Code, Error};
use crate::lock::{Guard, LostReason};

#[derive(Default)]
pub(super) struct Recipe {
    pub(super) state: Mutex<State>,
    /// Not a condition variable of parking_lot: a child that another thread forks meanwhile would inherit its table of waiting
    /// threads.
    changed: Event,
}

impl Recipe {
    /// Waits until something has changed, or until the deadline.
    pub(super) fn wait(&self, state: &mut MutexGuard<'_, State>, deadline: Option<Instant>) {
        let changed = self.changed.listen();
        MutexGuard::unlocked(state, || match deadline {
            Some(deadline) => drop(changed.wait_deadline(deadline)),
            None => changed.wait(),
        });
    }

    pub(super) fn has_changed(&self) {
        self.changed.notify(usize::MAX);
    }

    /// Whether the lock is owned now; shows the struct where it stands.
    pub(super) fn is_owner(&self, mutex: &zkr_lock_mutex) -> bool {
        let state = self.state.lock();
        state.show(mutex);
        state.owns()
    }

    /// Whether the lock is owned now.
    pub(super) fn owns(&self) -> bool {
        self.state.lock().owns()
    }

    pub(super) fn set_completion(&self, completion: Completion) {
        self.state.lock().program.completion = completion;
    }

    /// Why the mutex can't be locked any more: its handle's session is over, or the program has closed
    /// the handle, which then must not be touched.
    pub(super) fn check_handle(&self) -> Result<(), Failure> {
        let client = self.state.lock().client.clone();
        client.as_ref().and_then(Client::failure).map_or(Ok(()), |error| Err(error.into()))
    }

    /// Why the mutex has no place in the queue, if it was to have one.
    pub(super) fn failure(&self) -> Option<Failure> {
        match &self.state.lock().phase {
            Phase::Refused(failure) | Phase::Lost(_, failure) => Some(failure.clone()),
            Phase::Held(guard) if guard.is_lost() => Some(loss_of(guard)),
            _ => None,
        }
    }
}

/// Why a lock is lost, as a code.
pub(super) fn loss_of(guard: &Guard) -> Failure {
    let code = match guard.lost().get() {
        Some(LostReason::Deleted) => Code::NO_NODE,
        _ => guard.client().failure().map_or(Code::SESSION_EXPIRED, |error| error.code()),
    };
    Error::with_detail("hold", guard.path(), code, "the lock is lost").into()
}
