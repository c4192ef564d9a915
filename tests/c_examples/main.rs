//! The programs in `c-examples/`, built against an installed tree as their first lines say, and run
//! on real servers.

mod lock_test;

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use test_support::c_programs::{
    command, limited, prefix, root, run, scratch, under_valgrind, with_pkg_config,
};
use test_support::{Process, once};
use zklock_testing::{Proxy, Server};

/// All of them by name, without their endings.
fn examples() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(root().join("c-examples"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "c" || end == "cc"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The examples, built by `c-examples/Makefile`, which asks pkg-config alone.
fn built() -> PathBuf {
    once("c-examples", |out| {
        let mut make = with_pkg_config("make");
        make.arg("-C").arg(root().join("c-examples")).arg(format!("OUT={}", out.display()));
        run(&mut make);
    })
}

#[test]
fn the_examples_are_those_that_the_documents_promise() {
    for name in [
        "adopt_handle",
        "fenced_write",
        "legacy_lock",
        "lock_test",
        "on_lost",
        "raii",
        "event_loop",
        "prefork",
        "thread_pool",
        "several_locks",
        "election",
        "counter",
        "work_queue",
        "group",
        "barriers",
    ] {
        assert!(examples().iter().any(|example| example == name), "{name} is missing");
    }
}

#[test]
fn every_example_says_in_its_first_lines_how_it_is_built_and_that_builds_it() {
    for name in examples() {
        let (file, says) = ["c", "cc"]
            .map(|end| format!("{name}.{end}"))
            .into_iter()
            .find_map(|file| {
                let text = fs::read_to_string(root().join("c-examples").join(&file)).ok()?;
                let line = text.lines().take(20).find_map(|line| line.split_once("Build:"))?.1;
                Some((file, line.trim().to_owned()))
            })
            .unwrap_or_else(|| panic!("{name} does not say how it is built"));
        assert!(says.contains(&format!("{file} $(pkg-config --cflags --libs zklock)")), "{says}");
        let copy = scratch("as_said");
        fs::copy(root().join("c-examples").join(&file), copy.join(&file)).unwrap();
        run(with_pkg_config("sh").args(["-c", &says]).current_dir(&copy));
        assert!(copy.join(&name).is_file(), "{says} did not make {name}");
    }
}

#[test]
fn every_example_runs_built_by_make() {
    let server = Server::start().unwrap();
    for name in examples() {
        let said = run(limited(built().join(&name)).arg(server.hosts()));
        assert!(!said.is_empty(), "{name} said nothing");
    }
}

#[test]
fn every_example_runs_built_by_cmake() {
    let server = Server::start().unwrap();
    let out = scratch("cmake");
    let mut configure = command("cmake");
    configure.arg("-S").arg(root().join("c-examples")).arg("-B").arg(&out);
    run(configure.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix().display())));
    run(command("cmake").arg("--build").arg(&out));
    for name in examples() {
        run(limited(out.join(&name)).arg(server.hosts()));
    }
}

#[test]
fn every_example_refuses_other_arguments_and_reports_errors() {
    for name in examples() {
        for arguments in [&[][..], &["127.0.0.1:1", "and", "more"]] {
            let output = limited(built().join(&name)).args(arguments).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{name} {arguments:?}");
            assert!(String::from_utf8_lossy(&output.stderr).starts_with("usage: "), "{name}");
        }
        let output = limited(built().join(&name)).arg("no hosts at all").output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{name}: {output:?}");
        assert!(!output.stderr.is_empty(), "{name} says nothing of its failure");
    }
}

#[test]
fn the_small_examples_are_clean_under_valgrind() {
    let server = Server::start().unwrap();
    for name in [
        "adopt_handle",
        "event_loop",
        "fenced_write",
        "legacy_lock",
        "on_lost",
        "raii",
        "shared_locks",
        "several_locks",
        "election",
        "counter",
        "work_queue",
        "group",
        "barriers",
    ] {
        run(under_valgrind(&built().join(name), true).arg(server.hosts()));
    }
}

#[test]
fn several_hold_a_shared_lock() {
    let server = Server::start().unwrap();
    let said = run(limited(built().join("shared_locks")).arg(server.hosts()));
    let lines = [
        "two read, and a writer is kept out",
        "one writes, once both have finished",
        "one looks whether to write, while another reads",
        "it writes, and a reader is kept out",
        "it reads again, and so does another",
        "all permits are taken, and another transfer is kept out",
        "with 4 permits it is let in",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), lines);
}

