//! The supervisor's loop. It is the parent of the command, the one to whom all that comes of the command falls when
//! its own parent dies (a subreaper), and has a clock of its own. It does not know ZooKeeper: it gets until when
//! the lock is held, and that `zklock run` is alive by a socket that is open.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use nix::sys::signal::SigSet;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, Signal, WaitStatus, getpid, getppid, kill_process, kill_process_group,
    set_child_subreaper, set_parent_process_death_signal,
};
use rustix::stdio::stdin;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::ending::{Ending, Step};
use super::exec::{Answer, Prepared};
use super::orders::{Order, Report, Start, Status};
use super::wire;
use crate::boot_clock;
use crate::cgroup::Cgroup;
use crate::failure::FAILED;
use crate::output::say;
use crate::processes::{self, Change, Process};

#[derive(Args, Debug)]
pub struct SuperviseOptions {
    /// The lock's path, for the command's environment
    #[arg(long)]
    path: String,

    /// The process group of `zklock run`, where the command is to be in it
    #[arg(long)]
    group: Option<i32>,

    /// The control group for the command
    #[arg(long)]
    cgroup: Option<PathBuf>,

    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// How often what was started meanwhile is killed within a round.
const AT_ONCE: u32 = 200;
/// From one round of kills to the next, at first.
const NEXT_ROUND: Duration = Duration::from_millis(2);
/// At the last.
const LAST_ROUND: Duration = Duration::from_millis(200);
/// What was killed is gone within that, or somebody should know.
const KILLED_WITHIN: Duration = Duration::from_secs(1);

/// Supervises commands until `zklock run` is gone and nothing is left. Standard input is the socket to it.
///
/// # Errors
/// There are no descriptors, or no subreapers on this system.
pub fn supervise(options: SuperviseOptions) -> io::Result<()> {
    // What stops or ends programs by name is meant for the other.
    let _ = rustix::thread::set_name(c"zkl-supervisor");
    SigSet::all().thread_block()?;
    // One that was stopped goes on when `zklock run` dies: nobody else is left to end the command.
    set_parent_process_death_signal(Some(Signal::CONT))?;
    set_child_subreaper(Some(getpid()))?;
    let signals =
        SignalFd::with_flags(&SigSet::all(), SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
    let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC)?;
    let group = options.group.and_then(Pid::from_raw);
    let cgroup = options.cgroup.clone().map(Cgroup::at);
    let (input, running, prepared, interrupted, is_alone) = (None, None, None, None, false);
    let mut supervisor = Supervisor {
        options,
        parent: getppid(),
        group,
        cgroup,
        input,
        running,
        prepared,
        interrupted,
        is_alone,
        timer,
    };
    // Without it, the command takes longer to start.
    supervisor.prepared = supervisor.prepare().ok();
    loop {
        supervisor.act();
        if supervisor.is_alone && supervisor.running.is_none() {
            supervisor.leave_nothing();
            return Ok(());
        }
        supervisor.set_timer()?;
        let mut fds = [
            PollFd::new(&signals, PollFlags::IN),
            PollFd::new(&supervisor.timer, PollFlags::IN),
            PollFd::from_borrowed_fd(stdin(), PollFlags::IN),
        ];
        // A socket that has ended would be ready for ever.
        let watched = if supervisor.is_alone { 2 } else { 3 };
        let _ = poll(&mut fds[..watched], None);
        let is_told = !supervisor.is_alone && !fds[2].revents().is_empty();
        while let Ok(Some(_)) = signals.read_signal() {}
        supervisor.reap();
        if is_told {
            supervisor.obey_all();
        }
    }
}

struct Supervisor {
    options: SuperviseOptions,
    /// `zklock run`.
    parent: Option<Pid>,
    /// The process group of `zklock run`, where the command shares it: on a terminal, whose keys then reach both.
    group: Option<Pid>,
    cgroup: Option<Cgroup>,
    /// The standard input that the command is to have.
    input: Option<OwnedFd>,
    running: Option<Running>,
    /// What waits to become the command.
    prepared: Option<Prepared>,
    /// The terminal's signal that has ended the prepared process.
    interrupted: Option<i32>,
    /// `zklock run` is gone.
    is_alone: bool,
    timer: OwnedFd,
}

/// A command, or what is left of it.
struct Running {
    pid: Pid,
    answer: Answer,
    /// How it has ended, once it has.
    status: Option<Status>,
    ending: Ending,
    resumed: u32,
    killing: Option<Killing>,
}

struct Killing {
    since: Duration,
    next: Duration,
    pause: Duration,
    said: bool,
}

impl Supervisor {
    fn report(&self, report: &Report) {
        // Nobody hears it who is gone.
        let _ = wire::send(stdin(), &report.write(), None);
    }

