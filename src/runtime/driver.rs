//! The session driver: one thread for all clients of a process.
//!
//! It drives their sessions (`session.rs`) and the tasks in the background, and wakes those who wait
//! for a time (`timer.rs`). Whatever may block, or is somebody else's code, runs on another thread
//! (`offload.rs`), so that no client delays the heartbeats of another.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::task::{Context, Waker};

use async_executor::Executor;
use parking::Parker;
use parking_lot::Mutex;

use super::role::{self, Role};
use super::timer;
use crate::panics::catch_panic;
use crate::sync::per_process;

#[derive(Default)]
struct Driver {
    sessions: Executor<'static>,
    is_running: Mutex<bool>,
}

per_process! {
    static DRIVER: Driver = Driver::default();
}

/// Makes sure that the driver runs.
///
/// # Errors
/// When there is no thread to be had.
pub(crate) fn start() -> io::Result<()> {
    let mut is_running = DRIVER.is_running.lock();
    if !*is_running {
        let (parker, unparker) = parking::pair();
        let waker = Waker::from(unparker.clone());
        let name = std::thread::Builder::new().name("zklock-driver".into());
        name.spawn(move || {
            role::take(Role::Driver);
            // No panic comes so far; after one, the others go on.
            while catch_panic(|| drive(&parker, &waker)).is_none() {}
        })?;
        timer::wakes(unparker);
        *is_running = true;
    }
    Ok(())
}

/// Drives a session to its end.
pub(crate) fn spawn(session: impl Future<Output = ()> + Send + 'static) {
    DRIVER.sessions.spawn(session).detach();
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
