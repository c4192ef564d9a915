//! The programs beside this folder, run as their first lines say, on a real server.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rustix::process::Signal;
use test_support::{Bench, Process, TIMEOUT, shared};

/// An example's program.
macro_rules! program {
    ($name:literal) => {
        env!(concat!("CARGO_BIN_EXE_", $name))
    };
}

/// Runs it to its end; gives what it says.
fn run(program: &str, arguments: &[&str]) -> Vec<String> {
    let mut process = Process::start(Command::new(program).args(arguments));
    let lines = std::iter::from_fn(|| process.hear()).collect();
    assert!(process.end().success(), "{program}: {lines:?}");
    lines
}

/// Plays it with locks on a server, and with locks in a file: the address is all that differs.
fn in_each_store(play: impl Fn(&str)) {
    play(&format!("zookeeper://{}", shared().hosts()));
    let folder = zklock_testing::Scratch::new(&std::env::temp_dir(), "stores-").unwrap();
    play(&format!("sqlite:{}", folder.path().join("locks.db").display()));
}

/// The token in a line that ends with it.
fn token(line: &str) -> i64 {
    line.rsplit(' ').next().unwrap().parse().unwrap_or_else(|_| panic!("no token: {line}"))
}

/// What a program says next that begins so.
fn next(process: &mut Process, begin: &str) -> String {
    let line = process.hear().unwrap_or_else(|| panic!("it ended before it said {begin:?}"));
    assert!(line.starts_with(begin), "{line:?} instead of {begin:?}");
    line
}

#[test]
fn each_is_tested_and_says_how_to_run_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tests = fs::read_to_string(folder.join("tests/examples.rs")).unwrap();
    let mut number = 0;
    for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_some_and(|end| end == "rs") {
            let name = file.file_stem().unwrap().to_str().unwrap();
            let said = format!("-p zklock-examples --bin {name}");
            assert!(fs::read_to_string(&file).unwrap().contains(&said), "{name}");
            assert!(tests.contains(&format!("program!(\"{name}\")")), "{name} is not tested");
            number += 1;
        }
    }
    assert!(number >= 8, "{number} examples");
}

#[test]
fn blocking() {
    in_each_store(|address| {
        let lines = run(program!("blocking"), &[address]);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with("working with token "), "{lines:?}");
    });
}

#[test]
fn tasks_take_turns() {
    in_each_store(|address| {
        for program in [program!("on_tokio"), program!("on_smol")] {
            let lines = run(program, &[address]);
            let tokens: Vec<i64> = lines.iter().map(|line| token(line)).collect();
            assert!(tokens.len() == 3 && tokens.is_sorted(), "{lines:?}");
            for task in 1..=3 {
                assert!(lines.iter().any(|line| line.starts_with(&format!("task {task} holds"))));
            }
        }
    });
}

#[test]
fn work_pauses_without_a_connection_and_stops_without_the_lock() {
    in_each_store(|address| {
        let done = run(program!("work_or_loss"), &[address, "2"]);
        assert_eq!(done, ["the lock is Held", "step 1", "step 2", "all 2 steps are done"]);
    });
    let bench = Bench::untouched();
    let arguments = [format!("zookeeper://{}", bench.proxy.hosts()), "100000".to_owned()];
    let mut work = Process::start(Command::new(program!("work_or_loss")).args(arguments));
    next(&mut work, "the lock is Held");
    next(&mut work, "step 1");
    bench.proxy.refuse();
    let suspended = std::iter::from_fn(|| work.hear()).find(|line| !line.starts_with("step "));
    assert_eq!(suspended.as_deref(), Some("the lock is Suspended"));
    work.expect("the lock is Lost");
    let last = next(&mut work, "stopped after ");
    assert!(last.ends_with("the lock is lost (Session)"), "{last}");
    assert!(work.end().success());
}

#[test]
fn a_stale_write_is_refused() {
    in_each_store(|address| {
        let lines = run(program!("fenced_store"), &[address]);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with("second holder") && lines[0].ends_with("written"));
        assert!(lines[1].starts_with("first holder") && lines[1].ends_with("refused"));
    });
}

#[test]
fn several_hold_a_shared_lock() {
    let lines = run(program!("shared_locks"), &[&shared().hosts()]);
    let said = [
        "two read, and a writer is kept out",
        "one writes, once both have finished",
        "one looks whether to write, while another reads",
        "it writes, and a reader is kept out",
        "it reads again, and so does another",
        "all permits are taken, and another transfer is kept out",
        "with 4 permits it is let in",
    ];
    assert_eq!(lines, said);
}

#[test]
fn many_locks_on_one_session() {
    in_each_store(|address| {
        let lines = run(program!("many_locks"), &[address, "2000"]);
        assert!(lines[0].starts_with("2000 locks held after "), "{lines:?}");
        assert!(lines[1].starts_with("released after "), "{lines:?}");
    });
}

#[test]
fn a_lost_reply_orphans_nothing() {
    let lines = run(program!("lost_reply"), &[]);
    assert!(lines[0].starts_with("held with token "), "{lines:?}");
    assert_eq!(lines[1], "0 claims are left behind");
}

/// The token and the process that has written last.
fn written(store: &Connection) -> (i64, u32) {
    store
        .query_row("SELECT token, line FROM state", [], |row| {
            let line: String = row.get(1)?;
            Ok((row.get(0)?, line.rsplit(' ').next().unwrap_or_default().parse().unwrap_or(0)))
        })
        .unwrap()
}

