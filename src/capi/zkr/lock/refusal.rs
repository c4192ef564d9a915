//! Why a mutex has no place in the queue, or has lost it: for `zkr_lock_error`.

use parking_lot::MutexGuard;

use super::recipe::Recipe;
use super::state::{Phase, Program, RELEASED, State};
use crate::capi::boundary::{Failure, panicked};
use crate::client::Client;
use crate::error::{Code, Error};
use crate::lock::{Guard, LostReason};

impl Recipe {
    /// Why the mutex can't be locked any more: its handle's session is over, or the program has closed
    /// the handle, which then must not be touched.
    pub(super) fn check_handle(&self) -> Result<(), Failure> {
        let client = self.state.lock().client.clone();
        client.as_ref().and_then(Client::failure).map_or(Ok(()), |error| Err(error.into()))
    }

    /// The mutex gets no place in the queue: keeps the reason, and runs the completion.
    pub(super) fn refuse(&self, mut state: MutexGuard<'_, State>, failure: &Failure) {
        // So that the completion can ask for it too.
        failure.clone().tell();
        state.attempt += 1;
        state.told = None;
        state.at = None;
        let ended = std::mem::replace(&mut state.phase, Phase::Refused(failure.clone()));
        let attempt = state.attempt;
        drop(state);
        self.changed.notify_all();
        // It may run code that looks for the state's lock.
        drop(ended);
        self.tell_if_due(attempt, RELEASED);
    }

    /// A defect of ours has ended a `lock`, wherever that was.
    pub(super) fn refuse_after_panic(&self, program: Program) {
        let mut state = self.state.lock();
        state.program = program;
        self.refuse(state, &panicked());
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

/// The recipe's code for it.
pub(super) fn not_locked() -> Failure {
    Failure::new(Code::SYSTEM_ERROR.as_raw(), "zkr_lock_unlock: the mutex is not locked".into())
}

#[cfg(all(test, not(zklock_loom)))]
mod tests {
    use std::ffi::{c_int, c_void};

    use super::*;
    use crate::capi::codes::ZKL_PANIC;

    #[test]
    fn a_panic_inside_a_lock_is_a_refusal() {
        unsafe extern "C" fn completion(rc: c_int, told: *mut c_void) {
            // SAFETY: the test gives a vector that outlives the call.
            unsafe { &mut *told.cast::<Vec<c_int>>() }.push(rc);
        }
        let mut told: Vec<c_int> = Vec::new();
        let recipe = Recipe::default();
        let program =
            Program { completion: Some(completion), cbdata: (&raw mut told).cast::<c_void>() };
        recipe.refuse_after_panic(program);
        assert_eq!(told, [RELEASED]);
        assert_eq!(recipe.failure().map(Failure::tell), Some(ZKL_PANIC));
        assert!(!recipe.owns());
    }
}
