//! Threads for what may block: opening and closing handles, the wakers of others.
//!
//! Each ends when it has nothing to do.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use parking_lot::Mutex;

use super::role::{self, Role};
use crate::panics::catch_panic;
use crate::sync::per_process;
use crate::threads;

type Job = Box<dyn FnOnce() + Send>;

/// Runs `job` on a thread of its own. Where there is none to be had, it runs here: nothing is left undone.
pub(crate) fn run(job: impl FnOnce() + Send + 'static) {
    let job = Arc::new(Mutex::new(Some(job)));
    let there = Arc::clone(&job);
    let run = |job: &Mutex<Option<_>>| {
        let job = job.lock().take();
        job.map(catch_panic);
    };
    if !try_run(move || run(&there)) {
        run(&job);
    }
}

/// As [`run`]; where there is no thread to be had, nothing is done. Gives whether there is one.
pub(crate) fn try_run(job: impl FnOnce() + Send + 'static) -> bool {
    let started = threads::spawn("zklock-client", move || {
        role::take(Role::Helper);
        catch_panic(job);
    });
    started.is_ok()
}

/// How long the thread that wakes others waits for the next.
const LINGER: Duration = Duration::from_millis(200);

per_process! {
    /// The way to the thread that wakes others, while there is one.
    static WAKES: Mutex<Option<Sender<Job>>> = Mutex::default();
}

/// Runs somebody else's code, a waker say, one piece after the other on a thread that works for nothing else.
pub(crate) fn run_in_order(job: impl FnOnce() + Send + 'static) {
    let job: Job = Box::new(job);
    let mut wakes = WAKES.lock();
    if let Some(wakes) = &*wakes {
        // It serves for as long as there is a way to it.
        let _ = wakes.send(job);
        return;
    }
    let (send, jobs) = channel();
    let _ = send.send(job);
    *wakes = Some(send);
    drop(wakes);
    run(move || serve(&jobs));
}

/// Has the thread that wakes others end once it has nothing to do, without waiting for the next.
#[cfg(feature = "capi")]
pub(crate) fn end_when_idle() {
    *WAKES.lock() = None;
}

fn serve(jobs: &Receiver<Job>) {
    loop {
        match jobs.recv_timeout(LINGER) {
            Ok(job) => drop(catch_panic(job)),
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                let mut wakes = WAKES.lock();
                match jobs.try_recv() {
                    Ok(job) => {
                        drop(wakes);
                        catch_panic(job);
                    }
                    Err(_) => return *wakes = None,
                }
            }
        }
    }
}
