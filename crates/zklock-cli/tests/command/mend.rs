//! `ask` and `doctor`.

use std::thread;
use std::time::Duration;

use serde_json::Value;
use test_support::{Bench, LONGEST_SESSION, TIMEOUT, options};
use zklock::{Access, GuardState, Interop};
use zklock_testing::wire::{CreateMode, Op};
use zklock_testing::{Ensemble, Rule, Server, eventually};

use super::program::{finish, start};
use super::scene::{Scene, rounds};
use test_support::Stranger;

#[test]
fn a_holder_that_is_asked_gives_way_when_its_command_is_gone() {
    for _ in 0..rounds() {
        let scene = Scene::begin_to_stay("trap '' TERM; $LINES");
        let second = scene.second();
        let hosts = scene.bench.server.hosts();
        let args = ["ask", "--hosts", &hosts, "--reason", "deployment", &scene.bench.path];
        let (code, out, err) = finish(&args);
        assert_eq!(code, Some(0), "{err}");
        assert!(out.contains("bash (") && out.contains(") has given way"), "{out}");
        assert_eq!(scene.expect_handover(second), Some(124));
    }
}

#[test]
fn a_hold_that_is_broken_passes_on_when_its_command_is_gone() {
    for _ in 0..rounds() {
        let scene = Scene::begin_to_stay("trap '' TERM; $LINES");
        let second = scene.second();
        let hosts = scene.bench.server.hosts();
        let grace = ["--grace", "1h"];
        let unasked = [&["break", "--hosts", &hosts, &scene.bench.path][..], &grace].concat();
        let (code, _, err) = finish(&unasked);
        assert!(code == Some(125) && err.contains("--yes"), "{err}");
        let (code, out, err) = finish(&[&unasked[..], &["--yes", "--reason", "stuck"]].concat());
        assert_eq!(code, Some(0), "{err}");
        assert!(out.contains("bash (") && out.contains(") has lost it"), "{out}");
        assert_eq!(scene.expect_handover(second), Some(124));
    }
}

#[test]
fn a_holder_that_is_stuck_is_robbed_only_by_force() {
    let bench = Bench::with_directory();
    let prefix = format!("{}/0123456789abcdef0123456789abcdef__lock__", bench.path);
    let kazoo = Stranger::claims(bench.raw(), &prefix, CreateMode::EphemeralSequential);
    let hosts = bench.server.hosts();
    let order = ["break", "--yes", "--hosts", &hosts, &bench.path];
    let (code, _, err) = finish(&order);
    assert_eq!(code, Some(125));
    assert!(err.contains("kazoo") && err.contains("--force"), "{err}");
    assert!(bench.exists(&kazoo.path));
    let (code, out, err) = finish(&[&order[..], &["--force"]].concat());
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("may not know") && !bench.exists(&kazoo.path), "{out}");
    assert!(finish(&order).1.contains("nobody holds it"));
}

/// Its holder is cut off. Its claim is gone at once, long before its session expires.
fn expect_broken_by_force(bench: &Bench) {
    bench.proxy.cut();
    let hosts = bench.server.hosts();
    let by_force = ["break", "--hosts", &hosts, "--yes", "--force", "--wait", "300ms"];
    let broken = finish(&[&by_force[..], &[&bench.path]].concat());
    assert_eq!(broken.0, Some(0), "{broken:?}");
    assert!(bench.children().is_empty());
}

#[test]
fn a_hold_that_was_downgraded_is_waited_for_and_broken_as_any_other() {
    let bench = Bench::shared();
    let hosts = bench.server.hosts();
    let patient = options().session_timeout(LONGEST_SESSION);
    let client = patient.connect(&bench.proxy.hosts()).wait().unwrap();
    let guard = client.read_write(&bench.path).write().acquire().wait().unwrap();
    guard.downgrade(Access::Read).wait().unwrap();
    let ask = finish(&["ask", "--hosts", &hosts, "--wait", "300ms", &bench.path]);
    assert_eq!(ask.0, Some(1), "{ask:?}");
    expect_broken_by_force(&bench);
}

#[test]
fn both_znodes_of_a_universal_claim_are_deleted_by_force() {
    let bench = Bench::shared();
    let patient = options().session_timeout(LONGEST_SESSION);
    let client = patient.connect(&bench.proxy.hosts()).wait().unwrap();
    let lock = client.lock(&bench.path).interoperate(Interop::All);
    let _guard = lock.acquire().wait().unwrap();
    assert_eq!(bench.children().len(), 2);
    expect_broken_by_force(&bench);
}

