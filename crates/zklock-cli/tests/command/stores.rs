//! Other stores than ZooKeeper: the same promises where no server runs.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use test_support::{Bench, Running, TIMEOUT, eventually};
use zklock::StoreOptions;

use super::program::{finish, start, zklock};

fn file() -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", directory.path().join("locks.db").display());
    (directory, address)
}

#[test]
fn a_command_runs_under_a_lock_in_a_file_with_a_token_that_grows() {
    let (directory, address) = file();
    let token = directory.path().join("token");
    let run = || {
        let (file, script) = (token.to_str().unwrap(), "echo $ZKLOCK_TOKEN $ZKLOCK_PATH; exit 3");
        let args =
            ["run", "--store", &address, "--token-file", file, "/jobs/a", "--", "sh", "-c", script];
        let (code, out, err) = finish(&args);
        assert_eq!(code, Some(3), "{err}");
        let (token, path) = out.trim().split_once(' ').unwrap();
        assert_eq!(path, "/jobs/a");
        token.parse::<i64>().unwrap()
    };
    let first = run();
    assert!(run() > first);
    let store = zklock::connect(&address).wait().unwrap();
    assert!(store.lock("/jobs/a").contenders().wait().unwrap().is_empty());
}

#[test]
fn while_one_runs_another_does_not_and_after_it_was_killed_the_next_does() {
    let (directory, address) = file();
    let begun = directory.path().join("begun");
    let script = format!("touch {}; exec sleep 600", begun.display());
    let store = ["run", "--store", &address, "--session-timeout", "4s"];
    let run = start(&[&store[..], &["/jobs/a", "--", "sh", "-c", &script]].concat());
    eventually("it runs", || begun.exists());
    let (code, out, err) =
        finish(&[&store[..], &["--no-wait", "/jobs/a", "--", "echo", "ran"]].concat());
    assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
    assert!(err.contains("/jobs/a: not acquired: held by sh ("), "{err}");
    // Kills it.
    drop(run);
    let (code, out, err) = finish(&[&store[..], &["/jobs/a", "--", "echo", "ran"]].concat());
    assert_eq!((code, out.as_str()), (Some(0), "ran\n"), "{err}");
}

