//! What sessions live on: threads, and the C client. In the library's own tests a thread can have a
//! simulated machine instead: then this, the clock and the timers are all that is not production code.

use std::future::Future;
use std::io;

#[cfg(test)]
use super::simulated::current as simulated;
use super::{driver, offload};

/// Makes sure that there is something to drive sessions.
///
/// # Errors
/// When there is no thread to be had.
pub(crate) fn start() -> io::Result<()> {
    #[cfg(test)]
    if simulated().is_some() {
        return Ok(());
    }
    driver::start()
}

/// Has the threads end that wait for work, once there is none.
#[cfg(feature = "capi")]
pub(crate) fn end_when_idle() {
    driver::end_when_idle();
    offload::end_when_idle();
}

/// Drives a session to its end.
pub(crate) fn drive(session: impl Future<Output = ()> + Send + 'static) {
    #[cfg(test)]
    if let Some(machine) = simulated() {
        return machine.drive(Box::pin(session));
    }
    driver::spawn(session);
}

/// Runs what may block, on a thread of its own.
pub(crate) fn run(job: impl FnOnce() + Send + 'static) {
    #[cfg(test)]
    if simulated().is_some() {
        return job();
    }
    offload::run(job);
}

/// As [`run`]; where there is no thread to be had, nothing is done. Gives whether there is one.
pub(crate) fn try_run(job: impl FnOnce() + Send + 'static) -> bool {
    #[cfg(test)]
    if simulated().is_some() {
        job();
        return true;
    }
    offload::try_run(job)
}

/// As [`run`]; gives the result of `job`, or `None` if it has panicked. Where nobody waits for the
/// result any more, it is dropped on that thread.
pub(crate) async fn result<T: Send + 'static>(
    job: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (send, result) = oneshot::async_channel();
    run(move || drop(send.send(job())));
    result.await.ok()
}