#[test]
fn a_service_that_gave_way_waits_for_its_next_turn() {
    let bench = Bench::shared();
    let hosts = bench.server.hosts();
    let run = ["run", "--hosts", &hosts, "--restart", &bench.path, "sleep", "600"];
    let services = [start(&run), start(&run)];
    eventually("both are there", || bench.exists(&bench.path) && bench.children().len() == 2);
    let client = bench.direct();
    let lock = bench.lock(&client);
    let holder = || lock.holder().wait().unwrap().map(|holder| holder.pid);
    let first = holder();
    assert_eq!(finish(&["ask", "--hosts", &hosts, &bench.path]).0, Some(0));
    eventually("the other has it", || holder().is_some() && holder() != first);
    eventually("the first waits again", || bench.children().len() == 2);
    drop(services);
}

#[test]
fn a_program_that_does_not_listen_keeps_its_lock() {
    let bench = Bench::shared();
    let hosts = bench.server.hosts();
    let client = bench.direct();
    let guard = bench.lock(&client).acquire().wait().unwrap();
    let args = ["ask", "--hosts", &hosts, "--wait", "300ms", &bench.path];
    let (code, _, err) = finish(&args);
    assert_eq!(code, Some(1));
    assert!(err.contains("has not given way"), "{err}");
    assert_eq!(guard.state(), GuardState::Held);
    guard.release().wait().unwrap();
    bench.expect_empty();
    assert_eq!(finish(&args).0, Some(0), "nobody has it");
}

#[test]
fn another_librarys_claim_is_not_written_to() {
    let bench = Bench::with_directory();
    let prefix = format!("{}/0123456789abcdef0123456789abcdef__lock__", bench.path);
    let kazoo = Stranger::claims(bench.raw(), &prefix, CreateMode::EphemeralSequential);
    let hosts = bench.server.hosts();
    let (code, _, err) = finish(&["ask", "--hosts", &hosts, &bench.path]);
    assert_eq!(code, Some(125));
    assert!(err.contains("kazoo"), "{err}");
    assert_eq!(bench.direct().get(&kazoo.path).wait().unwrap().data, b"stranger");
}

/// The exit status, and the findings by level and check.
fn doctor(args: &[&str]) -> (Option<i32>, Vec<(String, String)>) {
    let (code, out, _) = finish(&[&["doctor", "--json"], args].concat());
    let found = out.lines().map(|line| {
        let finding: Value = serde_json::from_str(line).expect(line);
        let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        if text("level") != "fine" {
            assert!(!text("found").is_empty() && !text("remedy").is_empty(), "{line}");
        }
        (text("level"), text("check"))
    });
    (code, found.collect())
}

#[track_caller]
fn assert_names((code, found): &(Option<i32>, Vec<(String, String)>), level: &str, check: &str) {
    let worst = if level == "bad" { 2 } else { 1 };
    assert!(code.is_some_and(|code| code >= worst), "{code:?} {found:?}");
    assert!(found.contains(&(level.to_owned(), check.to_owned())), "{found:?}");
}

#[test]
fn a_sickness_of_the_servers_is_named() {
    let nobody = doctor(&["--hosts", "127.0.0.1:1", "--connect-timeout", "300ms"]);
    assert_names(&nobody, "bad", "server");
    assert_names(&nobody, "bad", "session");
    let no_name = doctor(&["--hosts", "no-such-host.invalid", "--connect-timeout", "300ms"]);
    assert_names(&no_name, "bad", "server");

    let (one, two) = (Server::start().unwrap(), Server::start().unwrap());
    let two_clusters = format!("{},{}", one.hosts(), two.hosts());
    assert_names(&doctor(&["--hosts", &two_clusters]), "bad", "ensemble");
    two.freeze().unwrap();
    let frozen = doctor(&["--hosts", &two.hosts(), "--connect-timeout", "300ms"]);
    assert_names(&frozen, "bad", "server");
    two.thaw().unwrap();

    let short = Server::builder().tick_time(Duration::from_millis(400));
    let short = short.min_session_timeout(Duration::from_millis(500)).start().unwrap();
    assert_names(&doctor(&["--hosts", &short.hosts()]), "bad", "sessions");
}

#[test]
fn one_server_of_three_that_is_down_is_a_warning() {
    let ensemble = Ensemble::start(3).unwrap();
    let leader = ensemble.wait_for_quorum(TIMEOUT).unwrap();
    ensemble.member((leader + 1) % 3).kill();
    let hosts = ensemble.hosts();
    // The version that the test has may be one to be warned about.
    let args = ["--hosts", &hosts, "--ignore", "version"];
    let (code, found) = doctor(&args);
    assert_eq!(code, Some(1), "{found:?}");
    let level = |check: &str| {
        let levels = found.iter().filter(|(_, has)| has == check).map(|(level, _)| level.as_str());
        levels.collect::<Vec<_>>()
    };
    assert_eq!(level("ensemble"), ["warning"]);
    let mut servers = level("server");
    servers.sort_unstable();
    assert_eq!(servers, ["fine", "fine", "warning"]);
    let ignored = ["--ignore", "server", "--ignore", "ensemble", "--ignore", "session"];
    let (code, found) = doctor(&[&args[..], &ignored].concat());
    assert_eq!(code, Some(0), "{found:?}");
    assert_eq!(finish(&["doctor", "--ignore", "weather"]).0, Some(125));
}

