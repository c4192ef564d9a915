//! What a program's recorder is told, as Prometheus reads it. One test: the recorder is the process's.

use std::thread;

use metrics_exporter_prometheus::PrometheusBuilder;
use test_support::{Bench, TIMEOUT, acquire_in_background, eventually};
use zklock::GuardState;
use zklock_testing::Rule;
use zklock_testing::wire::Op;

const THREADS: usize = 3;
const TURNS: usize = 20;

#[test]
fn a_recorder_is_told_of_each_acquire_hold_and_state_of_a_session() {
    let recorder = PrometheusBuilder::new().install_recorder().unwrap();
    let has = |line: &str| recorder.render().lines().any(|one| one == line);
    let expect = |line: &str| eventually(line, || has(line));
    let acquires = |outcome: &str, count: usize| {
        expect(&format!("zklock_acquire_seconds_count{{outcome=\"{outcome}\"}} {count}"));
    };
    let holds = |end: &str, count: usize| {
        expect(&format!("zklock_hold_seconds_count{{end=\"{end}\"}} {count}"));
    };
    let states = |state: &str, count: usize| {
        expect(&format!("zklock_session_states_total{{state=\"{state}\"}} {count}"));
    };

    let bench = Bench::own();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let lock = bench.lock(&bench.client());
                for _ in 0..TURNS {
                    lock.acquire().wait().unwrap().release().wait().unwrap();
                }
            });
        }
    });
    acquires("acquired", THREADS * TURNS);
    holds("released", THREADS * TURNS);
    states("connected", THREADS);
    // Each was a claim at the server.
    let claims = format!("{}/", bench.path);
    let creates = Rule::request([Op::Create, Op::Create2]).path_prefix(claims);
    assert_eq!(bench.proxy.count(&creates), THREADS * TURNS);

    let (client, other) = (bench.client(), bench.direct());
    let guard = bench.lock(&client).acquire().wait().unwrap();
    assert!(bench.lock(&other).try_acquire().wait().unwrap().is_none());
    acquires("taken", 1);
    drop(bench.lock(&other).acquire());
    acquires("cancelled", 1);
    expect("zklock_waiting 0");
    let waiting = acquire_in_background(&bench.lock(&other));
    expect("zklock_waiting 1");
    expect("zklock_held 1");

    bench.expire(&client);
    eventually("it is lost", || guard.state() == GuardState::Lost);
    holds("session", 1);
    states("lost", 1);
    let next = waiting.join().unwrap().unwrap();
    bench.delete(&next.claim_path());
    eventually("it is lost", || next.state() == GuardState::Lost);
    holds("deleted", 1);
    drop((guard, next));
    expect("zklock_held 0");

    other.close().wait().unwrap();
    assert!(bench.lock(&other).acquire().within(TIMEOUT).wait().is_err());
    acquires("failed", 1);
}
