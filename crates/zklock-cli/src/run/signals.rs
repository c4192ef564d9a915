//! The signals that `zklock run` takes for itself or hands on. They are blocked before there is a thread.

use std::io;

use nix::sys::signal::{SigSet, Signal, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{getpid, getsid};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::interrupts::ignored;

/// The origin (`si_code`) of signals that the kernel sent.
const BY_KERNEL: i32 = 0x80;

const TAKEN: [Signal; 11] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
    Signal::SIGTSTP,
    Signal::SIGTTIN,
    Signal::SIGTTOU,
    Signal::SIGCONT,
];

/// A signal to this process.
#[derive(Clone, Copy, Debug)]
pub struct Caught {
    pub signal: i32,
    /// A key or the end of the terminal sent it, so the whole process group received it.
    pub is_of_terminal: bool,
}

pub struct Signals {
    fd: SignalFd,
    /// Locked from reading a signal until it is handed on, so that none is in between for another reader.
    reading: Mutex<()>,
}

impl Signals {
    /// Blocks them in this thread and in all that it starts. Signals that this program was started to ignore, by `nohup`
    /// say, stay ignored, also for the command.
    ///
    /// # Errors
    /// No descriptors are left.
    pub fn block() -> io::Result<Signals> {
        let ignored = ignored()?;
        let set: SigSet = TAKEN.into_iter().filter(|taken| !ignored.contains(taken)).collect();
        set.thread_block()?;
        let fd = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        Ok(Signals { fd, reading: Mutex::new(()) })
    }

    /// Waits until there is one.
    pub fn wait(&self) {
        let _ = poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], None);
    }

    /// Hands on all that have come.
    pub fn read(&self, mut hand_on: impl FnMut(Caught)) {
        let _reading = self.reading.lock();
        while let Ok(Some(info)) = self.fd.read_signal() {
            if let Ok(signal) = i32::try_from(info.ssi_signo) {
                // If a terminal goes away, the kernel tells only the leader of the session.
                let is_for_leader = signal == Signal::SIGHUP as i32 && getsid(None) == Ok(getpid());
                let is_of_terminal = info.ssi_code == BY_KERNEL && !is_for_leader;
                hand_on(Caught { signal, is_of_terminal });
            }
        }
    }
}

/// Ends this process by that signal: a shell ends its script if a command died of Ctrl-C. Returns if the signal does
/// not end it.
pub fn die_of(signal: i32) {
    let Ok(signal) = Signal::try_from(signal) else { return };
    // The core would be of this program.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let _ = SigSet::from_iter([signal]).thread_unblock();
    let _ = raise(signal);
}
