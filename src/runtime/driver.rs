//! The session driver: one thread for all clients of a process.
//!
//! It drives their sessions (`session.rs`) and the background tasks, and wakes timers (`timer.rs`).
//! Code that may block, and foreign code, runs on another thread (`offload.rs`), so that no client
//! delays the heartbeats of another.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};

use async_executor::Executor;
use parking::{Parker, Unparker};
use parking_lot::Mutex;

use super::offload::{Role, take_role};
use super::timer;
use crate::logging::log;
use crate::panics::catch_panic;
use crate::sync::per_process;
use crate::threads;

struct Driver {
    sessions: Executor<'static>,
    /// It ends when it has nothing to do.
    is_to_end: AtomicBool,
    unparker: Unparker,
}

per_process! {
    /// The one that runs.
    static DRIVER: Mutex<Option<Arc<Driver>>> = Mutex::default();
}

/// Makes sure that the driver runs.
///
/// # Errors
/// When there is no thread to be had.
pub(crate) fn start() -> io::Result<()> {
    running(&mut DRIVER.lock()).map(drop)
}

/// The one that runs, started if there is none.
fn running(driver: &mut Option<Arc<Driver>>) -> io::Result<&Driver> {
    match driver {
        Some(driver) => Ok(driver),
        None => Ok(driver.insert(begin()?)),
    }
}

fn begin() -> io::Result<Arc<Driver>> {
    let (parker, unparker) = parking::pair();
    let (sessions, is_to_end) = (Executor::new(), AtomicBool::new(false));
    let driver = Arc::new(Driver { sessions, is_to_end, unparker: unparker.clone() });
    let own = Arc::clone(&driver);
    threads::spawn("zklock-driver", move || {
        take_role(Role::Driver);
        let waker = Waker::from(own.unparker.clone());
        // No panic comes so far; after one, the others go on.
        while catch_panic(|| drive(&own, &parker, &waker)).is_none() {}
    })?;
    timer::wakes(unparker);
    Ok(driver)
}

/// Drives a session to its end.
pub(crate) fn spawn(session: impl Future<Output = ()> + Send + 'static) {
    let mut driver = DRIVER.lock();
    match running(&mut driver) {
        Ok(driver) => driver.sessions.spawn(session).detach(),
        Err(error) => {
            drop(driver);
            log!(ERROR, %error, "no thread to drive a session: it is given up");
        }
    }
}

/// Has the driver end once it has nothing to do. It runs again when it is needed.
#[cfg(feature = "capi")]
pub(crate) fn end_when_idle() {
    if let Some(driver) = &*DRIVER.lock() {
        driver.is_to_end.store(true, Ordering::Release);
        driver.unparker.unpark();
    }
}

/// The thread's work, until it is to end.
fn drive(driver: &Driver, parker: &Parker, waker: &Waker) {
    let mut context = Context::from_waker(waker);
    let mut sessions = pin!(driver.sessions.run(std::future::pending::<()>()));
    loop {
        // Comes back after some of what is to be done, so that times are kept.
        let _ = sessions.as_mut().poll(&mut context);
        match timer::wake_due() {
            Some(next) => {
                parker.park_deadline(next);
            }
            None if driver.ends() => return,
            None => parker.park(),
        }
    }
}

impl Driver {
    /// Whether it ends now. From then on there is none.
    fn ends(&self) -> bool {
        if !self.is_to_end.load(Ordering::Acquire) {
            return false;
        }
        let mut running = DRIVER.lock();
        let ends = self.sessions.is_empty();
        if ends {
            *running = None;
        }
        ends
    }
}
