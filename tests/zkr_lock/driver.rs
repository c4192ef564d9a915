//! `driver.c`, running: told a line at a time.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::c_programs::{build, command, valgrind};

/// Longer than any command takes, also under valgrind on a busy machine.
const PATIENCE: Duration = Duration::from_secs(240);

pub struct Driver {
    child: Child,
    stdin: Option<ChildStdin>,
    answers: Receiver<String>,
}

fn program() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("tests/zkr_lock/driver.c", "driver", &[])).clone()
}

impl Driver {
    pub fn start() -> Driver {
        Driver::run(command(program()))
    }

    /// Compiled as programs were for ZooKeeper before 3.4.14.
    pub fn start_returning_owner() -> Driver {
        static BUILT: OnceLock<PathBuf> = OnceLock::new();
        let program = BUILT.get_or_init(|| {
            build("tests/zkr_lock/driver.c", "driver_owner", &["-DZKR_LOCK_RETURNS_OWNER"])
        });
        Driver::run(command(program))
    }

    /// Under valgrind, which ends it with an error when it touches memory that is not its own or,
    /// with `leaks`, loses some.
    pub fn start_under_valgrind(leaks: bool) -> Driver {
        Driver::run(valgrind(&program(), leaks))
    }

    fn run(mut command: Command) -> Driver {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, answers) = channel();
        // Ends with the program.
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Driver { child, stdin, answers }
    }

    /// Has it do one thing, and waits until it is done.
    pub fn ask(&mut self, command: &str) -> String {
        self.begin(command);
        self.answer(command)
    }

    /// Has it begin one thing; the [`answer`](Driver::answer) comes later.
    pub fn begin(&mut self, command: &str) {
        let stdin = self.stdin.as_mut().expect("it runs");
        writeln!(stdin, "{command}").unwrap_or_else(|error| panic!("{command}: {error}"));
    }

    pub fn answer(&mut self, command: &str) -> String {
        let answer = self.answers.recv_timeout(PATIENCE);
        answer.unwrap_or_else(|error| panic!("{command}: no answer: {error}")).trim().to_owned()
    }

    /// Has it do one thing, which must have that answer.
    #[track_caller]
    pub fn expect(&mut self, command: &str, answer: &str) {
        assert_eq!(self.ask(command), answer, "{command}");
    }

    /// Lets it end by itself, as programs do that never clean up; it must end well.
    pub fn end(mut self) {
        drop(self.stdin.take());
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "the program does not end");
            std::thread::sleep(Duration::from_millis(10));
        };
        assert!(status.success(), "the program ended with {status}");
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // Only where a test has failed: it may hang.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
