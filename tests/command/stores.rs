//! `zklock run --store`: the same promises where no server runs.

use std::time::Duration;

use test_support::{TIMEOUT, eventually};
use zklock::stores::StoreOptions;

use super::program::{finish, start};

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
    let store = ["run", "--store", &address, "--session-timeout", "2s"];
    let run = start(&[&store[..], &["/jobs/a", "--", "sh", "-c", &script]].concat());
    eventually("it runs", || begun.exists());
    let (code, out, err) =
        finish(&[&store[..], &["--no-wait", "/jobs/a", "--", "echo", "ran"]].concat());
    assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
    assert!(err.contains("has the lock"), "{err}");
    // Kills it.
    drop(run);
    let (code, out, err) = finish(&[&store[..], &["/jobs/a", "--", "echo", "ran"]].concat());
    assert_eq!((code, out.as_str()), (Some(0), "ran\n"), "{err}");
}

#[test]
fn a_command_is_ended_before_the_lock_of_a_file_that_is_locked_can_be_anothers() {
    let (directory, address) = file();
    let begun = directory.path().join("begun");
    let script = format!("touch {}; exec sleep 600", begun.display());
    let args = [
        "run",
        "--store",
        &address,
        "--session-timeout",
        "2s",
        "/jobs/a",
        "--",
        "sh",
        "-c",
        &script,
    ];
    let run = start(&args);
    eventually("it runs", || begun.exists());
    let program = rusqlite::Connection::open(directory.path().join("locks.db")).unwrap();
    program.busy_timeout(TIMEOUT).unwrap();
    program.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let ended = run.end();
    program.execute_batch("ROLLBACK").unwrap();
    assert_eq!(ended.code(), Some(124), "lost");
    let options = StoreOptions::new().session_timeout(Duration::from_secs(2));
    let store = options.connect(&address).wait().unwrap();
    store.lock("/jobs/a").acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
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
    let (code, _, err) = finish(&args);
    assert!(code == Some(125) && err.contains("database is locked"), "{err}");
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
}