#[test]
fn the_remedy_is_that_of_the_cause() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    std::thread::spawn(move || other.incoming().for_each(drop));
    for (hosts, found, remedy) in [
        ("127.0.0.1:1", "cannot connect to 127.0.0.1:1: connection refused", "start the server"),
        ("no-such-host.invalid", "cannot resolve no-such-host.invalid", "check the name in DNS"),
        (&address, "closes the connection", "is this ZooKeeper?"),
    ] {
        let (code, out, _) = finish(&["doctor", "--hosts", hosts, "--connect-timeout", "300ms"]);
        assert_eq!(code, Some(2), "{out}");
        let mut lines = out.lines();
        assert!(lines.next().unwrap_or_default().contains(found), "{out}");
        assert!(lines.next().unwrap_or_default().ends_with(&format!("-> {remedy}")), "{out}");
    }
}

#[test]
fn what_is_well_is_said_too() {
    let bench = Bench::shared();
    let hosts = bench.server.hosts();
    let (code, found) = doctor(&["--hosts", &hosts, "--probe", &bench.path, "--path", "/"]);
    // One server alone, and the root is everyone's.
    assert_eq!(code, Some(1), "{found:?}");
    for check in ["server", "version", "session", "probe", "clock", "client"] {
        assert!(found.contains(&("fine".to_owned(), check.to_owned())), "{check}: {found:?}");
    }
    let warned = |check: &str| found.contains(&("warning".to_owned(), check.to_owned()));
    assert!(warned("ensemble") && warned("acl"), "{found:?}");
    bench.expect_empty();
}

#[test]
fn a_claim_of_no_session_is_shown_and_deleted_only_when_that_is_confirmed() {
    let bench = Bench::with_directory();
    let hosts = bench.server.hosts();
    let client = bench.direct();
    let leftover = format!("{}/x-72057793038516224-", bench.path);
    let mut raw = bench.raw();
    let leftover = raw.create_with(&leftover, b"", CreateMode::PersistentSequential).unwrap();
    let data = format!("{}/job-0000000001", bench.path);
    raw.create(&data, b"").unwrap();
    let empty = format!("{}/empty", bench.path);
    raw.create(&empty, b"").unwrap();
    raw.create(&format!("{empty}/child"), b"").unwrap();
    raw.delete(&format!("{empty}/child")).unwrap();
    let prefix = format!("{}/0123456789abcdef0123456789abcdef__lock__", bench.path);
    let alive = Stranger::claims(bench.raw(), &prefix, CreateMode::EphemeralSequential);

    let clean =
        |more: &[&str]| finish(&[&["clean", "--hosts", &hosts, &bench.path], more].concat());
    let is_there = |path: &str| client.exists(path).wait().unwrap().is_some();
    let (code, out, err) = clean(&["--dry-run"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains(&leftover) && out.lines().count() == 1, "{out}");
    let (code, _, err) = clean(&[]);
    assert!(code == Some(125) && err.contains("--yes"), "{err}");
    assert!(is_there(&leftover));
    assert_eq!(clean(&["--yes"]).0, Some(0));
    assert!(!is_there(&leftover) && is_there(&empty) && is_there(&data) && is_there(&alive.path));
    let (code, out, _) = clean(&["--yes", "--empty"]);
    assert_eq!(code, Some(0));
    assert!(out.contains(&empty), "{out}");
    assert!(!is_there(&empty) && is_there(&data) && is_there(&alive.path));
    assert!(clean(&["--empty"]).1.contains("nothing is left behind"));
}

#[test]
fn a_leftover_that_is_written_to_meanwhile_stays() {
    let bench = Bench::with_directory();
    let (hosts, mut raw) = (bench.proxy.hosts(), bench.raw());
    let leftover = format!("{}/x-72057793038516224-", bench.path);
    let leftover = raw.create_with(&leftover, b"", CreateMode::PersistentSequential).unwrap();
    let looked = bench.proxy.hold(Rule::reply(Op::Exists).path(leftover.as_str()).once());
    let path = bench.path.clone();
    let clean = thread::spawn(move || finish(&["clean", "--hosts", &hosts, "--yes", &path]));
    looked.wait_reached(TIMEOUT).unwrap();
    raw.set_data(&leftover, b"mine").unwrap();
    looked.release();
    let (code, out, err) = clean.join().unwrap();
    assert!(code == Some(1) && err.contains("left alone"), "{out}{err}");
    assert!(bench.exists(&leftover));
}
