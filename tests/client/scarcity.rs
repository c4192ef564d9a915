//! A process that runs out of descriptors or threads at some step: it learns so at once, and works
//! again when there are some.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use test_support::{
    Bench, Process, TIMEOUT, child_about, eventually, options, say, shared, states_until,
};
use zklock::zookeeper::SessionState;
use zklock::{Client, Code};

use crate::preload::preloaded;

/// How many more of a resource there are to be had.
enum Scarce {
    Descriptors {
        before: Rlimit,
        _fill: Vec<File>,
    },
    /// Those that `threads.c`, which is loaded before the C library, lets be started.
    Threads {
        file: PathBuf,
    },
}

const THREADS_FILE: &str = "ZKLOCK_TEST_THREADS_FILE";

impl Scarce {
    fn only(what: &str, more: u64) -> Scarce {
        match what {
            "descriptors" => {
                let before = getrlimit(Resource::Nofile);
                // So that the numbers below the highest in use are in use as well.
                let open = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| {
                    entry.unwrap().file_name().into_string().unwrap().parse::<u64>().ok()
                });
                let highest = open.max().unwrap();
                let mut fill = Vec::new();
                while fill.len() < 1_000 {
                    let file = File::open("/dev/null").unwrap();
                    let number = u64::try_from(std::os::fd::AsRawFd::as_raw_fd(&file)).unwrap();
                    if number > highest {
                        break;
                    }
                    fill.push(file);
                }
                set_descriptors(before, highest + 1 + more);
                Scarce::Descriptors { before, _fill: fill }
            }
            "threads" => {
                let file = PathBuf::from(std::env::var_os(THREADS_FILE).unwrap());
                std::fs::write(&file, more.to_string()).unwrap();
                Scarce::Threads { file }
            }
            other => panic!("{other:?} can't be made scarce"),
        }
    }

    /// Not one more, not even in place of one that is given back.
    fn none(what: &str) -> Scarce {
        match what {
            "descriptors" => {
                let before = getrlimit(Resource::Nofile);
                set_descriptors(before, 0);
                Scarce::Descriptors { before, _fill: Vec::new() }
            }
            what => Scarce::only(what, 0),
        }
    }
}

fn set_descriptors(limit: Rlimit, soft: u64) {
    setrlimit(Resource::Nofile, Rlimit { current: Some(soft), ..limit }).unwrap();
}

impl Drop for Scarce {
    fn drop(&mut self) {
        match self {
            Scarce::Descriptors { before, .. } => setrlimit(Resource::Nofile, *before).unwrap(),
            Scarce::Threads { file } => std::fs::remove_file(file).unwrap(),
        }
    }
}

/// Starts a child, before which threads can be made scarce.
fn start(test: &str, about: &str, hosts: &str) -> (Process, tempfile::TempDir) {
    let (library, directory) = preloaded("threads.c");
    let variables = [("LD_PRELOAD", library), (THREADS_FILE, directory.path().join("threads"))];
    (Process::start_test_with(test, &format!("{about} {hosts}"), &variables), directory)
}

/// What this child is about, and its server's address.
fn wish() -> Option<(String, String, String)> {
    let wish = child_about()?;
    let mut words = wish.split(' ').map(str::to_owned);
    let mut next = || words.next().unwrap();
    Some((next(), next(), next()))
}

/// Acquires a lock, and shows that a deadline ends a wait for it.
fn use_a_lock(client: &Client) {
    let guard = client.lock("/lock").acquire().within(TIMEOUT).wait().unwrap();
    let error =
        client.lock("/lock").acquire().within(Duration::from_millis(50)).wait().unwrap_err();
    assert_eq!(error.code(), Code::OPERATION_TIMEOUT);
    guard.release().wait().unwrap();
}

#[test]
fn in_a_child_process_the_first_use_meets_scarcity() {
    let Some((what, more, hosts)) = wish() else { return };
    let scarce = Scarce::only(&what, more.parse().unwrap());
    match options().connect(&hosts).wait() {
        Ok(client) => {
            use_a_lock(&client);
            drop(scarce);
            say("works");
        }
        Err(error) => {
            drop(scarce);
            say((error.code(), error.to_string()));
        }
    }
    use_a_lock(&options().connect(&hosts).wait().unwrap());
    say("works again");
}

#[test]
fn the_first_use_works_or_says_at_once_what_is_missing() {
    let test = "scarcity::in_a_child_process_the_first_use_meets_scarcity";
    let chroot = format!("{}/{}", shared().hosts(), "scarce");
    let client = options().connect(&shared().hosts()).wait().unwrap();
    client.make_path("/scarce").wait().unwrap();
    for (what, most, words) in
        [("descriptors", 8, "(ulimit -n) is"), ("threads", 10, "(ulimit -u) is")]
    {
        let mut refused = 0;
        let mut worked = 0;
        for more in 0..=most {
            let (mut child, _directory) = start(test, &format!("{what} {more}"), &chroot);
            let heard = child.hear().unwrap_or_else(|| panic!("{what} {more}: it died"));
            if heard == "\"works\"" {
                worked += 1;
            } else {
                assert!(
                    heard.contains("SYSTEM_ERROR") && heard.contains(words),
                    "{what} {more}: {heard}"
                );
                refused += 1;
            }
            assert_eq!(child.hear().as_deref(), Some("\"works again\""), "{what} {more}");
            assert!(child.end().success(), "{what} {more}");
        }
        assert!(refused > 0 && worked > 0, "{what}: {refused} refused, {worked} worked");
    }
}

#[test]
fn in_a_child_process_a_connection_is_lost_in_scarcity() {
    let Some((what, _, hosts)) = wish() else { return };
    let options = options().session_timeout(Duration::from_secs(4));
    let client = options.connect(&hosts).wait().unwrap();
    use_a_lock(&client);
    let guard = client.lock("/lock").acquire().wait().unwrap();
    let lost = guard.lost();
    let mut states = client.states();
    let scarce = Scarce::none(&what);
    say("held");
    assert!(lost.wait_timeout(TIMEOUT).is_some());
    states_until(&mut states, SessionState::Lost);
    let error =
        client.lock("/other").acquire().within(Duration::from_millis(50)).wait().unwrap_err();
    assert_eq!(error.code(), Code::OPERATION_TIMEOUT);
    say("lost");
    // Until the parent has the proxy let connections through again.
    std::io::stdin().read_line(&mut String::new()).unwrap();
    drop(scarce);
    // Where the session survived, its znode has to go.
    drop(guard);
    eventually("a connection", || client.state() == SessionState::Connected);
    use_a_lock(&client);
    say("works again");
}

#[test]
fn a_connection_that_is_lost_in_scarcity_comes_back_after_it() {
    let test = "scarcity::in_a_child_process_a_connection_is_lost_in_scarcity";
    for (what, end) in [("descriptors", "cut"), ("threads", "cut"), ("threads", "expiry")] {
        let bench = Bench::untouched();
        let (mut child, _directory) = start(test, &format!("{what} {end}"), &bench.proxy.hosts());
        assert_eq!(child.hear().as_deref(), Some("\"held\""), "{what} {end}");
        match end {
            "cut" => bench.proxy.refuse(),
            _ => drop(bench.proxy.expire_sessions()),
        }
        assert_eq!(child.hear().as_deref(), Some("\"lost\""), "{what} {end}");
        bench.proxy.heal();
        child.tell("healed");
        assert_eq!(child.hear().as_deref(), Some("\"works again\""), "{what} {end}");
        assert!(child.end().success(), "{what} {end}");
    }
}
