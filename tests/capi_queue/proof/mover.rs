//! `mover.c` as a process: what it says is written down until it ends, however it ends.

use std::io::{BufRead, BufReader};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use test_support::Running;
use test_support::c_programs::command;

use crate::program::{build, source};

/// The n-th element of a producer.
pub type Element = (usize, usize);

/// When a call began and ended, by the machine's clock: all processes have the same.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub from: u64,
    pub to: u64,
}

/// What one process has said.
#[derive(Clone, Debug, Default)]
pub struct Record {
    pub session: Option<i64>,
    /// The last element that was begun to be offered.
    pub begun: Option<usize>,
    pub done: Vec<(usize, Call)>,
    pub offers_unknown: Vec<usize>,
    pub taken: Vec<(Element, Call)>,
    pub takes_unknown: usize,
    pub stops: usize,
}

impl Record {
    fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<usize>().unwrap();
        let call = |at: usize| Call { from: number(at) as u64, to: number(at + 1) as u64 };
        match words[0] {
            "session" => self.session = u64::from_str_radix(words[1], 16).ok().map(|id| id as i64),
            "offer" => self.begun = Some(number(1)),
            "done" => self.done.push((number(1), call(2))),
            "took" => self.taken.push(((number(1), number(2)), call(3))),
            "stop" => self.stops += 1,
            "unknown" => match self.begun {
                Some(n) => self.offers_unknown.push(n),
                None => self.takes_unknown += 1,
            },
            _ => panic!("a mover says: {line}"),
        }
    }

    /// The element whose offer had no end yet.
    pub fn in_flight(&self) -> Option<usize> {
        let is_done = |n: &usize| self.done.last().is_some_and(|(done, _)| done == n);
        self.begun.filter(|n| !is_done(n) && !self.offers_unknown.contains(n))
    }

    /// How many transactions of the session must have been executed for that.
    pub fn executed(&self) -> usize {
        self.done.len() + self.taken.len() + self.stops
    }
}

pub struct Mover {
    running: Running,
    record: Arc<Mutex<Record>>,
    reader: JoinHandle<()>,
}

impl Mover {
    pub fn start(hosts: &str, path: &str, what: &[String]) -> Mover {
        let program = build(&source("mover.c"));
        let mut child =
            command(program).args([hosts, path]).args(what).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let record = Arc::new(Mutex::new(Record::default()));
        let hears = Arc::clone(&record);
        let reader = std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| hears.lock().hear(&line));
        });
        Mover { running: Running(child), record, reader }
    }

    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.running.0.try_wait().unwrap()
    }

    pub fn freeze(&self) {
        self.running.freeze();
    }

    pub fn thaw(&self) {
        self.running.thaw();
    }

    pub fn taken(&self) -> usize {
        self.record.lock().taken.len()
    }

    /// Kills it if it still runs, and gives all that it said.
    pub fn kill(mut self) -> Record {
        let _ = self.running.0.kill();
        let _ = self.running.0.wait();
        self.reader.join().unwrap();
        self.record.lock().clone()
    }
}
