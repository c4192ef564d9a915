//! The completion's turns. It is called under no lock of ours, so it may call back in; of two, the
//! second waits for the first.

use std::ffi::c_int;

use parking_lot::MutexGuard;

use super::program::{ACQUIRED, RELEASED};
use super::recipe::Recipe;
use super::state::{Phase, State};
use crate::raw::inside_callback;

impl Recipe {
    /// Runs the completion, unless the program knows it or has done otherwise meanwhile.
    pub(super) fn tell(&self, mut state: MutexGuard<'_, State>, attempt: u64, rc: c_int) {
        loop {
            let due = match state.phase {
                // Of one that is lost by now, its program hears only that.
                Phase::Held(ref guard) => {
                    rc == ACQUIRED && state.told.is_none() && !guard.is_lost()
                }
                Phase::Lost(..) => rc == RELEASED && state.told != Some(RELEASED),
                // A completion that locks again, in vain, would be called for ever, inside itself.
                Phase::Refused(_) => {
                    rc == RELEASED && state.told.is_none() && !state.is_inside_release()
                }
                _ => false,
            };
            if state.attempt != attempt || !due {
                return;
            }
            // Not where the completion that runs on another thread might wait for this one.
            if inside_callback() || !state.is_anothers_turn() {
                break;
            }
            self.wait(&mut state, None);
        }
        state.told = Some(rc);
        let program = state.program;
        let turn = Turn::begin(self, &mut state, rc);
        drop(state);
        program.tell(rc);
        drop(turn);
    }

    /// As [`tell`](Recipe::tell), for callers without the state.
    pub(super) fn tell_if_due(&self, attempt: u64, rc: c_int) {
        self.tell(self.state.lock(), attempt, rc);
    }
}

/// While a thread calls back into the program: others wait for its end.
pub(super) struct Turn<'a>(&'a Recipe);

impl Turn<'_> {
    pub(super) fn begin<'a>(recipe: &'a Recipe, state: &mut State, rc: c_int) -> Turn<'a> {
        state.turns.push((std::thread::current().id(), rc));
        Turn(recipe)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let me = std::thread::current().id();
        let mut state = self.0.state.lock();
        if let Some(at) = state.turns.iter().rposition(|(thread, _)| *thread == me) {
            state.turns.remove(at);
        }
        drop(state);
        self.0.has_changed();
    }
}