#[test]
fn a_command_is_ended_before_the_lock_of_a_file_that_is_locked_can_be_anothers() {
    let (directory, address) = file();
    let begun = directory.path().join("begun");
    let script = format!("echo $$ >{}; exec sleep 600", begun.display());
    let session = ["run", "--store", &address, "--session-timeout", "5s"];
    let run = start(&[&session[..], &["/jobs/a", "-c", &script]].concat());
    let pid = || std::fs::read_to_string(&begun).unwrap_or_default().trim().to_owned();
    eventually("it runs", || !pid().is_empty());
    let command = format!("/proc/{}/cwd", pid());
    let program = rusqlite::Connection::open(directory.path().join("locks.db")).unwrap();
    program.busy_timeout(TIMEOUT).unwrap();
    program.execute_batch("BEGIN EXCLUSIVE").unwrap();
    // From then on another may have it: nanoseconds since the machine was booted.
    let expires = || {
        let ask = "SELECT expires FROM zklock_session";
        program.query_row(ask, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let mut was_held = false;
    eventually("the command is ended", || {
        let now = clock_gettime(ClockId::Boottime);
        let now = now.tv_sec * 1_000_000_000 + now.tv_nsec;
        let is_alive = std::fs::exists(&command).unwrap();
        let is_held = now < expires();
        was_held |= is_held && is_alive;
        assert!(is_held || !is_alive, "it lives after the lock: {now} {}", expires());
        !is_alive
    });
    assert!(was_held);
    program.execute_batch("ROLLBACK").unwrap();
    assert_eq!(run.end().code(), Some(124), "lost");
    let options = StoreOptions::new().session_timeout(Duration::from_secs(2));
    let store = options.connect(&address).wait().unwrap();
    store.lock("/jobs/a").acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
}

#[test]
fn a_service_may_be_started_before_its_store() {
    let (directory, address) = file();
    let run = |more: &[&str]| {
        let store = ["run", "--store", &address, "--connect-timeout", "300ms"];
        start(&[&store, more, &["/jobs/a", "--", "sh", "-c", "exit 3"]].concat())
    };
    let program = rusqlite::Connection::open(directory.path().join("locks.db")).unwrap();
    program.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let service = run(&["--restart"]);
    assert_eq!(run(&[]).end().code(), Some(125));
    program.execute_batch("ROLLBACK").unwrap();
    assert_eq!(service.end().code(), Some(3));
}

#[test]
fn tokens_go_on_above_the_one_that_is_given() {
    let (_directory, address) = file();
    let run = |more: &[&str]| {
        let command = ["/jobs/a", "--", "sh", "-c", "echo $ZKLOCK_TOKEN"];
        let (code, out, err) = finish(&[&["run", "--store", &address], more, &command].concat());
        assert_eq!(code, Some(0), "{err}");
        out.trim().parse::<i64>().unwrap()
    };
    let above = run(&[]) + (1 << 50);
    assert!(run(&["--tokens-above", &above.to_string()]) > above);
    assert!(run(&[]) > above, "also without the option, from then on");
}

#[test]
fn a_run_that_waits_in_vain_says_what_for() {
    let (directory, address) = file();
    let args = ["run", "--store", &address, "--wait", "2s", "/jobs/a", "--", "true"];
    assert_eq!(finish(&args).0, Some(0));
    let program = rusqlite::Connection::open(directory.path().join("locks.db")).unwrap();
    program.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let at_once = ["run", "--store", &address, "--connect-timeout", "1s", "/jobs/a", "--", "true"];
    for args in [&args[..], &at_once] {
        let (code, _, err) = finish(args);
        assert!(code == Some(125) && err.contains("database is locked"), "{err}");
    }
}

#[test]
fn the_session_timeout_of_the_file_is_that_of_every_store() {
    let (directory, address) = file();
    let config = directory.path().join("zklock.toml");
    std::fs::write(&config, format!("store = \"{address}\"\nsession-timeout = \"50ms\"\n"))
        .unwrap();
    // (`hold` would look at its input, too.)
    let run = ["--config", config.to_str().unwrap(), "run", "/jobs/a", "--", "true"];
    let (code, _, err) = finish(&run);
    assert!(code != Some(0) && err.contains("from 100 ms"), "{err}");
}

#[test]
fn what_a_store_can_do_each_command_does_wherever_the_store_is_named() {
    let (_directory, address) = file();
    let free = |args: &[&str]| assert_eq!(finish(args).0, Some(1), "{args:?}");
    free(&["--store", &address, "who", "/jobs/a"]);
    free(&["who", "--hosts", &address, "/jobs/a"]);
    let mut by_variable = zklock(&["who", "/jobs/a"]);
    by_variable.env("ZKLOCK_STORE", &address).env("ZKLOCK_HOSTS", "127.0.0.1:1");
    assert_eq!(by_variable.output().unwrap().status.code(), Some(1));

    for (command, status) in [("ask", Some(124)), ("break", Some(124))] {
        let mut child = zklock(&["--store", &address, "hold", "/jobs/a"]);
        let mut child = child.stdin(Stdio::piped()).spawn().unwrap();
        let _input = child.stdin.take();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let holding = Running(child);
        let store = ["--store", &address];
        let (code, out, err) =
            finish(&[&store[..], &["watch", "--lines", "1", "/jobs/a"]].concat());
        assert!(code == Some(0) && out.contains(" held by zklock hold ("), "{out}{err}");
        let (code, out, _) = finish(&[&store[..], &["who", "/jobs/a"]].concat());
        assert!(code == Some(0) && out.contains("holds"), "{out}");
        let yes = if command == "break" { &["--yes"][..] } else { &[] };
        let (code, out, err) = finish(&[&store[..], &[command, "/jobs/a"], yes].concat());
        assert_eq!(code, Some(0), "{out}{err}");
        assert_eq!(holding.end().code(), status);
    }
    let (code, out, err) = finish(&["doctor", "--store", &address, "--probe", "/jobs/b"]);
    assert!(code == Some(0) && out.contains("acquired within"), "{out}{err}");
    for command in ["ls", "clean", "top", "serve", "last"] {
        let (code, out, err) = finish(&["--store", &address, command, "/jobs/a"]);
        assert_eq!((code, out.as_str()), (Some(125), ""), "{command}");
        assert!(err.contains("needs ZooKeeper") && err.lines().count() == 1, "{command}: {err}");
    }
}

#[test]
fn hosts_and_addresses_are_taken_by_either_name_of_the_option() {
    let bench = Bench::shared();
    let hosts = bench.server.hosts();
    let address = format!("zookeeper://{hosts}");
    for (option, value) in
        [("--store", &hosts), ("--hosts", &address), ("--store", &address), ("--hosts", &hosts)]
    {
        let (code, _, err) = finish(&[option, value, "ls", &bench.path]);
        assert_eq!(code, Some(0), "{option} {value}: {err}");
    }
}

#[test]
fn no_address_shows_its_password_in_the_error() {
    for address in [
        "host=127.0.0.1 password=hunter2",
        "redis:hunter2@127.0.0.1",
        "root:hunter2@127.0.0.1/db",
        "mysql:root:hunter2@127.0.0.1/db",
        "Server=127.0.0.1;Pwd=hunter2",
        "postgres://host=127.0.0.1 password=hunter2",
        "zookeeper://root:hunter2@127.0.0.1",
        "127.0.0.1:6379,password=hunter2",
    ] {
        for args in [
            &["run", "--store", address, "/jobs/a", "--", "true"][..],
            &["run", "--hosts", address, "/jobs/a", "--", "true"],
            &["ls", "/jobs", "--hosts", address],
            &["doctor", "--hosts", address],
        ] {
            let (code, out, err) = finish(args);
            assert!(code != Some(0) && !(out + &err).contains("hunter2"), "{args:?}: {err}");
        }
    }
}

#[test]
fn what_a_store_lacks_is_refused_with_what_would_do() {
    let (_directory, address) = file();
    for (args, helps) in [
        (&["--store", &address, "--once-per", "1h"][..], "ran last"),
        (&["--store", &address, "--universal"], "permissions"),
        (&["--store", "local:"], "sqlite:FILE"),
        (&["--store", "zookeeper://127.0.0.1:1", "--tokens-above", "1"], "cannot be raised"),
        (&["--store", "sqlite:"], "which file"),
        (&["--store", "nowhere:a"], "zookeeper://"),
    ] {
        let (code, out, err) =
            finish(&[&["run"], args, &["/jobs/a", "--", "echo", "ran"]].concat());
        assert_eq!((code, out.as_str()), (Some(125), ""), "{args:?}: {err}");
        assert!(err.contains(helps), "{args:?}: {err}");
    }
    // It may be built without it.
    let (code, _, err) = finish(&[
        "who",
        "/a",
        "--store",
        "postgres://127.0.0.1:1/a",
        "--tls-ca",
        "/nowhere/ca.pem",
    ]);
    let has_tls = err.contains("/nowhere/ca.pem");
    assert!(code != Some(0) && (has_tls || err.contains("postgres-tls")), "{err}");
    // A file has no server. The setting may be for others.
    let beside =
        ["run", "--store", &address, "--tls-ca", "/nowhere/ca.pem", "/jobs/a", "--", "true"];
    assert_eq!(finish(&beside).0, Some(0));
}
