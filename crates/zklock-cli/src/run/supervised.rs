//! The command as `zklock run` has it: by way of a supervisor, and without one where that has died.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, getpid, kill_process, set_child_subreaper, test_kill_process_group,
};
use rustix::stdio::stdin;
use rustix::termios::{tcgetpgrp, tcsetpgrp};

use super::events::Event;
use crate::cgroup::Cgroup;
use crate::processes::{self, Change, Process};
use crate::supervise::orders::{Order, Report, Start};
use crate::supervise::wire;

pub struct Supervised {
    socket: Arc<OwnedFd>,
    supervisor: Pid,
    /// The supervisor was reaped, so another process may have its pid.
    is_reaped: Cell<bool>,
    /// Children that did not come from the command: of a shell that became this program, or orphans in a container.
    others: RefCell<Vec<Pid>>,
    cgroup: Option<Cgroup>,
    /// The command is in the process group of this process.
    pub shares_group: bool,
}

/// How often what was started meanwhile is killed within a round.
const AT_ONCE: u32 = 20;
/// Between two rounds of kills.
const ROUND: Duration = Duration::from_millis(5);

impl Supervised {
    /// Starts the supervisor, before there is any descriptor that it would inherit.
    ///
    /// # Errors
    /// There is no process or no descriptor to be had, or the processes can't be seen.
    pub fn start(
        path: &str,
        command: &[OsString],
        events: Sender<Event>,
    ) -> io::Result<Supervised> {
        if !processes::are_seen() {
            return Err(io::Error::other(
                "/proc is not of this process's pid namespace, or not of that of its children, so the command could \
                 outlive the lock: mount it there (unshare --fork --mount-proc)",
            ));
        }
        // All of it falls to this process if the supervisor dies.
        set_child_subreaper(Some(getpid()))?;
        let (socket, theirs) = wire::pair()?;
        // This program again, even if another has taken its place on the disk.
        let mut supervisor = Command::new("/proc/self/exe");
        supervisor.arg0("zkl-supervisor").args(["supervise", "--path", path]);
        // On a terminal they are one job, as the shell sees it: both have its keys, and may read from it.
        let group = terminal().and(own_group());
        if let Some(group) = group {
            supervisor.args(["--group", &group.as_raw_nonzero().to_string()]);
        }
        let cgroup = Cgroup::make();
        if let Some(cgroup) = &cgroup {
            supervisor.arg("--cgroup").arg(cgroup.path());
        }
        supervisor.arg("--").args(command);
        // What a terminal sends to the group of this process is not for it.
        let child = supervisor.stdin(theirs).process_group(0).spawn().inspect_err(|_| {
            cgroup.iter().for_each(Cgroup::remove);
        })?;
        // It has the other end of the socket.
        drop(supervisor);
        let socket = Arc::new(socket);
        let read = Arc::clone(&socket);
        let listen = move || {
            while let Some((text, _)) = wire::receive(&*read) {
                if let Some(report) = Report::read(&text) {
                    let _ = events.send(Event::Report(report));
                }
            }
            let _ = events.send(Event::NoSupervisor);
        };
        thread::Builder::new().name("reports".to_owned()).spawn(listen)?;
        let shares_group = group.is_some();
        let supervised = Supervised {
            socket,
            supervisor: Pid::from_child(&child),
            is_reaped: Cell::default(),
            others: RefCell::default(),
            cgroup,
            shares_group,
        };
        supervised.look_after_others();
        Ok(supervised)
    }

    /// Has the command started, with the standard input of this process. A supervisor that does not hear of it is killed:
    /// it would wait for ever.
    ///
    /// # Errors
    /// The kernel lets no more descriptors be sent, or the supervisor is gone.
    pub fn run(&self, start: Start) -> io::Result<()> {
        wire::send(&*self.socket, &Order::Start(start).write(), Some(stdin().as_fd())).inspect_err(
            |_| {
                self.kill_supervisor();
            },
        )
    }

    /// A supervisor that takes no orders acts by what it was told last.
    pub fn order(&self, order: &Order) {
        let _ = wire::send(&*self.socket, &order.write(), None);
    }

    /// Does itself what the supervisor does not do: kills it, and with it all that came of the command. Waits until
    /// nothing of that is left; `stuck` gets what can't be killed.
    pub fn take_over(&self, mut stuck: impl FnMut(&str)) {
        const SAY_AFTER: u32 = 200;
        self.kill_supervisor();
        for round in 0u32.. {
            if let Some(cgroup) = &self.cgroup {
                cgroup.kill();
            }
            for _ in 0..AT_ONCE {
                let is_childless = matches!(self.reap(), Change::NoChildren);
                let is_left = self.cgroup.as_ref().is_some_and(|cgroup| !cgroup.is_empty());
                if !is_left && (is_childless || self.are_all_others()) {
                    return;
                }
                processes::kill_children(&self.others.borrow());
            }
            let left: Vec<_> = processes::below(getpid(), &self.others.borrow());
            for process in left.iter().filter(|process| !process.is_over()) {
                let _ = process.signal(Signal::KILL);
            }
            if round == SAY_AFTER {
                stuck(&processes::list(&left));
            }
            thread::sleep(ROUND);
        }
    }

    /// Reaps ended children, and notes those that did not come from the command.
    pub fn look_after_others(&self) {
        self.reap();
        let mut children = processes::children(getpid());
        children.retain(|child| *child != self.supervisor);
        // When the supervisor ends, this process becomes the parent of the command.
        let supervisor = Process::read(self.supervisor);
        if !self.is_reaped.get() && supervisor.is_some_and(|supervisor| !supervisor.is_over()) {
            self.others.replace(children);
        }
    }

    /// Reaps all ended children.
    fn reap(&self) -> Change {
        loop {
            match processes::next_change() {
                Change::Child(child, status) if status.exited() || status.signaled() => {
                    // A process of the command may get its pid.
                    self.others.borrow_mut().retain(|other| *other != child);
                    self.is_reaped.set(self.is_reaped.get() || child == self.supervisor);
                }
                Change::Child(..) => {}
                last => return last,
            }
        }
    }

    /// Whether there are children, and none of them came from the command.
    fn are_all_others(&self) -> bool {
        let others = self.others.borrow();
        // If some were noted, the kernel lists all. The list is complete: only this process reaps children, and new ones
        // are appended.
        !others.is_empty() && processes::children(getpid()).iter().all(|it| others.contains(it))
    }

    fn kill_supervisor(&self) {
        if !self.is_reaped.get() {
            let _ = kill_process(self.supervisor, Signal::KILL);
        }
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        if let Some(cgroup) = &self.cgroup {
            cgroup.remove();
        }
        // A shell that was killed leaves the terminal to a process group that is no more.
        if let (Some(terminal), Some(own)) = (terminal(), own_group()) {
            let foreground = tcgetpgrp(&terminal);
            if foreground.is_ok_and(|group| test_kill_process_group(group) == Err(Errno::SRCH)) {
                let _ = tcsetpgrp(&terminal, own);
            }
        }
    }
}

/// The process group of this process; `None` if it is one of another pid namespace, and has no number here.
fn own_group() -> Option<Pid> {
    Pid::from_raw(nix::unistd::getpgrp().as_raw())
}

/// The terminal that controls this process.
fn terminal() -> Option<File> {
    File::open("/dev/tty").ok()
}