    /// Obeys all orders that have arrived. If this process was stopped, the first of them is outdated.
    fn obey_all(&mut self) {
        loop {
            self.obey();
            let mut next = [PollFd::from_borrowed_fd(stdin(), PollFlags::IN)];
            let has_more = poll(&mut next, Some(&Timespec::default())).is_ok_and(|ready| ready > 0);
            if self.is_alone || !has_more {
                return;
            }
        }
    }

    fn obey(&mut self) {
        let Some((text, fd)) = wire::receive(stdin()) else {
            self.is_alone = true;
            if let Some(running) = &mut self.running {
                let step = running.ending.end(boot_clock::now());
                self.step(step);
            }
            return;
        };
        if fd.is_some() {
            self.input = fd;
        }
        match (Order::read(&text), &mut self.running) {
            (Some(Order::Start(start)), None) => self.start(&start),
            (Some(Order::Until(until)), Some(running)) => running.ending.renew(until),
            (Some(Order::End), Some(running)) => {
                let step = running.ending.end(boot_clock::now());
                self.step(step);
            }
            (Some(Order::Kill), Some(running)) => {
                let step = running.ending.kill();
                self.step(Some(step));
            }
            (Some(Order::Signal(signal)), Some(running)) if running.status.is_none() => {
                let pid = running.pid;
                if let Some(signal) = Signal::from_named_raw(signal) {
                    self.signal_group(pid, signal);
                }
            }
            (Some(Order::Stop), Some(running)) if running.status.is_none() => {
                let pid = running.pid;
                self.stop_with(pid);
            }
            (Some(Order::Resume { time }), Some(running)) if running.status.is_none() => {
                running.resumed = time;
                let pid = running.pid;
                self.signal_group(pid, Signal::CONT);
            }
            (Some(Order::KillAt(at)), Some(running)) => running.ending.kill_at(at),
            _ => {}
        }
    }

    /// Stops `zklock run`, unless its job has been continued since the command was stopped: a SIGCONT that came before the
    /// stop is lost.
    fn stop_with(&self, command: Pid) {
        let is_stopped = || Process::read(command).is_some_and(|command| command.is_stopped());
        let parent = self.parent.filter(|parent| getppid() == Some(*parent));
        let Some(parent) = parent.filter(|_| is_stopped()) else { return };
        let _ = kill_process(parent, Signal::STOP);
        if !is_stopped() {
            let _ = kill_process(parent, Signal::CONT);
        }
    }

    /// Signals the command's process group, or of a shared one what came of the command, which is not reaped.
    fn signal_group(&self, command: Pid, signal: Signal) {
        match self.group {
            None => {
                let _ = kill_process_group(command, signal);
            }
            Some(group) => {
                let group = group.as_raw_nonzero().get();
                for process in self.left().iter().filter(|process| process.group == group) {
                    let _ = process.signal(signal);
                }
            }
        }
    }

