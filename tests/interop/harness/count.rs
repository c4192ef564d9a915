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

/// Programs of each of them increment a znode, about so often in all: they read it and write it, one number more. All of
/// them have the same lock, and each group has a znode of its own: libraries of two groups may not exclude each other.
pub fn count(groups: &[Vec<Library>], acquisitions: u64) -> Count {
    let bench = Bench::with_directory();
    let hosts = bench.server.hosts();
    let programs_of = |(number, group): (usize, &Vec<Library>)| {
        let counter = counter(&bench.path, number);
        bench.ask(|raw| raw.create(&counter, b"0 nobody")).unwrap();
        let start =
            |it: &Library| it.start_to_count(&hosts, &bench.path, &counter, LONGEST_SESSION).0;
        group.iter().flat_map(|it| (0..EACH).map(move |_| start(it))).collect()
    };
    let mut programs: Vec<Vec<Process>> = groups.iter().enumerate().map(programs_of).collect();

    let number = programs.iter().map(Vec::len).sum::<usize>() as u64;
    let each = acquisitions.div_ceil(number);
    let started = Instant::now();
    all_of(&mut programs).for_each(|program| program.tell(format!("increment {each}")));
    let taken_over = all_of(&mut programs).map(taken_over).sum();
    let took = started.elapsed();

    let lost_of = |(number, programs): (usize, &Vec<Process>)| {
        let (data, stat) = bench.ask(|raw| raw.get_data(&counter(&bench.path, number))).unwrap();
        let written = u64::try_from(stat.version).unwrap();
        assert_eq!(written, each * programs.len() as u64, "every increment writes once");
        let value = String::from_utf8(data).unwrap();
        written - value.split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let lost = programs.iter().enumerate().map(lost_of).sum();
    Count { acquisitions: each * number, lost, taken_over, took }
}

fn all_of(programs: &mut [Vec<Process>]) -> impl Iterator<Item = &mut Process> {
    programs.iter_mut().flatten()
}

fn taken_over(program: &mut Process) -> u64 {
    let line = program.hear().expect("it increments");
    line.strip_prefix("incremented ").unwrap_or_else(|| panic!("{line}")).parse().unwrap()
}
