//! The end of an acquire, and of the lock that it got: brought to the mutex and to the program.

use std::ffi::c_int;
use std::sync::Arc;

use parking_lot::MutexGuard;

use super::program::{ACQUIRED, RELEASED};
use super::recipe::{Recipe, loss_of};
use super::state::{Phase, State};
use crate::capi::boundary::Failure;
use crate::capi::callbacks::Line;
use crate::client::Client;
use crate::error::{Code, Error};
use crate::lock::{Guard, LostReason};
use crate::logging::log;

/// Reports the end of an acquire, also when its task is dropped with the client.
pub(super) struct Report {
    recipe: Arc<Recipe>,
    attempt: u64,
    client: Client,
    line: Arc<Line>,
    due: bool,
}

impl Report {
    /// One that has to be made.
    pub(super) fn due(recipe: &Arc<Recipe>, attempt: u64, client: Client, line: Line) -> Report {
        let (recipe, line) = (Arc::clone(recipe), Arc::new(line));
        Report { recipe, attempt, client, line, due: true }
    }

    /// For what may come after the acquire.
    fn again(&self) -> Report {
        let (recipe, line) = (Arc::clone(&self.recipe), Arc::clone(&self.line));
        Report { recipe, attempt: self.attempt, client: self.client.clone(), line, due: false }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// The program has cancelled: it gets no report.
    pub(super) fn cancel(&mut self) {
        self.due = false;
    }

    pub(super) fn make(&mut self, acquired: Result<Guard, Failure>) {
        self.due = false;
        // What else ends an acquire when the handle's session does is but a consequence.
        let acquired =
            acquired.map_err(|failure| self.client.failure().map_or(failure, Failure::from));
        self.settle(acquired);
    }

    /// The acquire is over. Runs on the driver's thread.
    fn settle(&self, acquired: Result<Guard, Failure>) {
        let state = self.recipe.state.lock();
        if state.attempt != self.attempt || !matches!(state.phase, Phase::Queued { .. }) {
            drop(state);
            // Nobody wants it any more: it is released.
            drop(acquired);
            return;
        }
        match acquired {
            Ok(guard) => self.hold(state, guard),
            Err(failure) => self.fail(state, failure),
        }
    }

    fn hold(&self, mut state: MutexGuard<'_, State>, guard: Guard) {
        let lost = guard.lost();
        drop(std::mem::replace(&mut state.phase, Phase::Held(guard)));
        if let Some(own) = state.names.own.clone() {
            state.names.first.push(own);
        }
        if let Some(at) = state.at.take() {
            let _ = self.client.while_open(|_| state.show(at.get()));
        }
        let caller_tells = state.callers > 0;
        self.recipe.has_changed();
        drop(state);
        if !caller_tells {
            self.tell_later(ACQUIRED);
        }
        let report = self.again();
        report.client().clone().inner().spawn(async move {
            if lost.await != LostReason::Released {
                report.lose();
            }
        });
    }

    fn fail(&self, mut state: MutexGuard<'_, State>, failure: Failure) {
        let caller_tells = state.callers > 0;
        if !caller_tells {
            let error = failure.message().to_owned();
            log!(WARN, %error, "a lock that a program waits for can't be had");
        }
        let refused =
            if caller_tells { Phase::Refused(failure) } else { Phase::Lost(None, failure) };
        drop(std::mem::replace(&mut state.phase, refused));
        if let Some(at) = state.at.take() {
            let _ = self.client.while_open(|_| at.get().show(None, None, false));
        }
        self.recipe.has_changed();
        drop(state);
        if !caller_tells {
            self.tell_later(RELEASED);
        }
    }

    /// The lock that was acquired is lost.
    fn lose(&self) {
        let mut state = self.recipe.state.lock();
        if state.attempt != self.attempt {
            return;
        }
        match std::mem::take(&mut state.phase) {
            Phase::Held(guard) => {
                let failure = loss_of(&guard);
                state.phase = Phase::Lost(Some(guard), failure);
            }
            other => return state.phase = other,
        }
        drop(state);
        self.tell_later(RELEASED);
    }

    /// Runs the completion on the callback thread, unless the program has closed its handle: what
    /// the completion works on may be gone by then.
    fn tell_later(&self, rc: c_int) {
        let (recipe, attempt, client) =
            (Arc::clone(&self.recipe), self.attempt, self.client.clone());
        self.line.run(move || {
            if !client.is_let_go() {
                recipe.tell_if_due(attempt, rc);
            }
        });
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if self.due {
            self.make(Err(Error::new("acquire", "", Code::CLOSING).into()));
        }
    }
}
