//! Runs the sessions: on the driver, or in the library's own tests on a simulated machine. There, only the machine, the
//! clock, the timers and the workers are not production code.

use std::future::Future;
use std::io;

use super::driver;
#[cfg(feature = "capi")]
use super::offload;
#[cfg(test)]
use super::simulated::current as simulated;

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

/// Drives a session to its end.
pub(crate) fn drive(session: impl Future<Output = ()> + Send + 'static) {
    #[cfg(test)]
    if let Some(machine) = simulated() {
        return machine.drive(Box::pin(session));
    }
    driver::spawn(session);
}

/// Ends the threads that wait for work, once there is none.
#[cfg(feature = "capi")]
pub(crate) fn end_when_idle() {
    driver::end_when_idle();
    offload::end_when_idle();
}
