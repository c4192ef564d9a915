//! The library as C programs link it, and the programs of this directory, built and run.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::LazyLock;

/// What every C program here must get through.
const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A directory with a copy of the shared library, which a cargo of its own builds: a test's own
/// build has none. It is asked for with the static one, as by other tests, so that it is built once.
fn library() -> &'static Path {
    static BUILT: LazyLock<PathBuf> = LazyLock::new(|| {
        let own = std::env::current_exe().unwrap();
        let target = own.ancestors().nth(3).expect("target/debug/deps/this");
        let output = Command::new(env!("CARGO"))
            .args(["rustc", "--lib", "--features", "capi", "--crate-type", "cdylib,staticlib"])
            .args(["--message-format", "json-render-diagnostics", "--target-dir"])
            .arg(target)
            .current_dir(root())
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(output.status.success(), "the library is not built");
        let messages = String::from_utf8(output.stdout).unwrap();
        let built = messages
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .filter(|message| message["target"]["name"] == "zklock")
            .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default())
            .filter_map(|file| file.as_str().map(PathBuf::from))
            .find(|file| file.extension().is_some_and(|e| e == std::env::consts::DLL_EXTENSION));
        let built = built.expect("a shared library");
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("capi_queue");
        std::fs::create_dir_all(&place).unwrap();
        let name = built.file_name().unwrap();
        let copy = tempfile::NamedTempFile::new_in(&place).unwrap();
        std::fs::copy(&built, copy.path()).unwrap();
        copy.persist(place.join(name)).unwrap();
        place
    });
    &BUILT
}

/// Whether the compiler takes `source` with the project's headers and these arguments.
pub fn compiles(compiler: &str, arguments: &[&str], source: &Path) -> bool {
    let status = Command::new(compiler)
        .args(WARNINGS)
        .args(arguments)
        .arg("-fsyntax-only")
        .arg("-I")
        .arg(root().join("include"))
        .arg(source)
        .status();
    status.unwrap_or_else(|error| panic!("{compiler}: {error}")).success()
}

/// A file of this directory.
pub fn source(name: &str) -> PathBuf {
    root().join("tests/capi_queue").join(name)
}

/// Builds a program from its C file, once for each run of the tests.
pub fn build(file: &Path) -> PathBuf {
    let name = file.file_stem().and_then(OsStr::to_str).unwrap();
    let directory = tempfile::tempdir_in(library()).unwrap();
    let made = directory.path().join(name);
    let status = Command::new("cc")
        .args(WARNINGS)
        .args(["-std=c99", "-D_GNU_SOURCE", "-DTHREADED", "-g", "-pthread", "-I"])
        .arg(root().join("include"))
        .arg(file)
        .arg("-o")
        .arg(&made)
        .arg("-L")
        .arg(library())
        .args(["-lzklock", "-lzookeeper_mt"])
        .status()
        .unwrap();
    assert!(status.success(), "{} does not build", file.display());
    // Renamed into place: several test processes may build the same program at once.
    let place = library().join(name);
    std::fs::rename(made, &place).unwrap();
    place
}

/// A command that finds the library.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", library());
    command
}

/// A program that is ended with the test.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `queue_tool.c`, told what to do a line at a time.
pub struct Tool {
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    running: Running,
}

/// What a look at the head of a queue gave.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub code: i32,
    pub length: i32,
    pub data: Vec<u8>,
}

/// An element was delivered.
pub fn element(data: &[u8]) -> Answer {
    Answer { code: 0, length: i32::try_from(data.len()).unwrap(), data: data.to_vec() }
}

/// No data were delivered.
pub fn nothing(code: i32, length: i32) -> Answer {
    Answer { code, length, data: Vec::new() }
}

/// The queue is empty.
pub fn empty() -> Answer {
    nothing(0, -1)
}

impl Tool {
    pub fn start(hosts: &str, path: &str) -> Tool {
        Tool::with_session_timeout(hosts, path, 20_000)
    }

    /// `timeout_ms`: the session timeout to ask for.
    pub fn with_session_timeout(hosts: &str, path: &str, timeout_ms: u32) -> Tool {
        static BUILT: LazyLock<PathBuf> = LazyLock::new(|| build(&source("queue_tool.c")));
        let mut child = command(&BUILT)
            .args([hosts, path, &timeout_ms.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Tool { stdin, stdout, running: Running(child) }
    }

    pub fn tell(&mut self, what: &str) {
        writeln!(self.stdin, "{what}").unwrap();
    }

    pub fn hear(&mut self) -> String {
        let mut line = String::new();
        assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the program has ended");
        line.trim_end_matches('\n').to_owned()
    }

    pub fn ask(&mut self, what: &str) -> String {
        self.tell(what);
        self.hear()
    }

    pub fn tell_offer(&mut self, data: &[u8]) {
        self.tell(&format!(
            "offer {}",
            if data.is_empty() { "empty".to_owned() } else { hex(data) }
        ));
    }

    pub fn hear_code(&mut self) -> i32 {
        self.hear().parse().unwrap()
    }

    pub fn offer(&mut self, data: &[u8]) -> i32 {
        self.tell_offer(data);
        self.hear_code()
    }

    pub fn hear_answer(&mut self) -> Answer {
        let line = self.hear();
        let mut parts = line.splitn(3, ' ');
        let mut number = || parts.next().unwrap().parse().unwrap();
        let (code, length) = (number(), number());
        Answer { code, length, data: unhex(parts.next().unwrap()) }
    }

    /// `how`: `element`, `remove` or `take`, with a buffer of `size` bytes.
    pub fn look(&mut self, how: &str, size: usize) -> Answer {
        self.tell(&format!("{how} {size}"));
        self.hear_answer()
    }

    pub fn remove(&mut self) -> Answer {
        self.look("remove", 1_000)
    }

    /// Lets the program end as it should, its session too.
    pub fn leave(self) -> bool {
        let Tool { stdin, mut running, .. } = self;
        drop(stdin);
        running.0.wait().unwrap().success()
    }

    /// The session of the program's handle: id and password.
    pub fn session(&mut self) -> (i64, [u8; 16]) {
        let line = self.ask("session");
        let (id, password) = line.split_once(' ').unwrap();
        let id = u64::from_str_radix(id, 16).unwrap() as i64;
        (id, unhex(password).try_into().unwrap())
    }
}

fn hex(data: &[u8]) -> String {
    data.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16);
    let bytes: Result<Vec<u8>, _> = (0..text.len()).step_by(2).map(byte).collect();
    bytes.unwrap_or_else(|error| panic!("{text}: {error}"))
}
