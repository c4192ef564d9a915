//! A mutex gives its lock, or its place in the queue, back.

use parking_lot::MutexGuard;

use super::layout::zkr_lock_mutex;
use super::program::{ACQUIRED, Program, RELEASED};
use super::recipe::Recipe;
use super::state::{Phase, State};
use super::turn::Turn;
use crate::capi::boundary::Failure;
use crate::client::Client;
use crate::error::{Code, Error};
use crate::lock::{LockError, LockOp};
use crate::raw::inside_callback;
use crate::runtime::{Pending, block_on_until};

impl Recipe {
    /// Gives the lock, or the place in the queue, back.
    pub(super) fn unlock(&self, mutex: &zkr_lock_mutex, program: Program) -> Result<(), Failure> {
        let can_wait = !inside_callback();
        // Ends last, when the state is not locked any more.
        let turn;
        let mut state = self.state.lock();
        // Not where the completion that runs on another thread might wait for this one.
        while can_wait && state.is_anothers_turn() {
            self.wait(&mut state, None);
        }
        // Until completion(1) has run, nobody hears of a later attempt.
        turn = Turn::begin(self, &mut state, RELEASED);
        if matches!(state.phase, Phase::Held(_)) {
            // It was ours, so the program is notified of that first.
            let attempt = state.attempt;
            self.tell(state, attempt, ACQUIRED);
            state = self.state.lock();
        }
        state.at = None;
        // Why the claim could not be deleted.
        let mut left = None;
        match std::mem::take(&mut state.phase) {
            Phase::Idle => return Err(not_locked()),
            refused @ Phase::Refused(_) => {
                state.phase = refused;
                return Err(not_locked());
            }
            Phase::Lost(guard, failure) => {
                state.attempt += 1;
                state.phase = Phase::Refused(failure);
                let told = state.told == Some(RELEASED);
                drop(state);
                drop(guard);
                if told {
                    mutex.show(None, self.state.lock().names.first(), false);
                    return Ok(());
                }
            }
            Phase::Queued { cancel, over, client, .. } => {
                state.attempt += 1;
                drop(cancel);
                state.phase = Phase::Releasing(withdrawn(over, client.clone()), client);
                self.has_changed();
                left = self.wait_for_release(state, can_wait)?;
            }
            Phase::Held(guard) => {
                state.attempt += 1;
                let client = guard.client();
                state.phase = Phase::Releasing(guard.release(), client);
                left = self.wait_for_release(state, can_wait)?;
            }
            releasing @ Phase::Releasing(..) => {
                state.phase = releasing;
                left = self.wait_for_release(state, can_wait)?;
            }
        }
        mutex.show(None, self.state.lock().names.first(), false);
        program.tell(RELEASED);
        drop(turn);
        left.map_or(Ok(()), Err)
    }

    /// Gives why the claim can't be deleted, if it can't.
    fn wait_for_release(
        &self,
        mut state: MutexGuard<'_, State>,
        can_wait: bool,
    ) -> Result<Option<Failure>, Failure> {
        let Phase::Releasing(mut released, client) = std::mem::take(&mut state.phase) else {
            return Ok(None);
        };
        let attempt = state.attempt;
        drop(state);
        if !can_wait {
            // The deletion is repeated all the same.
            return Ok(None);
        }
        match block_on_until(client.inner().operation_deadline(), &mut released) {
            Some(Err(error @ LockError::NotPermitted { .. })) => Ok(Some(error.into())),
            // Also when the session was over before, or somebody had deleted the node: it is gone.
            Some(_) => Ok(None),
            None => {
                let mut state = self.state.lock();
                if state.attempt == attempt {
                    state.phase = Phase::Releasing(released, client);
                }
                let detail = "no server has confirmed it yet; it goes on in the background";
                let error = Error::with_detail("unlock", "", Code::OPERATION_TIMEOUT, detail);
                Err(error.into())
            }
        }
    }

    /// Gives everything back without waiting for it.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        while !inside_callback() && state.is_anothers_turn() {
            self.wait(&mut state, None);
        }
        state.attempt += 1;
        state.at = None;
        let ended = std::mem::take(&mut state.phase);
        drop(state);
        self.has_changed();
        drop(ended);
    }
}

/// Waits until an abandoned claim is deleted, or its session has ended.
fn withdrawn(over: oneshot::AsyncReceiver<()>, client: Client) -> Pending<(), LockError> {
    LockOp::Unlock.run("", async move {
        // It comes also when the task is dropped with its client.
        let _ = over.await;
        client.inner().duties().done().await;
        Ok(())
    })
}

/// The recipe's code for it.
pub(super) fn not_locked() -> Failure {
    Failure::new(Code::SYSTEM_ERROR.as_raw(), "zkr_lock_unlock: the mutex is not locked".into())
}
