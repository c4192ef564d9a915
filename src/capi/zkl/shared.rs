//! All objects of a client share its store, and the thread for the program's callbacks.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;

use crate::capi::boundary::{Failure, may_block, may_wait_for};
use crate::capi::callbacks::CallbackThread;
use crate::client::{Client, ClientInner, Duties};
use crate::lock::Guard;
use crate::panics::catch_panic_of;
use crate::process::Process;
use crate::raw::inside_callback;
use crate::runtime::{block_on_until, machine, now, offload};
use crate::stores::Store;

/// A session of ZooKeeper, its own or that of a handle of the program's, or another store; goes with the last of
/// what is made on it.
pub(super) struct Shared {
    pub(super) store: Store,
    pub(super) callbacks: Arc<CallbackThread>,
    duties: Arc<Duties>,
    process: Process,
    /// After `store`: fields are dropped in this order.
    end: AwaitedEnd,
}

/// Waits, when it is dropped after a client, a second for its session to end, or for its adopted handle to be free of
/// zklock: the program may close that handle next, or end without `exit`.
struct AwaitedEnd(Option<Arc<ClientInner>>);

const END: Duration = Duration::from_secs(1);

impl Drop for AwaitedEnd {
    fn drop(&mut self) {
        // On threads of ours the wait would be for ourselves.
        let may_wait = !offload::has_role() && !inside_callback();
        if let Some(inner) = self.0.take().filter(|inner| may_wait && inner.is_closing()) {
            let _ = block_on_until(Some(now() + END), inner.closed());
        }
    }
}

impl Shared {
    pub(super) fn new(store: Store, callbacks: Arc<CallbackThread>) -> Arc<Shared> {
        let inner = store.client().map(|client| Arc::clone(client.inner()));
        let duties = inner.as_ref().map(|inner| Arc::clone(inner.duties())).unwrap_or_default();
        let (process, end) = (Process::this(), AwaitedEnd(inner));
        Arc::new(Shared { store, callbacks, duties, process, end })
    }

    /// The session of a guard that was acquired on this one: the owner of a re-entrant lock may hold it on one before.
    pub(super) fn of(self: Arc<Self>, guard: &Guard) -> Arc<Shared> {
        let own = self.store.client().map(|client| Arc::as_ptr(client.inner()));
        let client = guard.store().and_then(Client::of_store);
        match client.filter(|client| Some(Arc::as_ptr(client.inner())) != own) {
            Some(client) => {
                let shared = Shared::new(client.into(), Arc::clone(&self.callbacks));
                self.drop_without_waiting();
                shared
            }
            _ => self,
        }
    }

    /// The session ends in the background, if this is the last that has it.
    pub(super) fn drop_without_waiting(self: Arc<Self>) {
        if let Some(mut shared) = Arc::into_inner(self) {
            shared.end = AwaitedEnd(None);
        }
    }

    /// For what only ZooKeeper has.
    pub(super) fn client(&self, function: &'static str) -> Result<&Client, Failure> {
        self.store.client().ok_or_else(|| {
            let store = self.store.capabilities().store;
            let why = format!("{store}: keeps locks only; connect to zookeeper: for this");
            Failure::bad_argument(function, &why)
        })
    }

    /// Refuses to wait where the answer would have to come through this very thread.
    pub(super) fn may_wait(&self, function: &'static str) -> Result<(), Failure> {
        match self.store.client() {
            Some(client) => may_wait_for(function, client),
            None => may_block(function),
        }
    }

    /// Runs a task on the driver's thread, until it ends; one of ZooKeeper's ends with its client.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        match self.store.client() {
            Some(client) => client.inner().spawn(task),
            None if !self.process.is_this() => std::mem::forget(task),
            None => machine::drive(catch_panic_of(task).map(Option::unwrap_or_default)),
        }
    }

    /// The duties before it ends.
    pub(super) fn duties(&self) -> &Arc<Duties> {
        &self.duties
    }
}
