//! The program, and shell scripts for it to run.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Output, Stdio};

use test_support::Running;

/// A program that ignores no signal because this process does: as a job of a shell in the background it ignores some.
pub fn unhindered(program: &str) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal", "LC_ALL=C", program]);
    command
}

/// Whether this user may have namespaces. Says so where a test is skipped for want of them.
pub fn has_namespaces() -> bool {
    let mut command = unhindered("unshare");
    let tried = command.args(["-rfp", "--mount-proc", "true"]).status();
    let may = matches!(&tried, Ok(status) if status.success());
    if !may {
        println!("skipped: this user may have no namespaces: {tried:?}");
    }
    may
}

/// `zklock` with these arguments, and nothing of the user's settings.
pub fn zklock(args: &[&str]) -> Command {
    let mut command = unhindered(env!("CARGO_BIN_EXE_zklock"));
    command.args(args).env("HOME", "/nonexistent").env_remove("XDG_CONFIG_HOME");
    command.env_remove("ZKLOCK_HOSTS").env_remove("ZKLOCK_CONFIG").env_remove("ZKLOCK_STORE");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub fn start(args: &[&str]) -> Running {
    // Nobody reads what it says, so it goes where the test's goes.
    let mut command = zklock(args);
    Running(command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().expect("it starts"))
}

/// Runs it to its end.
pub fn finish(args: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = zklock(args).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (as_shells(status), text(stdout), text(stderr))
}

/// The status as a shell shows it.
pub fn as_shells(status: ExitStatus) -> Option<i32> {
    status.code().or_else(|| Some(128 + status.signal()?))
}

/// Neither gone nor a zombie.
pub fn is_running(pid: rustix::process::Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}
