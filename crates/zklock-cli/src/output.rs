//! What goes to the terminal.

use std::fmt;
use std::io::{self, ErrorKind, Write, stdout};
use std::os::fd::AsFd;
use std::process::exit;
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::failure::{FAILED, Failure};

/// As a shell shows the death by SIGPIPE, which ends other programs when their reader has gone.
pub const READER_GONE: i32 = 128 + 13;

/// Writes to stdout. Ends the program if that fails.
pub fn show(text: fmt::Arguments) {
    expect_written(write(text));
}

/// Writes to stdout.
///
/// # Errors
/// It did not arrive.
pub fn write(text: fmt::Arguments) -> io::Result<()> {
    let mut stdout = stdout().lock();
    stdout.write_fmt(text).and_then(|()| stdout.flush())
}

/// Ends the program if what it wrote to stdout did not arrive; without a word if nobody reads it any more.
pub fn expect_written(written: io::Result<()>) {
    let Err(error) = written else { return };
    if error.kind() == ErrorKind::BrokenPipe {
        exit(READER_GONE);
    }
    say(format_args!("write to stdout: {error}"));
    exit(FAILED.into());
}

/// Calls `gone` when nobody is at the other end: the pipe has no reader, or the terminal is closed.
///
/// # Errors
/// No thread can be started.
pub fn when_gone(
    end: impl AsFd + Send + 'static,
    gone: impl FnOnce() + Send + 'static,
) -> Result<(), Failure> {
    let wait = move || {
        loop {
            let mut polled = [PollFd::new(&end, PollFlags::empty())];
            match poll(&mut polled, None) {
                Err(Errno::INTR) => {}
                Ok(_) if polled[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) => {
                    return gone();
                }
                _ => return,
            }
        }
    };
    let started = thread::Builder::new().name("hang-up".to_owned()).spawn(wait);
    started.map(drop).map_err(|error| Failure::new(format!("start a thread: {error}")))
}

/// Writes a line to stderr.
pub fn say(line: fmt::Arguments) {
    let _ = writeln!(io::stderr().lock(), "zklock: {line}");
}
