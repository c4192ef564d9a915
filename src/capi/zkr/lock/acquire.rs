//! A mutex takes a place in the queue: the acquire runs in the background, and the caller waits until
//! its place is known.

use std::ffi::CString;
use std::sync::{Arc, Weak};
use std::time::Instant;

use futures_lite::future::or;
use parking_lot::MutexGuard;

use super::layout::{Place, zkr_lock_mutex};
use super::program::{ACQUIRED, RELEASED};
use super::recipe::Recipe;
use super::report::Report;
use super::state::{GiveUp, Phase, State};
use crate::capi::boundary::Failure;
use crate::capi::callbacks::Line;
use crate::client::Client;
use crate::raw::inside_callback;
use crate::znode::Acl;

/// The request that a program makes with `zkr_lock_lock`.
pub(super) struct Order {
    pub(super) client: Client,
    pub(super) path: String,
    pub(super) acl: Vec<Acl>,
    /// Where completions run that come later.
    pub(super) line: Line,
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
            // Of a handle that is closed, or whose session is over, the acquire is about to fail.
            Phase::Queued { client, .. } if client.failure().is_none() => client.clone(),
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
        let path = order.path.as_str().into();
        let queued = Phase::Queued { cancel, placed: false, over, client, path };
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
        // Called by the thread that locks the mutex, which its claim names.
        let start = move || {
            let acquiring = lock.acquire();
            client.inner().spawn(async move {
                let acquired = async { Ok(acquiring.await) };
                let given_up = async { Err(cancelled.await.ok()) };
                match or(acquired, given_up).await {
                    Ok(acquired) => report.make(acquired.map_err(Failure::from)),
                    Err(duty) => {
                        report.cancel();
                        drop(duty);
                    }
                }
                let _ = finished.send(());
            });
        };
        ((before, client_before), start)
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
            let _ = client.while_open(|_| state.show(at.get()));
        }
        // The first is about to own it: whoever waits gets to see that.
        if let (Phase::Queued { placed, .. }, true) = (&mut state.phase, waits) {
            *placed = true;
            self.has_changed();
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
            self.wait(&mut state, deadline);
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