    fn start(&mut self, start: &Start) {
        let mut ending = Ending::new(start.until, start.grace, start.margin);
        if ending.due(boot_clock::now()).is_some() {
            // It comes too late: the lock is about to be lost.
            self.report(&Report::Killed { for_loss: true });
            return self.report(&Report::Gone(Status::Exited(FAILED)));
        }
        let prepared = self.become_command(start);
        if let Some(signal) = self.interrupted.take() {
            // `zklock run` leaves a key on the terminal to the command.
            return self.report(&Report::Gone(Status::Signaled(signal)));
        }
        match prepared.map_or_else(|| self.start_another(start), Ok) {
            Ok(prepared) => {
                let (status, resumed, killing) = (None, 0, None);
                let (pid, answer) = (prepared.pid, prepared.answer());
                self.running = Some(Running { pid, answer, status, ending, resumed, killing });
                self.report(&Report::Started);
            }
            Err(error) => {
                say(format_args!("{}: no process for the command: {error}", self.options.path));
                self.report(&Report::Gone(Status::Exited(FAILED)));
            }
        }
    }

    /// The lock was never held, or nothing of the command is left.
    fn leave_nothing(&mut self) {
        if let Some(prepared) = self.prepared.take() {
            let _ = prepared.end();
        }
        if let Some(cgroup) = &self.cgroup {
            cgroup.remove();
        }
    }

    /// Starts a process that waits for the lock.
    fn prepare(&self) -> io::Result<Prepared> {
        let group = self.group.map_or(0, |group| group.as_raw_nonzero().get());
        let SuperviseOptions { path, command, .. } = &self.options;
        Prepared::start(path, command, group, self.cgroup.as_ref())
    }

    /// Lets the prepared process become the command. `None` if it has ended.
    fn become_command(&mut self, start: &Start) -> Option<Prepared> {
        let prepared = self.prepared.take()?;
        if prepared.become_command(start.token, start.session, self.input.as_ref()).is_ok() {
            return Some(prepared);
        }
        self.interrupted = prepared.end().and_then(interruption);
        None
    }

    /// Starts a process that becomes the command at once.
    fn start_another(&self, start: &Start) -> io::Result<Prepared> {
        let prepared = self.prepare()?;
        prepared.become_command(start.token, start.session, self.input.as_ref())?;
        Ok(prepared)
    }

    /// Does what is due.
    fn act(&mut self) {
        let now = boot_clock::now();
        let Some(running) = &mut self.running else { return };
        let step = running.ending.due(now);
        if step == Some(Step::Terminate) {
            self.report(&Report::Terminated);
        }
        self.step(step);
        if let Some(killing) = self.running.as_ref().and_then(|running| running.killing.as_ref()) {
            if now >= killing.next {
                self.kill();
            }
        }
    }

    fn step(&mut self, step: Option<Step>) {
        let Some(running) = &mut self.running else { return };
        match step {
            Some(Step::Terminate) => {
                let own = running.pid.as_raw_nonzero().get();
                let has_group = running.status.is_none() && self.group.is_none();
                // Or one that is stopped would learn of it only by its death.
                let signals = [Signal::TERM, Signal::CONT];
                if has_group {
                    let _ = signals.map(|signal| kill_process_group(running.pid, signal).is_ok());
                }
                for process in self.left().iter().filter(|left| !has_group || left.group != own) {
                    let _ = signals.map(|signal| process.signal(signal).is_ok());
                }
            }
            Some(Step::Kill) => {
                let now = boot_clock::now();
                let (since, next, pause) = (now, now, NEXT_ROUND);
                running.killing.get_or_insert(Killing { since, next, pause, said: false });
                let for_loss = running.ending.is_late(now);
                self.report(&Report::Killed { for_loss });
                self.kill();
            }
            None => {}
        }
    }

