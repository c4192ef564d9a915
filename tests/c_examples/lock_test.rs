//! The threaded program: it counts violations itself, and its exit status is its verdict.

use crate::built;
use test_support::c_programs::{build, limited, run, under_valgrind};
use zklock_testing::Server;

/// The acquisitions of each strategy, from a report without a fault.
fn acquisitions(report: &str, strategies: &[&str]) -> Vec<u64> {
    strategies
        .iter()
        .map(|strategy| {
            let line = report.lines().find(|line| line.starts_with(strategy));
            let columns: Vec<&str> = line
                .unwrap_or_else(|| panic!("no {strategy}: {report}"))
                .split_whitespace()
                .collect();
            assert_eq!(columns[7..], ["0", "0", "0"], "violations, lost, left: {report}");
            columns[1].parse().unwrap()
        })
        .collect()
}

const ALL: [&str; 3] = ["poll", "watch", "queue"];

#[test]
fn three_threads_never_hold_at_once_and_leave_nothing() {
    let server = Server::start().unwrap();
    let mut program = limited(built().join("lock_test"));
    let report = run(program.arg(server.hosts()).args(["--threads", "3", "--rounds", "50"]));
    assert_eq!(acquisitions(&report, &ALL), [150, 150, 150]);
}

#[test]
fn sixteen_threads_never_hold_at_once_and_leave_nothing() {
    let server = Server::start().unwrap();
    let mut program = limited(built().join("lock_test"));
    let report = run(program.arg(server.hosts()).args(["--threads", "16", "--rounds", "10"]));
    assert_eq!(acquisitions(&report, &ALL), [160, 160, 160]);
}

#[test]
fn what_is_waited_for_when_the_time_is_over_leaves_nothing() {
    let server = Server::start().unwrap();
    let mut program = limited(built().join("lock_test"));
    program.args(["--hosts", &server.hosts(), "--threads", "16", "--seconds", "1"]);
    assert!(acquisitions(&run(&mut program), &ALL).iter().all(|&count| count > 0));
}

#[test]
fn one_strategy_runs_when_one_is_asked_for() {
    let server = Server::start().unwrap();
    let mut program = limited(built().join("lock_test"));
    program.arg(server.hosts()).args(["--strategy", "queue", "--rounds", "5"]);
    let report = run(&mut program);
    assert_eq!(acquisitions(&report, &["queue"]), [15]);
    assert_eq!(report.lines().count(), 3, "{report}");
    for arguments in [["--strategy", "none"], ["--threads", "0"], ["--rounds", "1x"]] {
        let output = limited(built().join("lock_test")).arg("h:1").args(arguments).output();
        assert_eq!(output.unwrap().status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn it_is_clean_under_valgrind() {
    let server = Server::start().unwrap();
    for threads in ["3", "16"] {
        let mut program = under_valgrind(&built().join("lock_test"), true);
        run(program.arg(server.hosts()).args(["--threads", threads, "--rounds", "3"]));
    }
}

#[test]
fn it_is_clean_under_the_address_sanitizer() {
    let server = Server::start().unwrap();
    let flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let program = build("c-examples/lock_test.c", "lock_test_asan", &flags);
    for threads in ["3", "16"] {
        let mut command = limited(&program);
        run(command.arg(server.hosts()).args(["--threads", threads, "--rounds", "5"]));
    }
}
