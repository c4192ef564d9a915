//! The acquire loop against simulated servers: deterministic, on one thread, in virtual time.

mod checks;
mod client;
mod contender;
mod digest;
mod disposal;
mod request;
mod run;
mod scenario;
mod schedule;
mod server;
mod service;
mod session;
mod steps;
mod tasks;
mod world;

use std::sync::Arc;

use scenario::{Fault, Scenario};
use schedule::{Drawn, explore};

use super::Strategy;

#[test]
fn random_first() {
    let start = std::time::Instant::now();
    let mut steps = 0;
    let mut tenures = 0;
    let count = std::env::var("ZKLOCK_SCHEDULES").ok().and_then(|n| n.parse().ok()).unwrap_or(1000);
    for seed in 0..count {
        let mut scenario = Scenario::from_seed(seed);
        if std::env::var("CALM").is_ok() {
            scenario.faults = 0;
        }
        let scenario = Arc::new(scenario);
        let ended = run::run(&scenario, &mut Drawn::new(seed));
        steps += ended.trace.len();
        tenures += ended.tenures;
        if let Some(violation) = ended.violation {
            panic!("seed {seed}: {violation}\n{scenario:?}\n{:?}", ended.trace);
        }
    }
    eprintln!("{count} {steps} {tenures} {:?}", start.elapsed());
}

#[test]
fn all_first() {
    let n = std::env::var("N").ok().and_then(|n| n.parse().ok()).unwrap_or(2);
    let f = std::env::var("F").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    for strategy in [Strategy::Queue, Strategy::Watch, Strategy::Poll] {
        let start = std::time::Instant::now();
        let scenario = Arc::new(Scenario::plain(strategy, n).with_faults(f, &Fault::ALL));
        let explored = explore(&scenario, 2_000_000);
        eprintln!("{strategy} {:?} {explored:?}", start.elapsed());
        assert!(explored.violation.is_none());
    }
}
