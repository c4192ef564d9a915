//! A counter that only the lock protects.

use std::time::{Duration, Instant};

use test_support::{Bench, LONGEST_SESSION, Process};

use crate::library::{Library, counter};

/// How many programs each library has.
const EACH: usize = 2;

/// What became of a counter.
pub struct Count {
    pub acquisitions: u64,
    /// Increments of which nothing is left: somebody wrote over them, who had read before.
    pub lost: u64,
    /// Writes that followed another library's.
    pub taken_over: u64,
    pub took: Duration,
}

/// Programs of each of them increment a znode, about so often in all: they read it and write it, one number more.
pub fn count(libraries: &[Library], acquisitions: u64) -> Count {
    let bench = Bench::with_directory();
    let counter = counter(&bench.path);
    bench.ask(|raw| raw.create(&counter, b"0 nobody")).unwrap();
    let hosts = bench.server.hosts();
    let start = |it: &Library| it.start(&hosts, &bench.path, LONGEST_SESSION).0;
    let mut programs: Vec<Process> =
        libraries.iter().flat_map(|it| (0..EACH).map(move |_| start(it))).collect();

    let each = acquisitions.div_ceil(programs.len() as u64);
    let started = Instant::now();
    programs.iter_mut().for_each(|program| program.tell(format!("increment {each}")));
    let taken_over = programs.iter_mut().map(taken_over).sum();
    let took = started.elapsed();

    let (data, stat) = bench.ask(|raw| raw.get_data(&counter)).unwrap();
    let written = u64::try_from(stat.version).unwrap();
    assert_eq!(written, each * programs.len() as u64, "every increment writes once");
    let value = String::from_utf8(data).unwrap();
    let value: u64 = value.split(' ').next().unwrap().parse().unwrap();
    Count { acquisitions: written, lost: written - value, taken_over, took }
}

fn taken_over(program: &mut Process) -> u64 {
    let line = program.hear().expect("it increments");
    line.strip_prefix("incremented ").unwrap_or_else(|| panic!("{line}")).parse().unwrap()
}
