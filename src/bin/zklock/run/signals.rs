//! The signals that `zklock run` takes for itself or hands on. They are blocked before there is a thread, and read
//! by one.

use std::io;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

const TAKEN: [Signal; 9] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
    Signal::SIGTSTP,
    Signal::SIGCONT,
];

/// Blocks them in this thread, and in all that it starts.
///
/// # Errors
/// No descriptors are left.
pub fn block() -> io::Result<SignalFd> {
    let set: SigSet = TAKEN.into_iter().collect();
    set.thread_block()?;
    Ok(SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC)?)
}

/// Hands each to `to`, on a thread of its own.
///
/// # Errors
/// There is no thread to be had.
pub fn listen(signals: SignalFd, to: impl Fn(i32) + Send + 'static) -> io::Result<()> {
    let read = move || {
        while let Ok(read) = signals.read_signal() {
            if let Some(signal) = read.and_then(|info| i32::try_from(info.ssi_signo).ok()) {
                to(signal);
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(read)?;
    Ok(())
}
