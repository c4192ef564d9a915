//! Worker threads for code that may block: opening and closing handles, and the wakers of other programs.
//!
//! A worker waits a while for another job before it ends. If no thread can be started, [`run`] runs the job on the calling
//! thread.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use crate::panics::catch_panic;
use crate::sync::per_process;
use crate::threads;

/// The purpose of one of our threads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It drives all sessions: it waits for nothing, and runs no code of other programs.
    Driver,
    /// It runs the driver's blocking code.
    Worker,
}

thread_local! {
    static ROLE: Cell<Option<Role>> = const { Cell::new(None) };
}

/// This thread has that role from now on.
pub(crate) fn take_role(role: Role) {
    ROLE.set(Some(role));
}

pub(crate) fn is_driver() -> bool {
    ROLE.get() == Some(Role::Driver)
}

/// Whether the thread has a role. It must not wait for the end of a client, which may need this very thread.
pub(crate) fn has_role() -> bool {
    ROLE.get().is_some()
}

type Job = Box<dyn FnOnce() + Send>;

/// How long a worker waits for another job.
const LINGER: Duration = Duration::from_millis(200);

/// With the standard library's locks: parking_lot has one table of waiting threads for the process, which lies on their
/// stacks. A forked child would inherit the table without the threads.
#[derive(Default)]
struct Workers {
    state: Mutex<State>,
    /// Notifies one waiting worker of a job, or all of them of a dismissal.
    news: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    waiting_workers: usize,
    /// How often the workers that waited were told to end.
    dismissals: usize,
}

per_process! {
    static WORKERS: Workers = Workers::default();
}

impl Workers {
    fn state(&self) -> MutexGuard<'_, State> {
        // No job runs under it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `job` on a worker.
pub(crate) fn run(job: impl FnOnce() + Send + 'static) {
    if let Err(job) = hand_over(Box::new(job)) {
        catch_panic(job);
    }
}

/// As [`run`], but drops the job if no thread can be started. Returns whether it runs.
pub(crate) fn try_run(job: impl FnOnce() + Send + 'static) -> bool {
    hand_over(Box::new(job)).is_ok()
}

/// As [`run`]; returns the result of `job`, or `None` if it panicked. If nobody waits for the result any more, the worker
/// drops it.
pub(crate) async fn result<T: Send + 'static>(
    job: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (send, result) = oneshot::async_channel();
    run(move || drop(send.send(job())));
    result.await.ok()
}

/// Passes the job to a waiting worker or a new one. Returns the job if no thread can be started.
fn hand_over(job: Job) -> Result<(), Job> {
    #[cfg(test)]
    if super::simulated::current().is_some() {
        job();
        return Ok(());
    }
    let mut state = WORKERS.state();
    if state.jobs.len() < state.waiting_workers {
        WORKERS.news.notify_one();
    } else if threads::spawn("zklock-worker", work).is_err() {
        return Err(job);
    }
    state.jobs.push_back(job);
    Ok(())
}

fn work() {
    take_role(Role::Worker);
    while let Some(job) = next_job() {
        catch_panic(job);
    }
}

fn next_job() -> Option<Job> {
    let mut state = WORKERS.state();
    let dismissals = state.dismissals;
    state.waiting_workers += 1;
    let has_none = |state: &mut State| state.jobs.is_empty() && state.dismissals == dismissals;
    let waited = WORKERS.news.wait_timeout_while(state, LINGER, has_none);
    (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
    state.waiting_workers -= 1;
    state.jobs.pop_front()
}

/// Ends the workers that wait for a job.
#[cfg(feature = "capi")]
pub(crate) fn end_when_idle() {
    WORKERS.state().dismissals += 1;
    WORKERS.news.notify_all();
}

#[derive(Default)]
struct Wakers {
    waiting: VecDeque<Waker>,
    /// Whether a worker calls them.
    are_called: bool,
}

per_process! {
    static WAKERS: parking_lot::Mutex<Wakers> = parking_lot::Mutex::default();
}

/// Calls the waker of another program on a worker: one after the other, so that many of them take one thread.
pub(super) fn wake(waker: Waker) {
    let mut wakers = WAKERS.lock();
    wakers.waiting.push_back(waker);
    if !std::mem::replace(&mut wakers.are_called, true) {
        drop(wakers);
        run(|| {
            while let Some(waker) = next_waker() {
                catch_panic(|| waker.wake());
            }
        });
    }
}

fn next_waker() -> Option<Waker> {
    let mut wakers = WAKERS.lock();
    let next = wakers.waiting.pop_front();
    wakers.are_called = next.is_some();
    next
}
