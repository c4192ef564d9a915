//! The last step before the command: this process becomes it.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use nix::sys::signal::SigSet;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

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
    // What the supervisor blocks, the command does not.
    let _ = SigSet::all().thread_unblock();
    let error = Command::new(&options.command[0]).args(&options.command[1..]).exec();
    say(format_args!("run {}: {error}", Path::new(&options.command[0]).display()));
    if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { CANNOT_RUN }
}
