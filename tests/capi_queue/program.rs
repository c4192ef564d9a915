//! The programs of this directory, built against the installed library and run.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use test_support::Process;
use test_support::c_programs::{self, command};

/// A file of this directory.
pub fn source(name: &str) -> PathBuf {
    Path::new("tests/capi_queue").join(name)
}

/// Builds a program from its C file, at a path from the checkout's root.
pub fn build(file: &Path) -> PathBuf {
    let name = file.file_stem().and_then(OsStr::to_str).unwrap();
    c_programs::build(file.to_str().unwrap(), name, &["-std=c99", "-D_GNU_SOURCE"])
}

/// `queue_tool.c`, told what to do a line at a time.
pub struct Tool(Process);

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
        let program = build(&source("queue_tool.c"));
        Tool(Process::start(command(program).args([hosts, path, &timeout_ms.to_string()])))
    }

    pub fn tell(&mut self, what: &str) {
        self.0.tell(what);
    }

    pub fn hear(&mut self) -> String {
        self.0.hear().expect("the program runs")
    }

    pub fn ask(&mut self, what: &str) -> String {
        self.0.ask(what)
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
        self.0.end().success()
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
