//! `ls`, `who` and `watch`.

use std::io::{BufRead, BufReader};

use serde_json::Value;
use test_support::{Bench, Running, Stranger, acquire_in_background};
use zklock::Strategy;
use zklock_testing::eventually;
use zklock_testing::wire::CreateMode;

use super::program::{finish, start, unhindered, zklock};

fn ask(bench: &Bench, args: &[&str]) -> String {
    let hosts = bench.server.hosts();
    let (code, out, err) = finish(&[args, &["--hosts", &hosts]].concat());
    assert_eq!(code, Some(0), "{err}");
    out
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn ls_shows_each_lock_with_its_holder_and_who_the_queue() {
    let bench = Bench::untouched();
    let client = bench.direct();
    let report = client.lock("/locks/report").label("nightly run");
    let held = report.acquire().wait().unwrap();
    let one_znode = client.lock("/locks/one").strategy(Strategy::Watch).label("single");
    let single = one_znode.acquire().wait().unwrap();
    let other = bench.direct();
    let waiting = acquire_in_background(&other.lock("/locks/report").label("behind"));
    eventually("it waits", || report.contenders().wait().unwrap().len() == 2);

    let out = ask(&bench, &["ls"]);
    let rows: Vec<&str> = out.lines().collect();
    assert_eq!(rows.len(), 3, "{out}");
    assert!(rows[1].starts_with("/locks/one ") && rows[1].contains("single ("), "{out}");
    assert!(rows[2].starts_with("/locks/report") && rows[2].contains("nightly run ("), "{out}");
    let found = lines(&ask(&bench, &["ls", "--json", "/locks"]));
    assert_eq!((&found[1]["path"], &found[1]["waiters"]), (&"/locks/report".into(), &1.into()));
    assert_eq!(found[1]["holder"]["token"], held.fencing_token());
    assert_eq!(found[0]["kind"], "one znode");

    let out = ask(&bench, &["who", "/locks/report"]);
    let rows: Vec<&str> = out.lines().collect();
    assert!(rows[1].starts_with("holds") && rows[1].contains("nightly run"), "{out}");
    assert!(rows[2].starts_with("waits") && rows[2].contains("behind"), "{out}");
    let queue = &lines(&ask(&bench, &["who", "/locks/report", "--json"]))[0]["contenders"];
    assert_eq!(queue[0]["pid"], std::process::id());
    assert_eq!((&queue[0]["holds"], &queue[1]["holds"]), (&true.into(), &false.into()));
    let alone = &lines(&ask(&bench, &["who", "/locks/one", "--json"]))[0]["contenders"][0];
    assert_eq!((&alone["library"], &alone["label"]), (&"zklock".into(), &"single".into()));
    drop((held, single));
    drop(waiting.join().unwrap());
    for (path, says) in
        [("/locks/report", "nobody holds it or waits for it"), ("/nobody/there", "does not exist")]
    {
        let (code, out, _) = finish(&["who", "--hosts", &bench.server.hosts(), path]);
        assert_eq!(code, Some(1), "it is free: {out}");
        assert!(out.contains(says), "{out}");
    }
}

#[test]
fn all_who_hold_permits_are_counted_as_holders() {
    let bench = Bench::untouched();
    let client = bench.direct();
    let permits = client.semaphore("/permits", 2).permit();
    let held = [(); 2].map(|()| permits.acquire().wait().unwrap());
    let waiting = acquire_in_background(&permits);
    eventually("it waits", || permits.contenders().wait().unwrap().len() == 3);
    let found = &lines(&ask(&bench, &["ls", "--json", "/permits"]))[0];
    assert_eq!((&found["holders"], &found["waiters"]), (&2.into(), &1.into()), "{found}");
    drop(held);
    drop(waiting.join().unwrap());
}

#[test]
fn claims_of_other_libraries_are_known_by_their_names() {
    let bench = Bench::with_directory();
    let mut claims = Vec::new();
    for (name, library) in [
        ("_c_8a7ed3a3-3e4f-44c2-a8f0-3b6e6d0a9c11-lock-", "Curator or zookeeper-client"),
        ("_c_0123456789abcdef0123456789abcdef-lock-", "go-zookeeper"),
        ("0123456789abcdef0123456789abcdef__lock__", "kazoo"),
        ("x-72057793038516224-", "ZooKeeper's Java recipe"),
        ("x-0100002e67c5e000-", "ZooKeeper's C recipe"),
    ] {
        let prefix = format!("{}/{name}", bench.path);
        let mode = CreateMode::EphemeralSequential;
        claims.push((Stranger::claims(bench.raw(), &prefix, mode), library));
    }
    bench.raw().create(&format!("{}/readme", bench.path), b"no claim").unwrap();
    let queue = lines(&ask(&bench, &["who", &bench.path, "--json"]));
    let queue = queue[0]["contenders"].as_array().unwrap();
    let libraries: Vec<&str> =
        queue.iter().map(|contender| contender["library"].as_str().unwrap()).collect();
    assert_eq!(libraries, claims.iter().map(|(_, library)| *library).collect::<Vec<_>>());
    let found = lines(&ask(&bench, &["ls", "--json", &bench.path]));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["waiters"], 4);
    assert_eq!(found[0]["libraries"].as_array().map(Vec::len), Some(5));
}

