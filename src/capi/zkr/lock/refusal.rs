//! A mutex that gets no place in the queue.

use parking_lot::MutexGuard;

use super::program::{Program, RELEASED};
use super::recipe::Recipe;
use super::state::{Phase, State};
use crate::capi::boundary::{Failure, panicked};

impl Recipe {
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
        self.has_changed();
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
