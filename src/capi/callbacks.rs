//! The thread that runs the program's callbacks: one per client, started when it is first needed.
//!
//! zklock never waits for this thread. So a callback may block, call any function, and free any object.
//! The thread is neither the driver, which proves the sessions, nor a thread of the C client, which
//! reads answers. It ends when the client, its locks, guards and attempts are gone and their last
//! callback has run.

use std::ffi::c_void;
use std::sync::mpsc::{Receiver, Sender, channel};

use parking_lot::Mutex;

use super::boundary::Failure;
use super::cancellation::Uncancelled;
use crate::error::Code;
use crate::panics::catch_panic;
use crate::scarcity;
use crate::threads;

/// Told when a `userdata` is not needed any more: runs exactly once for each that was taken, after
/// the last callback that gets it, on zklock's callback thread. May be NULL.
#[allow(non_camel_case_types)]
pub type zkl_finalizer_fn = Option<unsafe extern "C" fn(userdata: *mut c_void)>;

type Job = Box<dyn FnOnce() + Send>;

/// A client's callback thread, running or not.
#[derive(Default)]
pub(super) struct CallbackThread {
    jobs: Mutex<Option<Sender<Job>>>,
}

/// A way to the callback thread, which keeps it running.
pub(super) struct Line(Sender<Job>);

impl CallbackThread {
    /// Starts the thread if need be: when something is registered, so that what happens later can
    /// be told for certain.
    pub(super) fn line(&self, function: &'static str) -> Result<Line, Failure> {
        let mut jobs = self.jobs.lock();
        if let Some(jobs) = &*jobs {
            return Ok(Line(jobs.clone()));
        }
        let (sender, receiver) = channel();
        threads::spawn("zklock-callback", move || serve(&receiver)).map_err(|error| {
            let message = format!("{function}: {}", scarcity::describe(&error));
            Failure::new(Code::SYSTEM_ERROR.as_raw(), message)
        })?;
        *jobs = Some(sender.clone());
        Ok(Line(sender))
    }
}

impl Line {
    pub(super) fn run(&self, job: impl FnOnce() + Send + 'static) {
        // The thread serves for as long as there is a line.
        let _ = self.0.send(Box::new(job));
    }
}

fn serve(jobs: &Receiver<Job>) {
    // Of the program's own callbacks, too: their frames lie on ours.
    let _uncancelled = Uncancelled::begin();
    for job in jobs {
        catch_panic(job);
    }
}

/// The pointer that the program's callbacks get back, and how it hears that we no longer use it.
pub(super) struct Userdata {
    pointer: *mut c_void,
    finalizer: zkl_finalizer_fn,
}

// SAFETY: zklock never looks behind the pointer. That its callbacks come on another thread is what
// the program agreed to when it registered them.
unsafe impl Send for Userdata {}
// SAFETY: as above: all that is shared is the pointer's value.
unsafe impl Sync for Userdata {}

impl Userdata {
    pub(super) fn new(pointer: *mut c_void, finalizer: zkl_finalizer_fn) -> Userdata {
        Userdata { pointer, finalizer }
    }

    pub(super) fn has_finalizer(&self) -> bool {
        self.finalizer.is_some()
    }

    pub(super) fn pointer(&self) -> *mut c_void {
        self.pointer
    }

    /// Runs the finalizer. On the callback thread only.
    pub(super) fn finish(self) {
        if let Some(finalizer) = self.finalizer {
            // SAFETY: the program gave the function for this pointer; `self` is consumed, so it
            // runs once.
            unsafe { finalizer(self.pointer) };
        }
    }
}
