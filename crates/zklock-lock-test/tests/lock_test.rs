//! The program `lock_test`, as a user runs it, against real servers.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};

use rustix::process::Signal;
use serde_json::Value;
use test_support::Running;
use zklock::Client;
use zklock_testing::Server;

/// The fields that programs rely on, in their order.
const PROMISED: [&str; 11] = [
    "strategy",
    "threads",
    "sessions",
    "seconds",
    "acquisitions",
    "per_thread",
    "acquire_us",
    "handoff_us",
    "server_packets_per_acquisition",
    "violations",
    "nodes_left",
];

fn lock_test(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lock_test"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(args: &[&str]) -> Output {
    lock_test(args).output().expect("lock_test runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// The JSON objects of a run that found no fault.
fn reports(output: &Output) -> Vec<Value> {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    out.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

fn sum_of_threads(report: &Value) -> u64 {
    report["per_thread"].as_array().expect("an array").iter().filter_map(Value::as_u64).sum()
}

/// The names of an object's fields as they stand in the text, those of inner objects left out.
fn keys_in_order(line: &str) -> Vec<String> {
    let mut depth = 0;
    let mut keys = Vec::new();
    let mut words = line.split('"');
    while let (Some(between), word) = (words.next(), words.next()) {
        depth += between.matches('{').count();
        depth -= between.matches('}').count();
        let Some(word) = word else { break };
        if depth == 1 && between.ends_with(['{', ',']) {
            keys.push(word.to_owned());
        }
    }
    keys
}

#[test]
fn other_stores_are_tested_by_their_address_and_have_no_fault() {
    let directory = tempfile::tempdir().unwrap();
    let file = format!("sqlite:{}", directory.path().join("locks.db").display());
    let stores = if cfg!(feature = "sqlite") { vec!["local:", &file] } else { vec!["local:"] };
    for store in stores {
        let output = run(&["--store", store, "--threads", "4", "--rounds", "25", "--json"]);
        let reports = reports(&output);
        assert_eq!(reports.len(), 1, "{store} has one way to contend");
        assert_eq!(reports[0]["acquisitions"], 100);
        assert_eq!((&reports[0]["violations"], &reports[0]["nodes_left"]), (&0.into(), &0.into()));
    }
    let refused = run(&["--store", "nowhere:a"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("zookeeper://HOST"));
}

#[test]
fn the_history_of_each_strategy_is_accepted_by_the_checker() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("history");
    let path = file.display().to_string();
    let output = run(&["--threads", "4", "--rounds", "25", "--json", "--history", &path]);
    assert_eq!(reports(&output).len(), 3);
    let verdict = history::check(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(verdict.violations, []);
    assert_eq!((verdict.holds["mutex"], verdict.calls["mutex"]), (300, 600));
    assert_eq!((verdict.open, verdict.uncounted), (0, 0));
}

#[test]
fn all_strategies_report_the_promised_fields_and_no_fault() {
    let output = run(&["--threads", "3", "--seconds", "1", "--json"]);
    let reports = reports(&output);
    let strategies: Vec<&str> = reports.iter().filter_map(|r| r["strategy"].as_str()).collect();
    assert_eq!(strategies, ["poll", "watch", "queue"]);
    for (report, line) in reports.iter().zip(text(&output.stdout).lines()) {
        assert_eq!(keys_in_order(line)[..PROMISED.len()], PROMISED, "{line}");
        assert_eq!((&report["threads"], &report["sessions"]), (&3.into(), &3.into()), "{line}");
        assert!(report["seconds"].as_f64().is_some_and(|s| (0.9..5.0).contains(&s)), "{line}");
        assert!(report["acquisitions"].as_u64() > Some(0), "{line}");
        assert_eq!(report["acquisitions"], sum_of_threads(report), "{line}");
        assert_eq!(report["per_thread"].as_array().map(Vec::len), Some(3), "{line}");
        for latency in ["acquire_us", "handoff_us"] {
            let [p50, p99] = ["p50", "p99"].map(|q| report[latency][q].as_u64());
            assert!(p50 > Some(0) && p50 <= p99, "{line}");
        }
        // At the least a create and a delete.
        assert!(report["server_packets_per_acquisition"].as_f64() >= Some(1.9), "{line}");
        assert_eq!(
            (&report["violations"], &report["nodes_left"]),
            (&0.into(), &0.into()),
            "{line}"
        );
    }
}

#[test]
fn threads_can_share_sessions_and_count_rounds() {
    let args = "--threads 6 --sessions 2 --rounds 7 --hold 500us --json";
    for report in reports(&run(&args.split(' ').collect::<Vec<_>>())) {
        assert_eq!(report["sessions"], 2);
        assert_eq!(report["per_thread"], Value::from(vec![7; 6]));
    }
}

#[test]
fn people_get_a_table_and_each_acquisition_when_they_ask() {
    let output = run(&["--strategy", "queue", "--threads", "2", "--rounds", "3", "-v"]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{out}{}", text(&output.stderr));
    for thread in ["thread 0: /zklock/lock_test/queue/", "thread 1: /zklock/lock_test/queue/"] {
        let lines = out.lines().filter(|line| line.starts_with(thread));
        assert_eq!(lines.filter(|line| line.ends_with(": got lock")).count(), 3, "{out}");
    }
    let table: Vec<&str> = out.lines().filter(|line| !line.starts_with("thread ")).collect();
    assert!(table[0].starts_with("2 threads, 2 sessions, 3 rounds, no hold"), "{out}");
    assert!(table.iter().any(|line| line.starts_with("queue ")), "{out}");
    assert!(table.iter().all(|line| line.len() <= 100), "{out}");
}

#[test]
fn a_timeline_has_a_row_for_each_thread_of_each_strategy_and_a_bar_for_a_hold() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("waits.svg");
    let path = file.display().to_string();
    let output = run(&["--threads", "3", "--rounds", "6", "--hold", "1ms", "--timeline", &path]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let picture = std::fs::read_to_string(&file).expect("the picture");
    for strategy in ["poll", "watch", "queue"] {
        assert!(picture.contains(&format!("{strategy}, 3 threads")), "{picture}");
    }
    for thread in ["thread 0", "thread 1", "thread 2"] {
        assert_eq!(picture.matches(thread).count(), 3, "{picture}");
    }
    // Half of each run is in view.
    assert!(picture.matches("fill-opacity=\"1\"").count() >= 12, "{picture}");
}

#[test]
fn a_path_that_turns_the_direction_of_writing_is_shown_without_that() {
    let args = ["--path", "/a\u{202e}b", "--strategy", "queue", "--rounds", "1", "-v"];
    let output = run(&args);
    let out = text(&output.stdout);
    assert!(out.contains("thread 0: /a\\u{202e}b/zl-"), "{out}{}", text(&output.stderr));
    assert!(!out.contains('\u{202e}'), "{out}");
}

#[test]
fn two_programs_that_share_a_lock_and_a_counter_lose_no_increment() {
    let server = Server::start().expect("a server");
    let directory = tempfile::tempdir().expect("a directory");
    let counter = directory.path().join("counter");
    std::fs::write(&counter, "1000").expect("a counter");
    let hosts = server.hosts();
    let file = counter.to_str().expect("a name");
    let args = ["--hosts", &hosts, "--strategy", "queue", "--path", "/shared/lock"];
    let more = ["--seconds", "2", "--counter", file, "--json"];
    let start = || lock_test(&[&args[..], &more[..]].concat()).spawn().expect("lock_test starts");
    let programs = [start(), start()];
    let mut sum = 1000;
    for program in programs {
        let output = program.wait_with_output().expect("lock_test ends");
        let reports = reports(&output);
        assert_eq!(reports.len(), 1);
        assert!(reports[0]["acquisitions"].as_u64() > Some(0));
        sum += reports[0]["acquisitions"].as_u64().expect("a number");
    }
    let end = std::fs::read_to_string(&counter).expect("the counter is kept");
    assert_eq!(end.trim().parse(), Ok(sum));
}

#[test]
fn ctrl_c_releases_everything_prints_what_there_is_and_exits_130() {
    let server = Server::start().expect("a server");
    for strategy in ["poll", "watch", "queue"] {
        let hosts = server.hosts();
        let path = format!("/interrupted/{strategy}");
        let args = ["--hosts", &hosts, "--strategy", strategy, "--path", &path, "-v"];
        // The thread that holds at the time would do so for an hour.
        let more = ["--rounds", "1000", "--hold", "60m", "--threads", "4"];
        let mut child = lock_test(&[&args[..], &more[..]].concat()).spawn().expect("it starts");
        let mut out = BufReader::new(child.stdout.take().expect("stdout"));
        let mut printed = String::new();
        while !printed.contains("got lock") {
            assert_ne!(out.read_line(&mut printed).expect("a line"), 0, "{printed}");
        }
        let running = Running(child);
        running.signal(Signal::INT);
        let status = running.end();
        out.read_to_string(&mut printed).expect("the rest");
        assert_eq!(status.code(), Some(130), "{printed}");
        assert!(printed.lines().any(|line| line.starts_with(strategy)), "{printed}");

        let client = Client::connect(&hosts).wait().expect("a client");
        match strategy {
            "queue" => assert_eq!(client.children(&path).wait().expect("the path").names, [""; 0]),
            _ => assert!(client.exists(&path).wait().expect("an answer").is_none()),
        }
    }
}

#[test]
fn bad_options_exit_2_and_are_named() {
    let cases: [&[&str]; 14] = [
        &["--threads", "0"],
        &["--threads", "many"],
        &["--sessions", "0"],
        &["--sessions", "4", "--threads", "3"],
        &["--seconds", "0"],
        &["--seconds", "-1"],
        &["--rounds", "0"],
        &["--rounds", "1", "--seconds", "1"],
        &["--hold", "5"],
        &["--hold", "5 parsecs"],
        &["--strategy", "hope"],
        &["--path", "locks/a"],
        &["--session-timeout", "0"],
        &["--ensemble", "--hosts", "127.0.0.1"],
    ];
    for case in cases {
        let output = run(case);
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{case:?}: {err}");
        assert!(err.contains(case[0]), "{case:?}: {err}");
        assert!(output.stdout.is_empty(), "{case:?}");
    }
}

#[test]
fn a_counter_file_that_is_none_is_refused_and_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("notes");
    std::fs::write(&file, "dear diary").expect("a file");
    let output = run(&["--counter", file.to_str().expect("a name")]);
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("--counter") && err.contains("dear diary"), "{err}");
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), "dear diary");
}

#[test]
fn a_path_that_is_something_else_is_no_test() {
    let server = Server::start().expect("a server");
    let client = Client::connect(&server.hosts()).wait().expect("a client");
    client.create("/data", b"", zklock::zookeeper::CreateMode::Persistent).wait().expect("a node");
    let output = run(&["--hosts", &server.hosts(), "--strategy", "watch", "--path", "/data"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("/data"), "{}", text(&output.stderr));
}

#[test]
fn a_lock_that_others_keep_makes_no_successful_test() {
    let server = Server::start().expect("a server");
    let client = Client::connect(&server.hosts()).wait().expect("a client");
    let guard = client.lock("/taken").acquire().wait().expect("the lock");
    let hosts = server.hosts();
    let args = ["--hosts", &hosts, "--strategy", "queue", "--path", "/taken", "--seconds", "1"];
    let output = run(&args);
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("nobody got the lock"), "{err}");
    // The holder is a foreign one, and no node of the test's own.
    assert!(!err.contains("left"), "{err}");
    guard.release().wait().expect("a release");
}

#[test]
fn a_node_that_is_deleted_from_outside_makes_it_fail() {
    let server = Server::start().expect("a server");
    let client = Client::connect(&server.hosts()).wait().expect("a client");
    let hosts = server.hosts();
    let args = ["--hosts", &hosts, "--strategy", "watch", "--path", "/l", "--rounds", "1"];
    let more = ["--hold", "5s", "--threads", "1", "-v"];
    let mut child = lock_test(&[&args[..], &more[..]].concat()).spawn().expect("it starts");
    let mut out = BufReader::new(child.stdout.take().expect("stdout"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a line");
    assert!(line.ends_with("got lock\n"), "{line}");
    client.delete("/l", None).wait().expect("a deletion");
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("the rest");
    let output = child.wait_with_output().expect("an end");
    let err = text(&output.stderr);
    assert!(err.contains("thread 0 held the lock") && err.contains("deleted"), "{rest}{err}");
    assert_eq!(output.status.code(), Some(1), "{err}");
}

/// Whoever deletes a holder's node lets the next one in before the holder can know.
#[test]
fn two_holders_at_once_make_it_fail() {
    let server = Server::start().expect("a server");
    let client = Client::connect(&server.hosts()).wait().expect("a client");
    let hosts = server.hosts();
    let args = ["--hosts", &hosts, "--strategy", "watch", "--path", "/l", "--rounds", "5"];
    let more = ["--hold", "300ms", "--threads", "2", "-v"];
    let mut child = lock_test(&[&args[..], &more[..]].concat()).spawn().expect("it starts");
    let out = BufReader::new(child.stdout.take().expect("stdout"));
    for line in out.lines().map(|line| line.expect("a line")) {
        if line.ends_with("got lock") {
            // It may be gone already.
            let _ = client.delete("/l", None).wait();
        }
    }
    let output = child.wait_with_output().expect("an end");
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("watch: violation: two holders: thread"), "{err}");
}

#[test]
fn a_lost_increment_makes_it_fail() {
    let directory = tempfile::tempdir().expect("a directory");
    let counter = directory.path().join("counter");
    let args = ["--strategy", "queue", "--rounds", "50", "--hold", "1ms", "-v", "--counter"];
    let mut command = lock_test(&args);
    let mut child = command.arg(&counter).spawn().expect("it starts");
    let out = BufReader::new(child.stdout.take().expect("stdout"));
    for line in out.lines().map(|line| line.expect("a line")) {
        if line.ends_with("got lock") {
            std::fs::write(&counter, "0").expect("a write that ignores the lock");
        }
    }
    let output = child.wait_with_output().expect("an end");
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("queue: violation: counter file"), "{err}");
    assert!(err.contains("an increment is lost"), "{err}");
}

#[test]
fn the_servers_count_watch_events_as_the_table_reads_them() {
    const WATCHERS: u64 = 5;
    let server = Server::start().expect("a server");
    let events = || -> u64 {
        let stats = server.stats().expect("counters").all;
        let sums = stats
            .iter()
            .filter(|(key, _)| key.starts_with("sum_node_") && key.ends_with("_watch_count"));
        sums.map(|(key, value)| value.parse::<u64>().expect(key)).sum()
    };
    // No client pings its server before a third of this has passed: that would be a packet too.
    let options = Client::options().session_timeout(std::time::Duration::from_secs(60));
    let connect = |_| options.clone().connect(&server.hosts()).wait().expect("a client");
    let clients: Vec<Client> = (0..WATCHERS).map(connect).collect();
    clients[0]
        .create("/watched", b"", zklock::zookeeper::CreateMode::Persistent)
        .wait()
        .expect("a node");
    let before = (events(), server.stats().expect("counters"));
    let watches: Vec<_> = clients
        .iter()
        .map(|client| client.get_and_watch("/watched").wait().expect("a watch").watch)
        .collect();
    clients[0].delete("/watched", None).wait().expect("a deletion");
    for watch in watches {
        watch.wait().expect("an event");
    }
    let after = (events(), server.stats().expect("counters"));
    assert_eq!(after.0 - before.0, WATCHERS);
    // The reads and the deletion, and the three looks: each question is a packet itself.
    let packets = after.1.packets_received - before.1.packets_received;
    assert_eq!(packets, WATCHERS + 1 + 2);
}