#[test]
fn a_run_that_kazoo_waits_for_is_listed_once() {
    let bench = Bench::with_directory();
    let hosts = bench.server.hosts();
    let running = start(&["run", "--hosts", &hosts, "--universal", &bench.path, "sleep", "600"]);
    eventually("it holds", || bench.children().len() == 2);
    let queue = lines(&ask(&bench, &["who", &bench.path, "--json"]));
    let queue = queue[0]["contenders"].as_array().unwrap();
    assert_eq!(queue.len(), 1, "{queue:?}");
    assert_eq!((&queue[0]["library"], &queue[0]["holds"]), (&"zklock".into(), &true.into()));
    let found = lines(&ask(&bench, &["ls", "--json", &bench.path]));
    assert_eq!((found.len(), &found[0]["waiters"]), (1, &0.into()), "{found:?}");
    drop(running);
}

#[test]
fn watch_says_a_line_for_each_holder() {
    let bench = Bench::shared();
    let client = bench.direct();
    let held = bench.lock(&client).label("first").acquire().wait().unwrap();
    let hosts = bench.server.hosts();
    let mut command = zklock(&["watch", "--hosts", &hosts, &bench.path, "--lines", "3"]);
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    let watching = Running(child);
    let mut next = || said.next().expect("a line").unwrap();
    assert!(next().contains("first ("));
    held.release().wait().unwrap();
    assert!(next().ends_with(" free"));
    let held = bench.lock(&client).label("second").acquire().wait().unwrap();
    let line = next();
    assert!(line.contains("second ("), "{line}");
    assert!(line.ends_with(&format!(" token {}", held.fencing_token())), "{line}");
    assert!(watching.end().success());
}

#[test]
fn a_path_that_does_not_exist_yet_has_no_locks() {
    let bench = Bench::shared();
    let hosts = bench.server.hosts();
    let (code, out, err) = finish(&["ls", "--hosts", &hosts, "/no/such/path"]);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(out, "/no/such/path does not exist: nobody has used a lock there yet\n");
    let json = finish(&["ls", "--hosts", &hosts, "--json", "/no/such/path"]);
    assert_eq!(json, (Some(0), String::new(), String::new()));
    let (code, out, err) = finish(&["clean", "--hosts", &hosts, "/no/such/path"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("nothing is left behind"), "{out}");
}

#[test]
fn a_watch_ends_when_nobody_reads_it_any_more() {
    let bench = Bench::shared();
    let hosts = bench.server.hosts();
    let mut child = zklock(&["watch", "--hosts", &hosts, &bench.path]).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let watching = Running(child);
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.ends_with(" free\n"), "{line}");
    // Nothing happens to the lock after this.
    drop(said);
    assert_eq!(watching.end().code(), Some(128 + 13));
}

#[test]
fn output_that_does_not_arrive_is_reported_unless_nobody_reads() {
    let bench = Bench::shared();
    let client = bench.direct();
    let held = bench.lock(&client).acquire().wait().unwrap();
    let hosts = bench.server.hosts();
    let line = |args: &[&str], rest: &str| {
        let line = format!("exec '{}' {} {rest}", env!("CARGO_BIN_EXE_zklock"), args.join(" "));
        let out = unhindered("sh").args(["-c", &line]).output().unwrap();
        (out.status.code(), String::from_utf8(out.stderr).unwrap())
    };
    let path = bench.path.as_str();
    let (ls, who) = (["ls", "--hosts", &hosts, "--json", path], ["who", "--hosts", &hosts, path]);
    for args in [&ls[..], &who, &["doctor", "--hosts", &hosts], &["--help"], &["--version"]] {
        let (code, err) = line(args, ">/dev/full");
        assert_eq!(code, Some(125), "{args:?}: {err}");
        assert!(err.contains("write to stdout: No space left"), "{args:?}: {err}");
    }
    let mut child = zklock(&ls).spawn().unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr), (Some(128 + 13), Vec::new()));
    held.release().wait().unwrap();
}
