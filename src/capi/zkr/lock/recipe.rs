//! What stands behind a mutex of the C recipe: a place in the queue, then the lock, then neither.
//!
//! An acquire runs in the background; the program asks, or is told by its completion.

use std::ffi::CString;
use std::sync::{Arc, Weak};
use std::time::Instant;

use futures_lite::future::or;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::layout::{Completion, Place, zkr_lock_mutex};
use super::refusal::{loss_of, not_locked};
use super::report::Report;
use super::state::{ACQUIRED, GiveUp, Phase, Program, RELEASED, State};
use super::turn::Turn;
use crate::capi::boundary::Failure;
use crate::capi::callbacks::Line;
use crate::client::{Client, Pending, block_on_until};
use crate::error::{Code, Error};
use crate::lock::{Guard, LockError, LostReason};
use crate::logging::log;
use crate::raw::inside_callback;
use crate::znode::Acl;

/// What a program asks for with `zkr_lock_lock`.
pub(super) struct Order {
    pub(super) client: Client,
    pub(super) path: String,
    pub(super) acl: Vec<Acl>,
    /// Where completions run that come later.
    pub(super) line: Line,
}

#[derive(Default)]
pub(super) struct Recipe {
    pub(super) state: Mutex<State>,
    pub(super) changed: Condvar,
}

impl Recipe {
    /// Takes a place in the queue, unless it has one, and waits until the place is known. The program
    /// is notified of a failure before it is returned.
    pub(super) fn lock(
        self: &Arc<Self>,
        mutex: &zkr_lock_mutex,
        order: Result<Order, Failure>,
    ) -> Result<(), Failure> {
        let mut state = self.state.lock();
        state.program = mutex.program();
        let client = match &state.phase {
            Phase::Held(guard) if !guard.is_lost() => {
                state.show(mutex);
                return Ok(());
            }
            Phase::Queued { client, .. } => client.clone(),
            _ => {
                let order = match order {
                    Ok(order) => order,
                    Err(failure) => {
                        mutex.show(None, None, false);
                        self.refuse(state, &failure);
                        return Err(failure);
                    }
                };
                let client = order.client.clone();
                let (ended, start) = self.begin(&mut state, mutex, order);
                // From now on, so that the caller hears of an end that comes at once.
                let caller = Caller::enter(&mut state);
                // Both may run code that looks for the state's lock.
                MutexGuard::unlocked(&mut state, || {
                    drop(ended);
                    start();
                });
                return self.wait_for_place(state, caller, &client);
            }
        };
        state.at = Some(Place::of(mutex));
        let caller = Caller::enter(&mut state);
        self.wait_for_place(state, caller, &client)
    }

    /// Begins an attempt; what it gives is to be dropped and called without the lock.
    fn begin(
        self: &Arc<Self>,
        state: &mut State,
        mutex: &zkr_lock_mutex,
        order: Order,
    ) -> ((Phase, Option<Client>), impl FnOnce() + use<>) {
        state.attempt += 1;
        state.told = None;
        state.at = Some(Place::of(mutex));
        state.names_before = std::mem::take(&mut state.names_so_far);
        let names = std::mem::take(&mut state.names);
        state.names_before.push(names);
        state.callers = 0;
        mutex.show(None, None, false);
        let (cancel, cancelled) = GiveUp::new(&order.client);
        let (finished, over) = oneshot::async_channel();
        let attempt = state.attempt;
        let client = order.client.clone();
        let queued = Phase::Queued { cancel, placed: false, over, client };
        let before = std::mem::replace(&mut state.phase, queued);
        let client_before = state.client.replace(order.client.clone());

        let (recipe, watched): (Weak<Recipe>, Client) =
            (Arc::downgrade(self), order.client.clone());
        let on_position = Arc::new(move |own: &str, first: &str| {
            if let Some(recipe) = recipe.upgrade() {
                recipe.on_position(attempt, &watched, own, first);
            }
        });
        let lock = order.client.lock(&order.path).acl(order.acl).like_the_recipe(on_position);
        let mut report = Report::due(self, attempt, order.client, order.line);
        let client = report.client().clone();
        let task = async move {
            let acquired = async { Ok(lock.acquire().await) };
            let given_up = async { Err(cancelled.await.ok()) };
            match or(acquired, given_up).await {
                Ok(acquired) => report.make(acquired.map_err(Failure::from)),
                Err(duty) => {
                    report.cancel();
                    drop(duty);
                }
            }
            let _ = finished.send(());
        };
        ((before, client_before), move || client.inner().spawn(task))
    }

    /// Runs on the driver's thread.
    fn on_position(&self, attempt: u64, client: &Client, own: &str, first: &str) {
        let mut state = self.state.lock();
        if state.attempt != attempt {
            return;
        }
        // Names come from the servers, which allow no NUL in them.
        let own = CString::new(own).unwrap_or_default();
        let first = CString::new(first).unwrap_or_default();
        let waits = own != first;
        // A claim that was lost with its session, or by hand, is made anew under another name.
        if state.names.own.as_ref() != Some(&own) {
            let names = std::mem::take(&mut state.names);
            state.names_so_far.push(names);
            state.names.own = Some(own);
        }
        if state.names.first.last() != Some(&first) {
            state.names.first.push(first);
        }
        if let Some(at) = &state.at {
            // Once the program has closed its handle, the struct may be gone too.
            let _ = client.while_attached(|| state.show(at.get()));
        }
        // The first is about to own it: whoever waits gets to see that.
        if let (Phase::Queued { placed, .. }, true) = (&mut state.phase, waits) {
            *placed = true;
            self.changed.notify_all();
        }
    }

