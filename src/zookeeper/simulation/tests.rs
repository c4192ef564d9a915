//! The promises of the lock, kept under all schedules of few contenders and random ones of many.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::effort;
use super::replay::{report_choices, report_seed};
use super::run::run;
use super::scenario::{MIXED, Scenario};
use super::schedule::{Drawn, explore};

/// How often a long run says how far it is.
const PROGRESS: Duration = Duration::from_secs(10);

/// Explores scenarios to their end; the `long` ones only in a long run.
fn explore_all(strategy: &str, short: &[&str], long: &[&str]) {
    let long = if effort::is_long() { long } else { &[] };
    for name in short.iter().chain(long) {
        let name = format!("{strategy}/{name}");
        let scenario = Arc::new(Scenario::named(&name));
        let start = Instant::now();
        let mut told = start;
        let explored = explore(&scenario, u64::MAX, |explored| {
            if effort::is_long() && told.elapsed() > PROGRESS {
                told = Instant::now();
                let (runs, states) = (explored.complete + explored.joined, explored.states);
                println!("{name}: {runs} schedules and {states} states so far");
            }
        });
        let runs = explored.complete + explored.joined;
        if let Some((violation, choices)) = explored.violation {
            panic!("{}\nfound after {runs} schedules", report_choices(&name, &choices, &violation));
        }
        let took = start.elapsed();
        let (complete, states, tenures) = (explored.complete, explored.states, explored.tenures);
        println!(
            "{name}: all {runs} schedules, {complete} of them to the end, {states} states, \
             {tenures} tenures, {took:.1?}, {:.0} per s",
            runs as f64 / took.as_secs_f64()
        );
        assert!(tenures > 0);
    }
}

/// What is explored in any run: strategy aside, how it is set up, contenders + faults.
const SHORT: [&str; 2] = ["plain/3+0", "plain/2+1"];
const LONG: [&str; 6] =
    ["plain/3+1", "bare/2+1", "deadline/2+1", "try/2+1", "lag/2+1", "unusual/2+1"];

#[test]
fn all_schedules_of_a_few_queuers_keep_every_promise() {
    // Those who expect to wait go another way, in the queue alone, and numbers that say nothing of the
    // order lead to another.
    let queue = ["contended/3+0", "contended/2+1", "contended/3+1", "wrapping/2+1"];
    let long = [LONG.as_slice(), &queue].concat();
    explore_all("queue", &SHORT, &long);
}

#[test]
fn all_schedules_of_a_few_watchers_keep_every_promise() {
    explore_all("watch", &SHORT, &LONG);
}

#[test]
fn all_schedules_of_a_few_pollers_keep_every_promise() {
    explore_all("poll", &SHORT, &LONG);
}

#[test]
fn all_schedules_of_a_few_readers_and_writers_keep_every_promise() {
    let short = ["kinds-rrw/3+0", "kinds-rww/3+0", "kinds-rw/2+1"];
    let long = ["kinds-rrww/4+0", "kinds-rrw/3+1", "kinds-rww/3+1"];
    explore_all("queue", &short, &long);
}

#[test]
fn all_schedules_of_a_few_who_take_permits_keep_every_promise() {
    // Of three permits.
    let short = ["kinds-21/2+0", "limit-22/2+1"];
    let long = ["kinds-22/2+1", "kinds-221/3+0", "kinds-22r/3+0", "limit-221/3+1"];
    explore_all("queue", &short, &long);
}

#[test]
fn random_schedules_of_many_contenders_and_faults_keep_every_promise() {
    draw_from(effort::first_seed());
}

#[test]
fn random_schedules_of_several_kinds_keep_every_promise() {
    draw_from(MIXED + effort::first_seed());
}

/// Random schedules of so many seeds from that one on.
fn draw_from(first: u64) {
    let count = effort::schedules();
    let (next, steps, tenures) = (AtomicU64::new(first), AtomicU64::new(0), AtomicU64::new(0));
    let start = Instant::now();
    let tell = |done: u64| {
        let (steps, tenures) = (steps.load(Ordering::Relaxed), tenures.load(Ordering::Relaxed));
        let rate = done as f64 / start.elapsed().as_secs_f64();
        println!(
            "{done} of {count} random schedules, {steps} steps, {tenures} tenures, {rate:.0} per s"
        );
    };
    let work = |speaks: bool| {
        let mut told = Instant::now();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count {
                return;
            }
            let ended = run(&Arc::new(Scenario::from_seed(seed)), &mut Drawn::new(seed));
            if let Some(violation) = ended.violation {
                next.store(first + count, Ordering::Relaxed);
                let after = seed - first + 1;
                panic!("{}\nfound after {after} schedules", report_seed(seed, &violation));
            }
            steps.fetch_add(ended.trace.len() as u64, Ordering::Relaxed);
            tenures.fetch_add(ended.tenures as u64, Ordering::Relaxed);
            if speaks && effort::is_long() && told.elapsed() > PROGRESS {
                told = Instant::now();
                tell(seed - first);
            }
        }
    };
    std::thread::scope(|scope| {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        for worker in 0..workers {
            scope.spawn(move || work(worker == 0));
        }
    });
    tell(count);
    assert!(tenures.load(Ordering::Relaxed) > count);
}
