//! A program that runs, and what it says.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use super::build::Mode;
use super::c_programs;

/// Longer than the slowest program takes on a busy machine; a program that hangs is killed then.
const PATIENCE: Duration = Duration::from_secs(240);

pub struct Process {
    child: Arc<Mutex<Child>>,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    /// Ends the watch over the process when it is dropped.
    _watched: mpsc::Sender<()>,
    watch: JoinHandle<()>,
}

impl Process {
    pub fn start(program: &Path, mode: Mode, arguments: &[String]) -> Process {
        let mut command = match mode {
            Mode::Valgrind => c_programs::valgrind(program, true),
            _ => c_programs::command(program),
        };
        if mode == Mode::Sanitized {
            command.env("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0");
            command.env("LSAN_OPTIONS", leaks_of_the_c_client(program));
        }
        let mut child =
            command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let child = Arc::new(Mutex::new(child));
        let (watched, end) = mpsc::channel::<()>();
        let victim = Arc::clone(&child);
        let watch = std::thread::spawn(move || {
            if end.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
                let _ = victim.lock().unwrap().kill();
            }
        });
        Process { child, stdin, stdout, _watched: watched, watch }
    }

    /// The next line that the program says; `None` when it has ended.
    pub fn hear(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.stdout.read_line(&mut line).unwrap();
        (read > 0).then(|| line.trim_end().to_owned())
    }

    pub fn answer(&mut self, line: &str) {
        // A program that has ended meanwhile says so by its status.
        let _ = writeln!(self.stdin, "{line}");
    }

    /// Waits for the end; says how it was.
    pub fn end(self) -> std::process::ExitStatus {
        let Process { child, stdin, stdout, _watched, watch } = self;
        drop((stdin, stdout));
        // In looks, between which the watch can kill it.
        let status = loop {
            if let Some(status) = child.lock().unwrap().try_wait().unwrap() {
                break status;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        drop(_watched);
        watch.join().unwrap();
        status
    }
}

/// What `zookeeper_close` loses (see `tests/valgrind.supp`), for the leak sanitizer, which can't name
/// the functions of a stripped library.
fn leaks_of_the_c_client(program: &Path) -> String {
    let file = program.with_extension("supp");
    std::fs::write(&file, "leak:libzookeeper_mt\n").unwrap();
    format!("suppressions={}:print_suppressions=0", file.display())
}