    fn wait_for_place(
        &self,
        mut state: MutexGuard<'_, State>,
        caller: Option<Caller>,
        client: &Client,
    ) -> Result<(), Failure> {
        let Some(caller) = caller else { return Ok(()) };
        let can_wait = MutexGuard::unlocked(&mut state, || client.can_be_waited_for());
        let deadline = client.inner().operation_deadline();
        while can_wait
            && state.attempt == caller.attempt
            && matches!(state.phase, Phase::Queued { placed: false, .. })
            && deadline.is_none_or(|deadline| Instant::now() < deadline)
        {
            match deadline {
                Some(deadline) => drop(self.changed.wait_until(&mut state, deadline)),
                None => self.changed.wait(&mut state),
            }
        }
        let attempt = caller.attempt;
        caller.leave(&mut state);
        if state.attempt != attempt {
            return Ok(());
        }
        match &state.phase {
            Phase::Refused(failure) => {
                let failure = failure.clone();
                // So that the completion can ask for it too.
                failure.clone().tell();
                self.tell(state, attempt, RELEASED);
                Err(failure)
            }
            Phase::Held(_) => {
                self.tell(state, attempt, ACQUIRED);
                Ok(())
            }
            // No server has answered in time: the acquire goes on all the same.
            _ => Ok(()),
        }
    }

    /// The acquire is over. Runs on the driver's thread.
    pub(super) fn settle(
        self: &Arc<Self>,
        attempt: u64,
        acquired: Result<Guard, Failure>,
        report: &Report,
    ) {
        let mut state = self.state.lock();
        if state.attempt != attempt || !matches!(state.phase, Phase::Queued { .. }) {
            drop(state);
            // Nobody wants it any more: it is released.
            drop(acquired);
            return;
        }
        let guard = match acquired {
            Ok(guard) => guard,
            Err(failure) => {
                let caller_tells = state.callers > 0;
                if !caller_tells {
                    let error = failure.message().to_owned();
                    log!(WARN, %error, "a lock that a program waits for can't be had");
                }
                let refused =
                    if caller_tells { Phase::Refused(failure) } else { Phase::Lost(None, failure) };
                drop(std::mem::replace(&mut state.phase, refused));
                if let Some(at) = state.at.take() {
                    let _ = report.client().while_attached(|| at.get().show(None, None, false));
                }
                self.changed.notify_all();
                drop(state);
                if !caller_tells {
                    report.tell_later(RELEASED);
                }
                return;
            }
        };
        let lost = guard.lost();
        drop(std::mem::replace(&mut state.phase, Phase::Held(guard)));
        if let Some(own) = state.names.own.clone() {
            state.names.first.push(own);
        }
        if let Some(at) = state.at.take() {
            let _ = report.client().while_attached(|| state.show(at.get()));
        }
        let caller_tells = state.callers > 0;
        self.changed.notify_all();
        drop(state);
        if !caller_tells {
            report.tell_later(ACQUIRED);
        }
        let report = report.again();
        report.client().clone().inner().spawn(async move {
            if lost.await != LostReason::Released {
                report.lost();
            }
        });
    }

    pub(super) fn lose(&self, attempt: u64, report: &Report) {
        let mut state = self.state.lock();
        if state.attempt != attempt {
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
        report.tell_later(RELEASED);
    }

    /// Gives the lock, or the place in the queue, back.
    pub(super) fn unlock(&self, mutex: &zkr_lock_mutex, program: Program) -> Result<(), Failure> {
        let can_wait = !inside_callback();
        // Ends last, when the state is not locked any more.
        let turn;
        let mut state = self.state.lock();
        // Not where the completion that runs on another thread might wait for this one.
        while can_wait && state.is_anothers_turn() {
            self.changed.wait(&mut state);
        }
        // Until completion(1) has run, nobody is told of a later attempt.
        turn = Turn::begin(self, &mut state, RELEASED);
        if matches!(state.phase, Phase::Held(_)) {
            // It was ours, so the program is told of that first.
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
                self.changed.notify_all();
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

    /// Gives everything back without waiting for it.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        while !inside_callback() && state.is_anothers_turn() {
            self.changed.wait(&mut state);
        }
        state.attempt += 1;
        state.at = None;
        let ended = std::mem::take(&mut state.phase);
        drop(state);
        self.changed.notify_all();
        drop(ended);
    }
}

/// Waits until a claim that was given up is gone, or its session.
fn withdrawn(over: oneshot::AsyncReceiver<()>, client: Client) -> Pending<(), LockError> {
    Pending::run_as("unlock", "", LockError::of_pending, async move {
        // It comes also when the task is dropped with its client.
        let _ = over.await;
        client.inner().duties().done().await;
        Ok(())
    })
}

/// A thread inside `lock`: it hears of the end of its attempt, so nobody else has to be told.
struct Caller {
    attempt: u64,
}

impl Caller {
    /// Not inside a callback of the C client, which must not wait.
    fn enter(state: &mut State) -> Option<Caller> {
        if inside_callback() {
            return None;
        }
        state.callers += 1;
        Some(Caller { attempt: state.attempt })
    }

    fn leave(self, state: &mut State) {
        // Those of an earlier attempt are not counted any more.
        if state.attempt == self.attempt {
            state.callers -= 1;
        }
    }
}
