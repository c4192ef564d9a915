//! The last step before the command: a process that waits for the lock, and becomes the command once it is held. Loading
//! a program and moving it into a control group take longer than an acquire, so both happen meanwhile.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use nix::sys::signal::SigSet;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process,
    set_parent_process_death_signal, waitpid,
};
use rustix::stdio::stdin;
use rustix::time::Timespec;

use super::wire;
use crate::cgroup::Cgroup;
use crate::output::say;

/// As `env` and `timeout` have it: found, but not to be run.
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;
/// Nobody reads it: the supervisor is gone.
const ABANDONED: u8 = 125;

#[derive(Args, Debug)]
pub struct ExecOptions {
    /// Who waits for the command: with that process it is to die
    #[arg(long)]
    supervisor: i32,

    /// The control group that it is to be in
    #[arg(long)]
    cgroup: Option<PathBuf>,

    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// A process that waits to become the command.
pub struct Prepared {
    pub pid: Pid,
    socket: OwnedFd,
}

/// Tells whether the process could become the command.
pub struct Answer(OwnedFd);

impl Answer {
    /// Whether there is no such command, or it can't be run. Known once the process has ended.
    pub fn is_refusal(&self) -> bool {
        let at_once = Some(&Timespec::default());
        let is_there = poll(&mut [PollFd::new(&self.0, PollFlags::IN)], at_once) == Ok(1);
        is_there && wire::receive(&self.0).is_some()
    }
}

impl Prepared {
    /// Starts it, in that process group (0: in one of its own).
    ///
    /// # Errors
    /// There is no process or no descriptor to be had.
    pub fn start(
        path: &str,
        command: &[OsString],
        group: i32,
        cgroup: Option<&Cgroup>,
    ) -> io::Result<Prepared> {
        let (socket, theirs) = wire::pair()?;
        // This program again, even if another has taken its place on the disk.
        let mut process = Command::new("/proc/self/exe");
        let supervisor = getpid().as_raw_nonzero().to_string();
        process.arg0("zkl-exec").args(["become", "--supervisor", &supervisor]);
        if let Some(cgroup) = cgroup {
            process.arg("--cgroup").arg(cgroup.path());
        }
        process.arg("--").args(command).process_group(group).stdin(theirs);
        process.env("ZKLOCK_PATH", path);
        // It would tell systemd of itself.
        process.env_remove("NOTIFY_SOCKET");
        Ok(Prepared { pid: Pid::from_child(&process.spawn()?), socket })
    }

    /// The lock is held: has it become the command.
    ///
    /// # Errors
    /// It is gone.
    pub fn become_command(
        &self,
        token: i64,
        session: i64,
        input: Option<&OwnedFd>,
    ) -> io::Result<()> {
        // A key on the terminal may have stopped it while it waited. This comes first: after the message, it could undo
        // a stop of the command.
        kill_process(self.pid, Signal::CONT)?;
        wire::send(&self.socket, &format!("{token} {session:#x}"), input.map(AsFd::as_fd))
    }

    /// Keep this to learn whether it could.
    pub fn answer(self) -> Answer {
        Answer(self.socket)
    }

    /// Kills it, if it lives, and says how it has ended.
    pub fn end(self) -> Option<WaitStatus> {
        let _ = kill_process(self.pid, Signal::KILL);
        waitpid(Some(self.pid), WaitOptions::empty()).ok().flatten().map(|(_, status)| status)
    }
}

/// Becomes the command. What it gives is the exit status where that can't be.
pub fn exec(options: &ExecOptions) -> u8 {
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        say(format_args!("ask to be killed with the supervisor: {error}"));
        return ABANDONED;
    }
    // It may have died before that was asked for.
    if getppid() != Pid::from_raw(options.supervisor) {
        return ABANDONED;
    }
    if let Some(cgroup) = &options.cgroup {
        // Without the group, descendants are found by their parents.
        let _ = Cgroup::at(cgroup.clone()).enter();
    }
    // What the supervisor blocks, the command does not. A signal that comes while this process waits may end it: the
    // supervisor starts another.
    let _ = SigSet::all().thread_unblock();
    let Some((held, input)) = wire::receive(stdin()) else { return ABANDONED };
    // `exec` closes it.
    let supervisor = fcntl_dupfd_cloexec(stdin(), 3);
    let (token, session) = held.split_once(' ').unwrap_or_default();
    let mut command = Command::new(&options.command[0]);
    command.args(&options.command[1..]).env("ZKLOCK_TOKEN", token).env("ZKLOCK_SESSION", session);
    let error = command.stdin(input.map_or_else(Stdio::null, Stdio::from)).exec();
    let _ = supervisor.map(|supervisor| wire::send(supervisor, "refused", None));
    say(format_args!("run {}: {error}", Path::new(&options.command[0]).display()));
    if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { CANNOT_RUN }
}
