//! A mutex gives its lock, or its place in the queue, back.

use std::ffi::CStr;

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
use crate::retry;
use crate::runtime::{Pending, Timer, block_on_until};

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
                    self.state.lock().show(mutex);
                    return Ok(());
                }
            }
            Phase::Queued { cancel, over, client, path, .. } => {
                state.attempt += 1;
                drop(cancel);
                let own = state.names.own.as_deref().map(CStr::to_string_lossy);
                let claim = own.map(|own| format!("{}/{own}", path.trim_end_matches('/')));
                state.phase = Phase::Releasing(withdrawn(over, client.clone(), claim), client);
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
        self.state.lock().show(mutex);
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
            // It is gone, and `zkr_lock_error` tells why.
            Some(Err(error @ LockError::Lost { .. })) => {
                let mut state = self.state.lock();
                if state.attempt == attempt && matches!(state.phase, Phase::Idle) {
                    state.phase = Phase::Refused(error.into());
                }
                Ok(None)
            }
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
fn withdrawn(
    over: oneshot::AsyncReceiver<()>,
    client: Client,
    claim: Option<String>,
) -> Pending<(), LockError> {
    LockOp::Unlock.run("", async move {
        // It comes also when the task is dropped with its client.
        let _ = over.await;
        client.inner().duties().done().await;
        let link = client.inner().link("exists", "");
        let may_be_left = |_: &String| link.is_ok_and(|link| link.has_undeletable());
        let Some(claim) = claim.filter(may_be_left) else { return Ok(()) };
        loop {
            match client.exists(&claim).await {
                Ok(Some(_)) => {
                    let missing =
                        "the session may not delete it, so it stays until the session ends";
                    return Err(LockError::not_permitted(&claim, missing.to_owned()));
                }
                Err(error) if error.is_transient() && !error.is_session_over() => {
                    Timer::after(retry::SOON).await;
                }
                Ok(None) | Err(_) => return Ok(()),
            }
        }
    })
}

/// The recipe's code for it.
pub(super) fn not_locked() -> Failure {
    Failure::new(Code::SYSTEM_ERROR.as_raw(), "zkr_lock_unlock: the mutex is not locked".into())
}
