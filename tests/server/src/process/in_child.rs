//! What a child does between fork and exec.

#![allow(unsafe_code, reason = "fork, exec and close_range have no safe form")]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::Signal;

/// Arranges that the child gets that signal when the calling thread dies, keeps none of this process's open files, and gets no
/// signal from this process's terminal (so that a program can tidy up after Ctrl-C while its servers still serve).
pub(super) fn prepare(command: &mut Command, signal: Signal) {
    command.process_group(0);
    #[cfg(target_os = "linux")]
    {
        let parent = rustix::process::getpid();
        let in_child = move || die_with(parent, signal).and_then(|()| keep_no_files());
        // SAFETY: between fork and exec of a process with threads only async-signal-safe calls are sound. `in_child`
        // makes four plain system calls and touches neither the heap nor a lock; its two functions below keep to it.
        unsafe { command.pre_exec(in_child) };
    }
}

#[cfg(target_os = "linux")]
fn die_with(parent: rustix::process::Pid, signal: Signal) -> io::Result<()> {
    use rustix::process::{getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(signal))?;
    // The parent may have died before the line above: then no signal will ever come.
    if getppid() == Some(parent) { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
}

/// ZooKeeper's C client opens its sockets without close-on-exec. A server that inherited one would keep a
/// connection alive which its owner has closed. Marked rather than closed: the standard library still needs its pipe.
#[cfg(target_os = "linux")]
fn keep_no_files() -> io::Result<()> {
    const FIRST_AFTER_STDERR: libc::c_uint = 3;
    // SAFETY: close_range takes three plain numbers and only marks this process's own descriptors.
    let _ = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            FIRST_AFTER_STDERR,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    // Kernels before 5.11 cannot do it; servers start there all the same.
    Ok(())
}