    /// Kills all that is there now, and what they start meanwhile.
    fn kill(&mut self) {
        let Some(running) = &self.running else { return };
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
        if running.status.is_none() && self.group.is_none() {
            let _ = kill_process_group(running.pid, Signal::KILL);
        }
        // All that comes of children is a child at last. A look at all processes takes longer, while others are started.
        for _ in 0..AT_ONCE {
            if self.collect() {
                break;
            }
            processes::kill_children(&[]);
        }
        let left = self.left();
        for process in &left {
            // One that may not be killed is named below.
            let _ = process.signal(Signal::KILL);
        }
        let Some(running) = &mut self.running else { return };
        let Some(killing) = &mut running.killing else { return };
        let now = boot_clock::now();
        (killing.next, killing.pause) = (now + killing.pause, LAST_ROUND.min(killing.pause * 2));
        if !killing.said && !left.is_empty() && now >= killing.since + KILLED_WITHIN {
            killing.said = true;
            self.report(&Report::Unkillable(processes::list(&left)));
        }
    }

    /// Learns what has become of children, and of all who are children now because their parents died.
    fn reap(&mut self) {
        let has_children = !self.collect();
        let has_members = self.cgroup.as_ref().is_some_and(|group| !group.is_empty());
        if has_children || has_members {
            return self.end_what_is_left();
        }
        if let Some(running) = self.running.take() {
            self.report(&Report::Gone(running.status.unwrap_or(Status::Exited(FAILED))));
        }
    }

    /// Reaps, and says whether no child is left.
    fn collect(&mut self) -> bool {
        loop {
            match processes::next_change() {
                Change::Child(pid, status) => self.changed(pid, status),
                Change::Nothing => return false,
                Change::NoChildren => return true,
            }
        }
    }

    fn changed(&mut self, pid: Pid, status: WaitStatus) {
        if status.stopping_signal().is_none() {
            // Its number may be another's from now on.
            if self.prepared.take_if(|prepared| prepared.pid == pid).is_some() {
                self.interrupted = interruption(status);
            }
        }
        let Some(running) = self.running.as_mut().filter(|running| running.pid == pid) else {
            return;
        };
        if let Some(signal) = status.stopping_signal() {
            let resumed = running.resumed;
            return self.report(&Report::Stopped { resumed, signal });
        }
        running.status = Some(match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Status::Exited(code as u8),
            (None, Some(signal)) => Status::Signaled(signal),
            (None, None) => return,
        });
        if running.answer.is_refusal() {
            self.report(&Report::NotStarted);
        }
    }

    /// The command has ended, and somebody lives whom it has started.
    fn end_what_is_left(&mut self) {
        let Some(running) = self.running.as_mut().filter(|running| running.status.is_some()) else {
            return;
        };
        if let Some(step) = running.ending.end(boot_clock::now()) {
            let who = processes::list(&self.left());
            self.report(&Report::LeftBehind(who));
            self.step(Some(step));
        }
    }

    /// What lives below this process, or has left that for another in the control group.
    fn left(&self) -> Vec<Process> {
        let mut left = processes::below(getpid(), &[]);
        for pid in self.cgroup.iter().flat_map(Cgroup::processes) {
            if !left.iter().any(|process| process.pid == pid) {
                left.extend(Process::read(pid));
            }
        }
        left.retain(|process| !process.is_over());
        left
    }

    /// Wakes this process when something is due.
    fn set_timer(&self) -> io::Result<()> {
        let due = self.running.as_ref().and_then(|running| match &running.killing {
            Some(killing) => Some(killing.next),
            None => running.ending.next(),
        });
        // A time of zero is none.
        let due = due.map_or(Duration::ZERO, |due| due.max(Duration::from_nanos(1)));
        let time = Timespec { tv_sec: due.as_secs() as i64, tv_nsec: due.subsec_nanos().into() };
        let once = Itimerspec { it_interval: Timespec::default(), it_value: time };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        Ok(())
    }
}

/// The signal of a process's end, if it is one by which a terminal ends programs.
fn interruption(status: WaitStatus) -> Option<i32> {
    let of_terminals = [Signal::INT, Signal::HUP, Signal::QUIT].map(Signal::as_raw);
    status.terminating_signal().filter(|signal| of_terminals.contains(signal))
}
