//! The threads of a process that zklock has started. A program can wait for their end.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::mem;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
#[cfg(feature = "capi")]
use std::time::Instant;

use crate::process::{PerProcess, Process};

/// With the standard library's locks, for the sake of forked children: see `runtime/offload.rs`.
#[derive(Default)]
struct Threads {
    state: Mutex<State>,
    all_ended: Condvar,
}

#[derive(Default)]
struct State {
    running: BTreeMap<u64, JoinHandle<()>>,
    started: u64,
    /// The last one that has ended. It has joined the one before it.
    ended: Option<JoinHandle<()>>,
}

static THREADS: PerProcess<Threads> = PerProcess::new(Threads::default);

impl Threads {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics under it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

thread_local! {
    static OURS_IN: Cell<Option<Process>> = const { Cell::new(None) };
}

/// Starts a thread.
///
/// # Errors
/// When there is none to be had.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    // Held until the handle is in its place: the thread looks for it when it ends.
    let mut state = THREADS.state();
    let (number, process) = (state.started, Process::this());
    let thread = Builder::new().name(name.to_owned()).spawn(move || {
        let _end = End { number, process };
        OURS_IN.set(Some(process));
        work();
    })?;
    state.started += 1;
    state.running.insert(number, thread);
    Ok(())
}

/// Whether this thread is one of them.
#[cfg(feature = "capi")]
pub(crate) fn is_one() -> bool {
    OURS_IN.get().is_some_and(Process::is_this)
}

/// The end of a thread's work.
struct End {
    number: u64,
    /// The work may have forked.
    process: Process,
}

impl Drop for End {
    fn drop(&mut self) {
        if !self.process.is_this() {
            return;
        }
        let before = {
            let mut state = THREADS.state();
            let this = state.running.remove(&self.number);
            if state.running.is_empty() {
                THREADS.all_ended.notify_all();
            }
            mem::replace(&mut state.ended, this)
        };
        join(before);
    }
}

/// Waits until a thread that has finished its work is gone.
fn join(thread: Option<JoinHandle<()>>) {
    // How its work ended is nobody's business here.
    let _ = thread.map(JoinHandle::join);
}

/// Waits until all threads are gone.
///
/// # Errors
/// The name of one that still works then.
#[cfg(feature = "capi")]
pub(crate) fn join_all(deadline: Instant) -> Result<(), String> {
    let mut state = THREADS.state();
    while let Some(one) = state.running.values().next() {
        let name = one.thread().name().unwrap_or_default().to_owned();
        let left = deadline.saturating_duration_since(Instant::now());
        let waited = THREADS.all_ended.wait_timeout(state, left);
        let (after, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        state = after;
        if timeout.timed_out() {
            return if state.running.is_empty() { Ok(()) } else { Err(name) };
        }
    }
    let last = state.ended.take();
    drop(state);
    join(last);
    Ok(())
}
