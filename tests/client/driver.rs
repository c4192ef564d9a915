//! One thread drives the sessions of all clients of a process, and none of them delays it.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use test_support::{Process, TIMEOUT, child_about, eventually, options, say, shared};
use zklock::zookeeper::SessionState;
use zklock::{Client, Code, GuardState};

use crate::preload::{NAMES_FILE, preloaded};

/// The names of this process's threads.
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).ok();
    tasks.filter_map(|task| name(task.ok()?)).collect()
}

#[test]
fn in_a_child_process_many_clients_are_idle() {
    let Some(hosts) = child_about() else { return };
    let before = threads().len();
    let clients: Vec<Client> = (0..40).map(|_| options().connect(&hosts).wait().unwrap()).collect();
    let guard = clients[0].lock("/driver").acquire().wait().unwrap();
    println!("{:?}", threads());
    eventually("only the threads that idle clients need", || {
        threads().len() == before + 2 * clients.len() + 1
    });
    guard.release().wait().unwrap();
    drop(clients);
    eventually("only the driver", || threads().len() == before + 1);
    say("done");
}

#[test]
fn a_client_has_the_two_threads_of_the_c_client_and_all_have_one() {
    let test = "driver::in_a_child_process_many_clients_are_idle";
    let mut child = Process::start_test(test, &shared().hosts());
    assert_eq!(child.hear().as_deref(), Some("\"done\""));
    assert!(child.end().success());
}

#[test]
fn in_a_child_process_a_name_takes_long_to_resolve() {
    let Some(hosts) = child_about() else { return };
    let file = PathBuf::from(std::env::var_os(NAMES_FILE).unwrap());
    let good = options().connect(&hosts).wait().unwrap();
    let guard = good.lock("/driver-names").acquire().wait().unwrap();
    let port = hosts.rsplit_once(':').unwrap().1;
    let slow = |name: &str| options().connect(&format!("{name}:{port}"));
    let patient = slow("slow-1");
    // Those that are given up, and those that end by their deadline, do not wait for the name.
    drop(slow("slow-2"));
    let impatient = options().connect_timeout(Duration::from_millis(300));
    let error = impatient.connect(&format!("slow-3:{port}")).wait().unwrap_err();
    assert_eq!(error.code(), Code::OPERATION_TIMEOUT);
    assert!(error.to_string().contains("resolving the name slow-3"), "{error}");
    // Nobody else waits for it either.
    for _ in 0..3 {
        let another = options().connect(&hosts).wait().unwrap();
        let taken = another.lock("/driver-names").acquire().within(Duration::from_millis(50));
        assert_eq!(taken.wait().unwrap_err().code(), Code::OPERATION_TIMEOUT);
        another.close().within(TIMEOUT).wait().unwrap();
    }
    assert_eq!(guard.state(), GuardState::Held);
    std::fs::write(file, "").unwrap();
    assert_eq!(patient.wait().unwrap().state(), SessionState::Connected);
    say("done");
}

#[test]
fn a_name_that_takes_long_to_resolve_delays_no_other_client() {
    let (library, directory) = preloaded("names.c");
    let variables = [("LD_PRELOAD", library), (NAMES_FILE, directory.path().join("names"))];
    let test = "driver::in_a_child_process_a_name_takes_long_to_resolve";
    let mut child = Process::start_test_with(test, &shared().hosts(), &variables);
    assert_eq!(child.hear().as_deref(), Some("\"done\""));
    assert!(child.end().success());
}

#[test]
fn in_a_child_process_clients_seek_a_server() {
    let Some(hosts) = child_about() else { return };
    let used = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
    };
    // More than may ask their hosts at a time.
    let seeking: Vec<_> = (0..12).map(|_| options().connect(&hosts)).collect();
    let (since, before) = (Instant::now(), used());
    std::thread::sleep(Duration::from_secs(3));
    let share = (used() - before).as_secs_f64() / since.elapsed().as_secs_f64();
    drop(seeking);
    say(share < 0.3);
    println!("{share}");
}

#[test]
fn clients_that_seek_a_server_wait_for_it() {
    let silent = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let listeners = [silent(), silent()];
    let hosts = listeners.each_ref().map(|it| it.local_addr().unwrap().to_string()).join(",");
    let test = "driver::in_a_child_process_clients_seek_a_server";
    let mut child = Process::start_test(test, &hosts);
    assert_eq!(child.hear().as_deref(), Some("true"), "they take more than three tenths of a core");
    assert!(child.end().success());
}
