//! This very program once more, as a process of its own that can be frozen and counted.
//!
//! What a child does is a test as well, which does nothing unless it finds its server's address in
//! the environment.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const HOSTS: &str = "ZKLOCK_TEST_CHILD_HOSTS";
/// What the child says starts so: the test harness talks on the same line.
const MARK: &str = "child: ";

/// The server's address, in a child.
pub fn hosts() -> Option<String> {
    std::env::var(HOSTS).ok()
}

/// Says a line to the parent.
pub fn say(line: impl std::fmt::Debug) {
    println!("\n{MARK}{line:?}");
}

/// A library, made of a C program beside this one, for a child to load before the C library; and the directory
/// in which it lies.
pub fn preloaded(source: &str) -> (PathBuf, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let library = directory.path().join(source).with_extension("so");
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
        .arg(&library)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/client").join(source))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (library, directory)
}

/// A child; killed when dropped.
pub struct Process {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    /// Starts the child whose work is the test of this name.
    pub fn start(test: &str, hosts: &str) -> Process {
        Process::start_with(test, hosts, &[])
    }

    /// As [`start`](Process::start), with more in its environment.
    pub fn start_with(test: &str, hosts: &str, variables: &[(&str, PathBuf)]) -> Process {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(HOSTS, hosts)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Process { child, stdout }
    }

    /// The next line that the child says; `None` when it has ended.
    pub fn hear(&mut self) -> Option<String> {
        let mut line = String::new();
        while self.stdout.read_line(&mut line).unwrap() > 0 {
            if let Some(said) = line.trim_end().strip_prefix(MARK) {
                return Some(said.to_owned());
            }
            line.clear();
        }
        None
    }

    /// Says a line to the child.
    pub fn answer(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the child's end; says whether it ended well.
    pub fn end(mut self) -> bool {
        while self.hear().is_some() {}
        self.child.wait().unwrap().success()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
