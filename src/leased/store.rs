//! A store of leases, as its locks and guards share it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use parking_lot::Mutex;

use super::backlog::Progress;
use super::database::{Cause, Database, StepError};
use super::inner::{Inner, error_of};
use super::spec::Spec;
use super::worker::{Shared, Worker};
use crate::error::{Code, Error};
use crate::lock::Lock;
use crate::process::Process;
use crate::raw::{at_exit, watch_for_forks};
use crate::runtime::{BootInstant, Late, Latest, Pending, machine, wait_at_exit, wake};
use crate::scarcity;
use crate::threads;

/// Clones are the same store.
#[derive(Clone)]
pub(crate) struct Store {
    inner: Arc<Inner>,
}

/// Of connecting.
impl Late<Error> for Shared {
    fn error(&self, path: &str) -> Error {
        let why = self.why_late().unwrap_or_else(|| "the store has not answered yet".to_owned());
        Error::with_detail("connect", path, Code::OPERATION_TIMEOUT, why)
    }
}

impl Store {
    /// Opens a database on a new thread, which works for the store from then on. Where it can't be opened now, that is
    /// tried until the limit has passed.
    pub(crate) fn open<D: Database>(
        location: &str,
        lease: Duration,
        limit: Option<Duration>,
        open: impl FnOnce(&dyn Fn(&str) -> bool) -> Result<D, StepError> + Send + 'static,
    ) -> Pending<Store> {
        watch_for_forks();
        at_exit(wait_at_exit);
        let (send, opened) = oneshot::async_channel();
        let (steps, queued) = channel();
        let shared = Arc::new(Shared {
            lease,
            changes: Latest::new(0),
            watching: AtomicUsize::new(0),
            is_look_queued: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            process: Process::this(),
            hindrance: Mutex::default(),
        });
        let known = Arc::clone(&shared);
        let inner = Arc::new(Inner { shared, steps: Some(steps) });
        let announced = Arc::downgrade(&inner);
        // Whether the store is there.
        let changed = move || match announced.upgrade() {
            Some(inner) => inner.look(),
            None => false,
        };
        let work = move || {
            let begun = BootInstant::now();
            let is_given_up = |why: &str| {
                known.note::<()>(&Err(StepError::new(Cause::Busy, why)));
                send.is_closed() || limit.is_some_and(|limit| BootInstant::now() - begun > limit)
            };
            match open(&is_given_up) {
                Ok(mut database) => {
                    known.note(&Ok(()));
                    database.announce(Box::new(changed));
                    wake::send(send, Ok(()));
                    Worker::new(Box::new(database), known).run(&queued);
                }
                Err(failure) => wake::send(send, Err(failure)),
            }
        };
        let started = machine::start().and_then(|()| threads::spawn("zklock-store", work));
        if let Err(error) = started {
            let why = scarcity::describe(&error);
            return Pending::ready(Err(Error::with_detail(
                "connect",
                location,
                Code::SYSTEM_ERROR,
                why,
            )));
        }
        let late = Arc::clone(&inner.shared);
        let store = Store { inner };
        let location: Arc<str> = location.into();
        let named = Arc::clone(&location);
        let connected = Pending::run("connect", &location, async move {
            match opened.await {
                Ok(Ok(())) => Ok(store),
                Ok(Err(failure)) => Err(error_of("connect", &named, failure)),
                Err(_) => Err(Error::new("connect", &named, Code::SYSTEM_ERROR)),
            }
        });
        connected.when_late(late)
    }

    pub(crate) fn lock(&self, path: &str) -> Lock {
        Lock::of_program(Spec::new(Arc::clone(&self.inner), path))
    }

    pub(crate) fn lease(&self) -> Duration {
        self.inner.shared.lease
    }

    #[cfg(feature = "capi")]
    pub(crate) fn is_closed(&self) -> bool {
        self.inner.shared.is_closed.load(Ordering::Acquire)
    }

    /// Ends it: guards are lost, and all that is in flight fails. Waits until nothing is left in the database, or its lease
    /// has run out.
    pub(crate) fn close(&self) -> Pending<()> {
        let shared = &self.inner.shared;
        if !shared.process.is_this() {
            return Pending::ready(Ok(()));
        }
        shared.is_closed.store(true, Ordering::Release);
        let (send, nothing_left) = oneshot::async_channel();
        let mut send = Some(send);
        self.inner.submit(Box::new(move |worker| {
            worker.close(send.take());
            Progress::Done
        }));
        Pending::run("close", "", async move {
            // An error: the store's thread has ended, and that only when nothing was left.
            let _ = nothing_left.await;
            Ok(())
        })
    }
}
