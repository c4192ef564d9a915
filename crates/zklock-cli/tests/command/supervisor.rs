//! The supervisor alone, given orders by the test instead of `zklock run`.

use std::os::fd::OwnedFd;
use std::process::Command;
use std::time::Duration;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::process::{Pid, Signal, getpgrp, kill_process};
use rustix::time::{ClockId, clock_gettime};
use test_support::Running;
use zklock_testing::eventually;

const HOUR: Duration = Duration::from_secs(3_600);

struct Supervisor {
    socket: OwnedFd,
    process: Running,
}

impl Supervisor {
    /// As on a terminal: the command shares the process group of `zklock run`, here that of the test.
    fn of(command: &[&str]) -> Supervisor {
        let (socket, theirs) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        let mut supervisor = Command::new(env!("CARGO_BIN_EXE_zklock"));
        supervisor.args(["supervise", "--path", "/lock", "--group"]);
        supervisor.arg(getpgrp().as_raw_nonzero().to_string()).arg("--").args(command);
        Supervisor { socket, process: Running(supervisor.stdin(theirs).spawn().unwrap()) }
    }

    /// The process that waits to become the command.
    fn waiting(&self) -> Option<Pid> {
        let id = self.process.0.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
        Pid::from_raw(children.split_whitespace().next()?.parse().ok()?)
    }

    /// Orders the start: the lock is held for an hour.
    fn start(&self) {
        self.start_until(after(HOUR));
    }

    fn start_until(&self, until: u128) {
        self.order(&format!("start {until} 1000000 1000000 1 1"));
    }

    fn order(&self, order: &str) {
        rustix::net::send(&self.socket, order.as_bytes(), SendFlags::empty()).unwrap();
    }

    fn hear(&self) -> String {
        let mut report = [0; 100];
        let (length, _) = rustix::net::recv(&self.socket, &mut report, RecvFlags::empty()).unwrap();
        String::from_utf8_lossy(&report[..length]).into_owned()
    }
}

/// That time from now on, as orders have it.
fn after(time: Duration) -> u128 {
    let now = clock_gettime(ClockId::Boottime);
    (Duration::new(now.tv_sec as u64, now.tv_nsec as u32) + time).as_nanos()
}

#[test]
fn a_supervisor_that_was_stopped_acts_by_the_last_order_not_by_the_first() {
    let supervisor = Supervisor::of(&["sh", "-c", "sleep 2; exit 3"]);
    supervisor.start_until(after(Duration::from_secs(1)));
    assert_eq!(supervisor.hear(), "started ");
    supervisor.process.freeze();
    let first = after(Duration::from_secs(1));
    supervisor.order(&format!("until {first}"));
    supervisor.order(&format!("until {}", after(HOUR)));
    eventually("the first has passed", || after(Duration::ZERO) > first);
    supervisor.process.thaw();
    assert_eq!(supervisor.hear(), "exited 3");
}

#[test]
fn a_key_that_comes_just_before_the_command_starts_ends_it() {
    for signal in [Signal::INT, Signal::HUP, Signal::QUIT] {
        for is_seen_before in [true, false] {
            let supervisor = Supervisor::of(&["sleep", "600"]);
            eventually("one waits to become the command", || supervisor.waiting().is_some());
            let waiting = supervisor.waiting().unwrap();
            kill_process(waiting, signal).unwrap();
            if is_seen_before {
                eventually("it has gone", || supervisor.waiting().is_none());
            }
            supervisor.start();
            // It may have become the command just before it died.
            let mut heard = supervisor.hear();
            if !is_seen_before && heard == "started " {
                heard = supervisor.hear();
            }
            assert_eq!(heard, format!("signaled {}", signal.as_raw()));
        }
    }
}

#[test]
fn what_waits_to_become_the_command_is_replaced_if_it_dies_of_another_signal() {
    let supervisor = Supervisor::of(&["true"]);
    eventually("one waits to become the command", || supervisor.waiting().is_some());
    kill_process(supervisor.waiting().unwrap(), Signal::USR1).unwrap();
    eventually("it has gone", || supervisor.waiting().is_none());
    supervisor.start();
    assert_eq!([supervisor.hear(), supervisor.hear()], ["started ", "exited 0"]);
}
