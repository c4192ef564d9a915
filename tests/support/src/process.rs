//! Programs that run beside a test, and are told what to do a line at a time.

use std::fmt::{Debug, Display};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Longer than any program needs for its next line or its end, also under valgrind on a busy machine.
const LIMIT: Duration = Duration::from_secs(240);

/// What a test that runs as a program of its own says starts so: the test harness talks on the same line.
const MARK: &str = "child: ";
/// What such a test is about is in the environment.
const ABOUT: &str = "ZKLOCK_TEST_CHILD";

/// A process that is killed with the test.
pub struct Running(pub Child);

impl Running {
    /// Stops it, as a process is that gets no processor.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        // It may have ended; its id is its own until it is waited for.
        let _ = kill_process(Pid::from_child(&self.0), signal);
    }

    /// Waits for its end, which comes by itself.
    pub fn end(mut self) -> ExitStatus {
        let deadline = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "the process {} does not end", self.0.id());
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The lines without the last one of a program that was ended in the middle of it: half a line says something
/// else, or nothing.
fn whole_lines(mut from: impl BufRead) -> impl Iterator<Item = String> {
    std::iter::from_fn(move || {
        let mut line = String::new();
        from.read_line(&mut line).ok()?;
        line.strip_suffix('\n').map(str::to_owned)
    })
}

/// A process that is told what to do, and says what it did.
pub struct Process {
    name: String,
    /// For signals. It is killed before its input ends, which it could take for the order to end in peace.
    pub running: Running,
    stdin: Option<ChildStdin>,
    said: Receiver<String>,
}

impl Process {
    /// Starts a program.
    pub fn start(command: &mut Command) -> Process {
        Process::start_with(command, Some)
    }

    /// Starts this very test program once more, with that test alone, which does nothing unless it
    /// finds out [what it is about](child_about).
    pub fn start_test(test: &str, about: &str) -> Process {
        Process::start_test_with(test, about, &[])
    }

    /// As [`start_test`](Process::start_test), with more in its environment.
    pub fn start_test_with(test: &str, about: &str, variables: &[(&str, PathBuf)]) -> Process {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        Process::start_test_by(command, test, about)
    }

    /// As [`start_test`](Process::start_test), where no other process sees what it mounts. `None`: the machine does not
    /// allow that, and a line says so.
    pub fn start_test_with_own_mounts(test: &str, about: &str) -> Option<Process> {
        let unshare = || {
            let mut command = Command::new("unshare");
            command.arg("--map-root-user").arg("--mount");
            command
        };
        let tried = unshare().arg("true").output();
        if !tried.as_ref().is_ok_and(|tried| tried.status.success()) {
            println!("skipped: this process may not mount anything: {tried:?}");
            return None;
        }
        let mut command = unshare();
        command.arg(std::env::current_exe().unwrap());
        Some(Process::start_test_by(command, test, about))
    }

    fn start_test_by(mut command: Command, test: &str, about: &str) -> Process {
        // It would say nothing, and succeed.
        let list = ["--exact", test, "--list"];
        let listed = Command::new(std::env::current_exe().unwrap()).args(list).output().unwrap();
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        assert!(listed.contains(&format!("{test}: test")), "there is no test {test}: {listed}");
        command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(ABOUT, about);
        Process::start_with(&mut command, |line| line.strip_prefix(MARK).map(str::to_owned))
    }

    fn start_with(
        command: &mut Command,
        is_for_us: impl Fn(String) -> Option<String> + Send + 'static,
    ) -> Process {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, said) = channel();
        // Ends with the program; what nobody listens to any more is read, so that it need not wait to say it.
        thread::spawn(move || {
            for line in whole_lines(stdout).filter_map(is_for_us) {
                let _ = sender.send(line);
            }
        });
        Process { name: format!("{command:?}"), stdin, said, running: Running(child) }
    }

    /// Says a line to the program. One that has ended meanwhile shows that by saying nothing.
    pub fn tell(&mut self, line: impl Display) {
        let stdin = self.stdin.as_mut().expect("only the end closes it");
        let _ = writeln!(stdin, "{line}");
    }

    /// The next line that the program says; `None` when it has ended.
    pub fn hear(&mut self) -> Option<String> {
        match self.said.recv_timeout(LIMIT) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("{}: hangs", self.name),
        }
    }

    /// What [`hear`](Process::hear) would give, if that is there by now.
    pub fn said(&mut self) -> Option<Option<String>> {
        match self.said.try_recv() {
            Ok(line) => Some(Some(line)),
            Err(TryRecvError::Disconnected) => Some(None),
            Err(TryRecvError::Empty) => None,
        }
    }

    /// Says a line to the program; gives its answer.
    pub fn ask(&mut self, line: impl Display) -> String {
        self.tell(&line);
        self.hear().unwrap_or_else(|| panic!("{line}: {} has ended", self.name))
    }

    /// The program says this next.
    #[track_caller]
    pub fn expect(&mut self, line: &str) {
        assert_eq!(self.hear().as_deref(), Some(line), "{}", self.name);
    }

    /// Has nothing more to say to the program.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Has nothing more to say to the program, and waits for its end.
    pub fn end(mut self) -> ExitStatus {
        self.close_input();
        self.running.end()
    }
}

/// In a test that was [started](Process::start_test) as a program of its own: what it is about.
pub fn child_about() -> Option<String> {
    std::env::var(ABOUT).ok()
}

/// Says a line to the test that started this one.
pub fn say(line: impl Debug) {
    println!("\n{MARK}{line:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_line_is_none() {
        for (written, lines) in
            [("ask reset\nask r", vec!["ask reset"]), ("a\n\nb\n", vec!["a", "", "b"])]
        {
            assert_eq!(whole_lines(written.as_bytes()).collect::<Vec<_>>(), lines);
        }
    }
}
