//! The program, and shell scripts for it to run.

use std::process::{Command, Output, Stdio};

use test_support::Running;

/// A program that ignores no signal because this process does: as a job of a shell in the background it ignores some.
pub fn unhindered(program: &str) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal", program]);
    command
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
    (status.code(), text(stdout), text(stderr))
}