#[test]
fn the_recipes_do_what_their_examples_say() {
    let server = Server::start().unwrap();
    for (name, lines) in [
        (
            "several_locks",
            &[
                "2 locks are held, both with the same token",
                "either alone is taken",
                "released together",
            ][..],
        ),
        (
            "election",
            &[
                "first leads",
                "third leads",
                "its term is larger",
                "who observes has seen it",
                "second leads",
            ],
        ),
        (
            "counter",
            &[
                "the number 0 is mine",
                "the number 1 is mine",
                "the number 2 is mine",
                "it was 3, and is 100",
            ],
        ),
        (
            "work_queue",
            &["wash is given back", "wash is delivered again", "hurry is done", "dry is done"],
        ),
        (
            "group",
            &[
                "there are []",
                "there are [10.0.0.1:8000]",
                "there are [10.0.0.1:8000, 10.0.0.2:8000]",
                "there are [10.0.0.2:8000]",
            ],
        ),
        ("barriers", &["go", "a part works", "a part works", "a part works", "all parts are done"]),
    ] {
        let said = run(limited(built().join(name)).arg(server.hosts()));
        assert_eq!(said.lines().collect::<Vec<_>>(), lines, "{name}");
    }
}

#[test]
fn a_write_that_the_lock_does_not_cover_any_more_is_refused() {
    let server = Server::start().unwrap();
    let said = run(limited(built().join("fenced_write")).arg(server.hosts()));
    assert!(said.contains("written: version 1\nrefused: "), "{said}");
    assert!(said.ends_with("the balance is 90\n"), "{said}");
}

/// The last line of the event loop: how long its longest turn took.
fn longest_turn(line: &str) -> f64 {
    let milliseconds =
        line.rsplit_once("the longest turn took ").and_then(|(_, it)| it.strip_suffix(" ms"));
    milliseconds.unwrap_or_else(|| panic!("{line}")).parse().unwrap()
}

#[test]
fn an_event_loop_goes_on_while_its_lock_is_lost_and_acquired_again() {
    let server = Server::start().unwrap();
    let proxy = Proxy::start(server.addr()).unwrap();
    let mut program = Process::start(limited(built().join("event_loop")).arg(proxy.hosts()));
    let first = program.hear().unwrap();
    assert!(first.starts_with("held: token "), "{first}");
    proxy.cut();
    program.expect(&first.replace("held", "lost"));
    // What it asks for meanwhile is not answered.
    thread::sleep(Duration::from_secs(1));
    proxy.heal();
    let again = program.hear().unwrap();
    assert!(again.starts_with("held: token ") && again != first, "{again}");
    proxy.cut();
    program.expect(&again.replace("held", "lost"));
    // It waits for the lock, without a connection.
    program.close_input();
    let longest = longest_turn(&program.hear().unwrap());
    eprintln!("the longest turn took {longest} ms");
    // Had it waited for any answer, it would have waited for seconds.
    assert!(longest < 1_000.0, "{longest} ms");
    assert!(program.end().success());
}

#[test]
fn workers_that_were_forked_and_threads_of_a_pool_take_turns() {
    let server = Server::start().unwrap();
    let said = run(limited(built().join("prefork")).arg(server.hosts()));
    assert_eq!(said, "4 workers counted to 100\n");
    let said = run(limited(built().join("thread_pool")).arg(server.hosts()));
    assert!(
        said.starts_with("40 jobs by 4 threads, ") && said.ends_with(" clashes: 0\n"),
        "{said}"
    );
}

#[test]
fn another_language_needs_nothing_but_the_library() {
    let server = Server::start().unwrap();
    let mut python = command("python3");
    python.arg(root().join("c-examples/lock.py")).arg(server.hosts());
    let said = run(python.env("LD_LIBRARY_PATH", prefix().join("lib")));
    let mut lines = said.lines();
    assert!(lines.next().is_some_and(|line| line.starts_with("held, with the token ")), "{said}");
    let refused = lines.next().unwrap();
    assert!(refused.contains("not acquired in time: behind "), "{said}");
}

#[test]
fn work_stops_when_its_lock_is_lost() {
    let server = Server::start().unwrap();
    let said = run(limited(built().join("on_lost")).arg(server.hosts()));
    assert!(said.contains("poll: stopped after 10 pieces of work"), "{said}");
    assert!(said.contains("its znode was deleted"), "{said}");
}
