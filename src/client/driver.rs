//! The session driver: one thread for all clients of a process.
//!
//! It drives their sessions (`session.rs`) and the tasks in the background, and wakes those who wait
//! for a time (`timer.rs`). Whatever may block, or is somebody else's code, runs on another thread
//! (`offload.rs`), so that no client delays the heartbeats of another.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::task::{Context, Waker};

use async_executor::Executor;
use parking::{Parker, Unparker};
use parking_lot::Mutex;

use super::{timer, wake};
use crate::logging::log;
use crate::sync::per_process;

#[derive(Default)]
struct Driver {
    sessions: Executor<'static>,
    /// Wakes its thread, once there is one.
    thread: Mutex<Option<Unparker>>,
}

per_process! {
    static DRIVER: Driver = Driver::default();
}

thread_local! {
    static THIS: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is its thread: it waits for nothing, and runs no code of others.
pub(super) fn is_this_thread() -> bool {
    THIS.get()
}

/// Makes sure that the driver runs.
///
/// # Errors
/// When there is no thread to be had.
pub(super) fn start() -> io::Result<()> {
    let mut thread = DRIVER.thread.lock();
    if thread.is_none() {
        let (parker, unparker) = parking::pair();
        let waker = Waker::from(unparker.clone());
        let name = std::thread::Builder::new().name("zklock-driver".into());
        name.spawn(move || {
            THIS.set(true);
            // No panic comes so far; after one, the others go on.
            while wake::catch_panic(|| drive(&parker, &waker)).is_none() {}
        })?;
        *thread = Some(unparker);
    }
    Ok(())
}

/// Drives a session to its end.
pub(super) fn spawn(session: impl Future<Output = ()> + Send + 'static) {
    DRIVER.sessions.spawn(session).detach();
}

/// Has the driver look for the next time that somebody waits for.
pub(super) fn look_again() {
    // A client has started it before, but in a child that goes on with its parent's work.
    if let Err(error) = start() {
        log!(ERROR, %error, "no thread to drive sessions by");
    }
    if let Some(thread) = &*DRIVER.thread.lock() {
        thread.unpark();
    }
}

/// The thread's work, for as long as the process lives.
fn drive(parker: &Parker, waker: &Waker) {
    let mut context = Context::from_waker(waker);
    let mut sessions = pin!(DRIVER.sessions.run(std::future::pending::<()>()));
    loop {
        // Comes back after some of what is to be done, so that times are kept.
        let _ = sessions.as_mut().poll(&mut context);
        match timer::wake_due() {
            Some(next) => {
                parker.park_deadline(next);
            }
            None => parker.park(),
        }
    }
}
