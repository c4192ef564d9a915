//! Signals that ask this program to end.

use std::io;
use std::thread;

use nix::sys::signal::Signal;
use signal_hook::iterator::Signals;

/// Calls `end` whenever a signal asks this process to end: Ctrl-C, TERM, or the end of its terminal. Signals that it was
/// started to ignore, by `nohup` say, stay ignored.
///
/// # Errors
/// There is no thread or descriptor to be had.
pub fn when_asked_to_end(mut end: impl FnMut() + Send + 'static) -> io::Result<()> {
    let ignored = ignored()?;
    let asking = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
    let heard = asking.into_iter().filter(|signal| !ignored.contains(signal));
    let mut signals = Signals::new(heard.map(|signal| signal as i32))?;
    let listen = move || signals.forever().for_each(|_| end());
    thread::Builder::new().name("signals".to_owned()).spawn(listen)?;
    Ok(())
}

/// The signals that this process ignores.
pub fn ignored() -> io::Result<Vec<Signal>> {
    Ok(ignored_of(&std::fs::read_to_string("/proc/self/status")?))
}

/// By what the kernel says of a process.
fn ignored_of(status: &str) -> Vec<Signal> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    Signal::iterator().filter(|signal| mask >> (*signal as i32 - 1) & 1 == 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bit_is_the_first_signal() {
        let status = "Name:\tzklock\nSigIgn:\t0000000000001003\nSigCgt:\t0\n";
        assert_eq!(ignored_of(status), [Signal::SIGHUP, Signal::SIGINT, Signal::SIGPIPE]);
        assert!(ignored_of("").is_empty());
    }
}
