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

/// Blocks them in this thread, and in all that it starts; but not those that whoever started this program wants to be
/// ignored, by `nohup` say: they stay so, also for the command.
///
/// # Errors
/// No descriptors are left.
pub fn block() -> io::Result<SignalFd> {
    let ignored = ignored(&std::fs::read_to_string("/proc/self/status")?);
    let set: SigSet = TAKEN.into_iter().filter(|taken| !ignored.contains(taken)).collect();
    set.thread_block()?;
    Ok(SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC)?)
}

/// Which of them are ignored, by what the kernel says of this process.
fn ignored(status: &str) -> Vec<Signal> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    TAKEN.into_iter().filter(|taken| mask >> (*taken as i32 - 1) & 1 == 1).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bit_is_the_first_signal() {
        let status = "Name:\tzklock\nSigIgn:\t0000000000001003\nSigCgt:\t0\n";
        assert_eq!(ignored(status), [Signal::SIGINT, Signal::SIGHUP]);
        assert!(ignored("").is_empty());
    }
}