#[test]
fn a_service_is_taken_over_when_its_link_is_cut_and_ends_in_an_outage() {
    let bench = Bench::untouched();
    let folder = zklock_testing::Scratch::new(&std::env::temp_dir(), "service-").unwrap();
    let file = folder.path().join("service.db");
    let service = |hosts: String| {
        let mut command = Command::new(program!("singleton_service"));
        let mut service = Process::start(command.arg(hosts).arg(&file));
        service.expect("waiting");
        service
    };
    let mut first = service(bench.proxy.hosts());
    let first_token = token(&next(&mut first, "active with token "));
    let mut second = service(bench.server.hosts());

    // Without a link, the first stops before the second starts.
    bench.proxy.cut();
    let second_token = token(&next(&mut second, "active with token "));
    assert!(second_token > first_token);
    let store = Connection::open(&file).unwrap();
    store.busy_timeout(TIMEOUT).unwrap();
    let by_second = (second_token, second.running.0.id());
    let wrote = || written(&store) == by_second;
    test_support::eventually("the second writes", wrote);
    // The first one's token is stale now: its writes are refused, were there any.
    let stale = "UPDATE state SET line = 'stale' WHERE token <= ?1";
    assert_eq!(store.execute(stale, [first_token]).unwrap(), 0);

    // It waits for a connection that does not come, and ends within its limit of a second all the same.
    let asked = Instant::now();
    first.running.signal(Signal::INT);
    first.expect("stopped");
    assert!(first.end().success());
    assert!(asked.elapsed() < TIMEOUT, "{:?}", asked.elapsed());

    // Frozen for longer than its session, the second writes nothing more: the third holds. Frozen in the middle of a
    // write, it would keep the file locked.
    let other = Connection::open(&file).unwrap();
    other.busy_timeout(Duration::ZERO).unwrap();
    test_support::eventually("it is frozen between two writes", || {
        second.running.freeze();
        let is_free = other.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok();
        if !is_free {
            second.running.thaw();
        }
        is_free
    });
    let mut third = service(bench.server.hosts());
    let third_token = token(&next(&mut third, "active with token "));
    second.running.thaw();
    let by_third = (third_token, third.running.0.id());
    test_support::eventually("the third writes", || written(&store) == by_third);
    let end = Instant::now() + Duration::from_secs(1);
    while Instant::now() < end {
        assert_eq!(written(&store), by_third);
    }
    // In peace it is handed over at once. The second may have been frozen just before a write. That write was refused,
    // and no other was begun.
    third.running.signal(Signal::INT);
    third.expect("stopped");
    let mut line = next(&mut second, "");
    if line == "refused: a newer holder has written" {
        line = next(&mut second, "");
    }
    assert!(line.starts_with("active with token "), "{line:?}");
    let again = token(&line);
    assert!(again > third_token);
    second.running.signal(Signal::INT);
    second.expect("stopped");
    assert!(second.end().success() && third.end().success());
}

#[test]
fn leaders_follow_each_other_in_the_order_that_the_first_has_chosen() {
    in_each_store(|address| {
        let lines = run(program!("election"), &[address]);
        let names: Vec<_> = lines.iter().map(|line| line.split(' ').next().unwrap()).collect();
        assert_eq!(names, ["first", "third", "second"], "{lines:?}");
        let terms: Vec<i64> = lines.iter().map(|line| token(line)).collect();
        assert!(terms.is_sorted_by(|before, after| before < after), "{lines:?}");
    });
}

#[test]
fn numbers_are_given_once() {
    for number in 0..3 {
        let lines = run(program!("counter"), &[&shared().hosts(), "/examples/numbers"]);
        assert_eq!(lines[0], format!("the number {number} is mine"));
        assert_eq!(lines[1], format!("{} so far", number + 1));
    }
}

#[test]
fn workers_hear_of_each_other() {
    let lines = run(program!("group"), &[&shared().hosts()]);
    let [a, b] = ["\"10.0.0.1:8000\"", "\"10.0.0.2:8000\""];
    let there = [String::new(), a.to_owned(), format!("{a}, {b}"), b.to_owned()];
    assert_eq!(lines, there.map(|there| format!("there are [{there}]")));
}

#[test]
fn parts_of_a_job_begin_and_end_together() {
    let lines = run(program!("barriers"), &[&shared().hosts()]);
    assert_eq!(lines[0], "go");
    for part in 1..=3 {
        assert!(lines[1..4].contains(&format!("part {part} works")), "{lines:?}");
    }
    assert_eq!(lines[4], "all parts are done");
}

#[test]
fn nothing_is_left_of_the_locks_of_many_orders() {
    let lines = run(program!("keyed_locks"), &[&shared().hosts(), "200"]);
    assert_eq!(lines, ["200 orders, 0 of their znodes are left"]);
}

#[test]
fn jobs_are_done_at_least_once() {
    let lines = run(program!("queue"), &[&shared().hosts()]);
    assert_eq!(lines[0], "hurry is given back");
    // It comes again as soon as its claim is gone, which others need not wait for.
    let mut done = lines[1..].to_vec();
    done.sort();
    assert_eq!(done, ["dry is done", "hurry is done", "wash is done"]);
}
