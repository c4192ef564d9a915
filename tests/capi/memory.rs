//! A process that runs out of memory at some allocation of some step: it works, or says so, or ends at
//! once. It never hangs, and never believes to hold what it does not (`memory.c` checks that).
//!
//! `ZKLOCK_MEMORY_SAMPLES` says how many allocations of each step are tried (`all`: every one), and
//! `ZKLOCK_MEMORY=reconnect/one/17` which one alone; `reconnect/one/17-40` is a range.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;

use crate::build::{self, Mode};
use crate::program::World;

/// How many allocations of each step, and of each way to fail, the suite tries.
const SAMPLES: u64 = 7;

/// Only that one, or all from it on until the step is over.
const WAYS: [&str; 2] = ["one", "all"];

const NEVER: u64 = 1_000_000_000;
const ABORTED: i32 = 6;
const KILLED: i32 = 9;
const MEMORY_FAULTS: [i32; 2] = [7, 11];

/// How a run ended, and how many allocations the step made.
struct Run {
    outcome: String,
    allocations: u64,
}

fn run(step: &str, way: &str, number: u64) -> Run {
    let repeat = format!("ZKLOCK_MEMORY={step}/{way}/{number}");
    let world = World::new();
    let mut arguments = world.arguments(10_000).to_vec();
    arguments.extend([step, way, &number.to_string()].map(str::to_owned));
    let program = build::program("memory", Mode::Plain);
    let mut process = build::start(&program, Mode::Plain, &arguments);
    let (mut said, mut allocations, mut works_again) = (None, 0, false);
    while let Some(line) = process.hear() {
        match line.trim_end().split_once(' ') {
            Some(("ask", wish)) => process.tell(world.grant(wish)),
            Some(("allocations", count)) => allocations = count.parse().unwrap(),
            _ if line == "works again" => works_again = true,
            _ => said = Some(line),
        }
    }
    let status = process.end();
    let outcome = match (status.signal(), said) {
        (None, Some(said)) if status.success() && works_again => said,
        (Some(signal @ ABORTED), _) => format!("ended by signal {signal}: an abort"),
        (Some(signal), _) if MEMORY_FAULTS.contains(&signal) => {
            format!("ended by signal {signal}: a null pointer of the C client")
        }
        (Some(KILLED), said) => panic!("{repeat}: somebody killed it: {said:?}"),
        (_, said) => panic!("{repeat}: {status}: {said:?}"),
    };
    Run { outcome, allocations }
}

/// Which of so many allocations are tried.
fn samples(count: u64) -> Vec<u64> {
    let wanted = match std::env::var("ZKLOCK_MEMORY_SAMPLES") {
        Ok(all) if all == "all" => count,
        Ok(wanted) => wanted.parse().unwrap(),
        Err(_) => SAMPLES,
    };
    // The first ones, where most that a call makes for itself is, and some of the rest, each time others.
    let first = wanted.min(count) / 2;
    let step = ((count - first) / (wanted - first).max(1)).max(1);
    let rest = (first + 1 + fastrand::u64(0..step)..=count).step_by(step.try_into().unwrap());
    (1..=first).chain(rest).collect()
}

fn run_out_of_memory_in(step: &str) {
    if let Ok(chosen) = std::env::var("ZKLOCK_MEMORY") {
        if let Some((way, number)) =
            chosen.strip_prefix(&format!("{step}/")).and_then(|rest| rest.split_once('/'))
        {
            let (first, last) = number.split_once('-').unwrap_or((number, number));
            for number in first.parse::<u64>().unwrap()..=last.parse().unwrap() {
                let Run { outcome, allocations } = run(step, way, number);
                println!("{step}/{way}/{number}: {outcome}, of {allocations}");
            }
        }
        return;
    }
    let unhindered = run(step, "one", NEVER);
    assert_eq!(unhindered.outcome, "works", "{step}");
    assert!(unhindered.allocations > 0, "{step} needs no memory");
    for way in WAYS {
        let mut outcomes: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for number in samples(unhindered.allocations) {
            outcomes.entry(run(step, way, number).outcome).or_default().push(number);
        }
        for (outcome, numbers) in outcomes {
            println!("{step}, {way}: {} times: {outcome} {numbers:?}", numbers.len());
        }
    }
}

macro_rules! steps {
    ($($test:ident: $step:literal,)+) => {
        $(#[test]
        fn $test() {
            run_out_of_memory_in($step);
        })+
    };
}

steps! {
    a_client_connects: "connect",
    a_handle_is_adopted: "adopt",
    a_lock_is_acquired: "acquire",
    a_lock_is_acquired_on_a_handle: "acquire-on-a-handle",
    a_lock_is_released: "release",
    signals_are_asked_for: "signals",
    the_recipes_lock_is_used: "recipe-lock",
    the_recipes_queue_is_used: "recipe-queue",
    a_client_connects_again: "reconnect",
    a_handle_connects_again: "reconnect-a-handle",
}
