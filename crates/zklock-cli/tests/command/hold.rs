//! `hold`: a lock for a script.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{ChildStdin, Command, Stdio};

use rustix::process::Signal;
use test_support::{Bench, Running};
use zklock_testing::eventually;

use super::program::{finish, zklock};

/// Holds, with what keeps it from ending, and what it said.
fn hold(bench: &Bench) -> (Running, ChildStdin, String) {
    let args = ["hold", "--hosts", &bench.server.hosts(), &bench.path];
    let mut child = zklock(&args).stdin(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let input = child.stdin.take().unwrap();
    let holding = Running(child);
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    (holding, input, line)
}

#[test]
fn a_lock_is_held_until_the_input_ends_or_a_signal_comes() {
    let bench = Bench::shared();
    let client = bench.direct();
    for signal in [None, Some(Signal::TERM), Some(Signal::INT), Some(Signal::HUP)] {
        let (holding, input, line) = hold(&bench);
        let holder = bench.lock(&client).holder().wait().unwrap().expect("it is held");
        assert_eq!(line, format!("{} {}\n", bench.path, holder.token));
        match signal {
            Some(signal) => holding.signal(signal),
            None => drop(input),
        }
        assert_eq!(holding.end().code(), Some(0), "{signal:?}");
        bench.expect_empty();
    }
}

#[test]
fn a_signal_that_it_was_started_to_ignore_releases_nothing() {
    let bench = Bench::shared();
    let mut command = Command::new("env");
    command.args(["--ignore-signal=INT,HUP", env!("CARGO_BIN_EXE_zklock"), "hold", "--hosts"]);
    command.args([&bench.server.hosts(), &bench.path]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let input = child.stdin.take().unwrap();
    let holding = Running(child);
    said.read_line(&mut String::new()).unwrap();
    holding.signal(Signal::INT);
    holding.signal(Signal::HUP);
    // Which would come after those.
    let client = bench.direct();
    assert_eq!(finish(&["ls", "--hosts", &bench.server.hosts(), &bench.path]).0, Some(0));
    assert!(bench.lock(&client).try_acquire().wait().unwrap().is_none());
    drop(input);
    assert_eq!(holding.end().code(), Some(0));
}

#[test]
fn a_holder_that_is_asked_or_robbed_ends_with_a_status_of_its_own() {
    let bench = Bench::shared();
    let hosts = bench.server.hosts();
    let (asked, _input, _) = hold(&bench);
    assert_eq!(finish(&["ask", "--hosts", &hosts, &bench.path]).0, Some(0));
    assert_eq!(asked.end().code(), Some(124));
    let (broken, _input, _) = hold(&bench);
    assert_eq!(finish(&["break", "--yes", "--hosts", &hosts, &bench.path]).0, Some(0));
    assert_eq!(broken.end().code(), Some(124));
}

#[test]
fn a_lock_that_is_not_to_be_had_in_time_leaves_nothing_behind() {
    let bench = Bench::shared();
    let hosts = bench.server.hosts();
    let client = bench.direct();
    let held = bench.lock(&client).label("in its way").acquire().wait().unwrap();
    for (limit, says) in [
        (&["--no-wait"][..], "not acquired at once: held by "),
        // A busy server may not have said by whom.
        (&["--wait", "100ms"], "not acquired within 100ms: "),
    ] {
        let args = [&["hold", "--hosts", &hosts, &bench.path], limit].concat();
        let mut child = zklock(&args).stdin(Stdio::piped()).spawn().unwrap();
        // Its input stays open until it has ended.
        let _input = child.stdin.take();
        let out = child.wait_with_output().unwrap();
        let err = String::from_utf8(out.stderr).unwrap();
        assert_eq!((out.status.code(), out.stdout), (Some(1), Vec::new()), "{err}");
        assert!(err.contains(says), "{err}");
    }
    // Also one that waits without a limit gives up with its input.
    let args = ["hold", "--hosts", &hosts, &bench.path];
    let mut child = zklock(&args).stdin(Stdio::piped()).spawn().unwrap();
    let input = child.stdin.take();
    let waiting = Running(child);
    eventually("it waits", || bench.children().len() == 2);
    drop(input);
    assert_eq!(waiting.end().code(), Some(1));
    assert_eq!(bench.children().len(), 1);
    held.release().wait().unwrap();
}

#[test]
fn a_lock_without_a_server_is_not_waited_for_longer_than_wanted() {
    for (args, ends) in [(&["--wait", "100ms"][..], false), (&["--wait", "1h"], true), (&[], true)]
    {
        let servers = ["hold", "--hosts", "127.0.0.1:1", "--connect-timeout", "1h", "/a"];
        let mut child = zklock(&[&servers, args].concat()).stdin(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let waiting = Running(child);
        let _input = input.filter(|_| !ends);
        assert_eq!(waiting.end().code(), Some(1), "{args:?}");
    }
}

#[test]
fn a_lock_whose_token_could_not_be_written_is_released_at_once() {
    let bench = Bench::shared();
    let args = ["hold", "--hosts", &bench.server.hosts(), &bench.path];
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut child = zklock(&args).stdin(Stdio::piped()).stdout(full).spawn().unwrap();
    let _input = child.stdin.take();
    assert_eq!(Running(child).end().code(), Some(125));
    // Not only when its session ends.
    assert_eq!(bench.children().len(), 0);
}

#[test]
fn a_lock_that_was_lost_before_its_release_is_told_as_lost() {
    let bench = Bench::shared();
    let client = bench.direct();
    let (holding, input, _) = hold(&bench);
    holding.freeze();
    let holder = bench.lock(&client).holder().wait().unwrap().expect("it is held");
    client.delete(&holder.path, None).wait().unwrap();
    drop(input);
    holding.thaw();
    assert_eq!(holding.end().code(), Some(124));
}
