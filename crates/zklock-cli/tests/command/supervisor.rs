//! The supervisor alone, given orders by the test instead of `zklock run`.

use std::os::fd::OwnedFd;
use std::process::Command;
use std::time::Duration;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::process::{Pid, Signal, getpgrp, kill_process};
use rustix::time::{ClockId, clock_gettime};
use test_support::Running;
use zklock_testing::eventually;

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
        let now = clock_gettime(ClockId::Boottime);
        let until = Duration::new(now.tv_sec as u64 + 3_600, 0).as_nanos();
        let order = format!("start {until} 1000000 1000000 1 1");
        rustix::net::send(&self.socket, order.as_bytes(), SendFlags::empty()).unwrap();
    }

    fn hear(&self) -> String {
        let mut report = [0; 100];
        let (length, _) = rustix::net::recv(&self.socket, &mut report, RecvFlags::empty()).unwrap();
        String::from_utf8_lossy(&report[..length]).into_owned()
    }
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
