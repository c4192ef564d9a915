//! `--once-per`: five hosts want to run a job, and one of them does.

use std::time::{Duration, UNIX_EPOCH};

use rustix::process::Signal;
use test_support::{Bench, TIMEOUT, shared};
use zklock::zookeeper::CreateMode;
use zklock_testing::wire::Op;
use zklock_testing::{Action, Rule, eventually};

use super::program::{as_shells, finish, start};

fn zklock(command: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let hosts = shared().hosts();
    finish(&[&[command, "--hosts", &hosts][..], args].concat())
}

#[test]
fn of_many_that_want_to_run_a_job_one_does() {
    let path = Bench::shared().path;
    let runs = std::thread::scope(|scope| {
        let args = ["--once-per", "20h", &path, "--", "echo", "ran"];
        let run = || scope.spawn(move || zklock("run", &args));
        let all: Vec<_> = (0..5).map(|_| run()).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(runs.iter().all(|(code, ..)| *code == Some(0)), "{runs:?}");
    assert_eq!(runs.iter().filter(|(_, out, _)| out == "ran\n").count(), 1, "{runs:?}");
    assert_eq!(runs.iter().filter(|(_, _, err)| err.contains("has run it")).count(), 4, "{runs:?}");
    let (code, out, _) = zklock("last", &[&path]);
    assert_eq!(code, Some(0));
    assert!(out.contains("(echo)") && out.contains("with status 0"), "{out}");
}

#[test]
fn after_the_period_it_runs_again() {
    let path = Bench::shared().path;
    let run = || zklock("run", &["--once-per", "300ms", &path, "--", "echo", "ran"]).1;
    assert_eq!(run(), "ran\n");
    eventually("the period is over", || run() == "ran\n");
}

#[test]
fn a_run_that_has_failed_counts_unless_only_successes_do() {
    let path = Bench::shared().path;
    let run = |more: &[&str], script: &str| {
        let args = [&["--once-per", "20h"], more, &[&path, "--", "sh", "-c", script]].concat();
        zklock("run", &args)
    };
    assert_eq!(run(&[], "exit 3").0, Some(3));
    assert_eq!(run(&[], "exit 4").0, Some(0), "it is not run");
    assert!(zklock("last", &[&path]).1.contains("with status 3"));
    assert_eq!(run(&["--retry-failed"], "exit 5").0, Some(5));
    assert_eq!(run(&["--retry-failed"], "exit 0").0, Some(0));
    assert_eq!(run(&["--retry-failed"], "exit 6").0, Some(0), "it is not run");
}

#[test]
fn a_run_whose_host_is_gone_counts_and_shows_no_end() {
    let bench = Bench::shared();
    let hosts = bench.server.hosts();
    let args = ["--once-per", "20h", &bench.path, "--", "sleep", "600"];
    let connect = ["run", "--hosts", &hosts, "--session-timeout", "1s"];
    let gone = start(&[&connect[..], &args].concat());
    let last = || zklock("last", &[&bench.path]).1;
    eventually("it runs", || last().contains("still running"));
    drop(gone);
    eventually("its session is over", || last().contains("not known"));
    let (code, out, err) = zklock("run", &["--once-per", "20h", &bench.path, "--", "echo", "ran"]);
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
    let json: serde_json::Value =
        serde_json::from_str(&zklock("last", &["--json", &bench.path]).1).unwrap();
    assert_eq!(json["last"]["outcome"], serde_json::Value::Null);
    assert_eq!(json["last"]["running"], false);
}

#[test]
fn what_somebody_else_keeps_in_the_marks_place_is_left_alone() {
    let bench = Bench::shared();
    let (client, mark) = (bench.direct(), format!("{}.last", bench.path));
    let mine = client.create(&mark, b"mine", CreateMode::Persistent);
    mine.within(Duration::from_secs(60)).wait().unwrap();
    let (code, out, err) = zklock("run", &["--once-per", "20h", &bench.path, "--", "echo", "ran"]);
    assert_eq!((code, out.as_str()), (Some(125), ""));
    assert!(err.contains(&mark), "{err}");
    let (code, _, err) = zklock("last", &[&bench.path]);
    assert!(code != Some(0) && err.contains(&mark), "{err}");
    bench.expect_empty();
}

#[test]
fn a_run_that_could_not_start_does_not_count() {
    let path = Bench::shared().path;
    let run = |more: &[&str]| {
        let args = [&["--once-per", "20h"], more, &[&path, "--", "echo", "ran"]].concat();
        zklock("run", &args)
    };
    let (code, out, err) = run(&["--token-file", "/nonexistent/token"]);
    assert_eq!((code, out.as_str()), (Some(125), ""), "{err}");
    assert!(zklock("last", &[&path]).1.contains("nothing was started"));
    assert_eq!(run(&[]).1, "ran\n");
}

#[test]
fn a_mark_whose_reply_was_lost_is_known_again() {
    let bench = Bench::shared();
    let made = bench.lock(&bench.direct()).acquire().wait().unwrap();
    made.release().wait().unwrap();
    // Reads and claims come before it.
    let loss = bench.proxy.on(Rule::reply(Op::Multi).nth(2), Action::Drop);
    let args = [
        "run",
        "--hosts",
        &bench.proxy.hosts(),
        "--once-per",
        "20h",
        &bench.path,
        "--",
        "echo",
        "ran",
    ];
    let (code, out, err) = finish(&args);
    assert_eq!((code, out.as_str()), (Some(0), "ran\n"), "{err}");
    assert_eq!(loss.hits(), 1);
}

#[test]
fn who_waits_for_the_fate_of_a_mark_hears_signals_and_of_the_loss_of_the_lock() {
    for signal in [Some(Signal::TERM), None] {
        let bench = Bench::shared();
        let made = bench.lock(&bench.direct()).acquire().wait().unwrap();
        made.release().wait().unwrap();
        let mark = bench.proxy.hold(Rule::request(Op::Multi).containing(Op::SetData).once());
        let hosts = bench.proxy.hosts();
        let session = if signal.is_some() { "60s" } else { "4s" };
        let args = ["run", "--hosts", &hosts, "--session-timeout", session, "--once-per", "20h"];
        let running = start(&[&args[..], &[&bench.path, "--", "echo", "ran"]].concat());
        mark.wait_reached(TIMEOUT).unwrap();
        bench.proxy.cut();
        if let Some(signal) = signal {
            running.signal(signal);
        }
        let expected = signal.map_or(124, |signal| 128 + signal.as_raw());
        assert_eq!(as_shells(running.end()), Some(expected));
    }
}

#[test]
fn the_end_of_a_run_is_marked_though_the_connection_is_lost_at_that_moment() {
    let bench = Bench::shared();
    let directory = tempfile::tempdir().unwrap();
    let [started, end] = ["started", "end"].map(|name| directory.path().join(name));
    let script = "touch \"$0\"; while ! test -e \"$1\"; do sleep 0.05; done";
    let files = [&started, &end].map(|file| file.to_str().unwrap());
    let hosts = bench.proxy.hosts();
    let args =
        ["run", "--hosts", &hosts, "--session-timeout", "60s", "--once-per", "20h", &bench.path];
    let running = start(&[&args[..], &["--", "sh", "-c", script], &files].concat());
    eventually("the command runs", || started.exists());
    let handshake = bench.proxy.hold(Rule::reply(Op::Connect));
    bench.proxy.reset_all();
    handshake.wait_reached(TIMEOUT).unwrap();
    std::fs::write(&end, "").unwrap();
    // While there is no connection, the command ends.
    std::thread::sleep(Duration::from_millis(300));
    handshake.release();
    assert_eq!(as_shells(running.end()), Some(0));
    assert!(zklock("last", &[&bench.path]).1.contains("with status 0"));
}

#[test]
fn a_run_of_a_command_that_is_not_there_does_not_count() {
    let path = Bench::shared().path;
    let run = |command: &str| zklock("run", &["--once-per", "20h", &path, "--", command, "ran"]);
    assert_eq!(run("/nonexistent").0, Some(127));
    assert_eq!(run("/").0, Some(126));
    assert_eq!(run("echo"), (Some(0), "ran\n".to_owned(), String::new()));
    assert_eq!(run("echo").1, "");
}

#[test]
fn a_mark_of_the_far_future_does_not_count() {
    let bench = Bench::shared();
    let client = bench.direct();
    let mark = |started: i64| format!("zklock-run/1\ntoken=1\nstarted={started}\noutcome=0\n");
    let now = i64::try_from(UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    let path = format!("{}.last", bench.path);
    client.create(&path, mark(now + 1_000).as_bytes(), CreateMode::Persistent).wait().unwrap();
    let run = || zklock("run", &["--once-per", "20h", &bench.path, "--", "echo", "ran"]);
    assert_eq!(run().1, "", "clocks of servers differ");
    client.set(&path, mark(now + 30 * 24 * 3_600_000).as_bytes(), None).wait().unwrap();
    assert_eq!(run().1, "ran\n");
    client.set(&path, mark(i64::MAX).as_bytes(), None).wait().unwrap();
    assert_eq!(zklock("last", &[&bench.path]).0, Some(0));
}
