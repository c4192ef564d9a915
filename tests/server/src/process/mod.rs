//! Child processes that do not outlive this one.
//!
//! Linux can kill a child when its parent dies, but takes the *thread* that started it for the parent: a server
//! started by a short test thread would die with that thread. So one thread, which lives as long as the process,
//! starts them all. Dropping a [`Process`] kills it as well.

mod in_child;

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// A running child: it has a pid of its own until it is dropped, which kills it.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
}

impl Process {
    pub(crate) fn start(command: Command) -> io::Result<Process> {
        Process::start_dying_by(command, Signal::KILL)
    }

    /// One that gets that signal when this process dies.
    pub(crate) fn start_dying_by(command: Command, signal: Signal) -> io::Result<Process> {
        let (answer, started) = channel();
        spawner()?
            .lock()
            .send((command, signal, answer))
            .map_err(|_| io::Error::other("the thread that starts servers is gone"))?;
        let child = started
            .recv()
            .map_err(|_| io::Error::other("the thread that starts servers is gone"))??;
        Ok(Process { child })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The child is not reaped before this value is gone, so its pid cannot have passed to another process.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(self.id()?, signal)?)
    }

    /// Stops the child in its tracks: when this returns all of its threads stand still.
    pub(crate) fn freeze(&self) -> io::Result<()> {
        // One of its threads may wait for a disk, and stops only then.
        const TIMEOUT: Duration = Duration::from_secs(300);
        self.signal(Signal::STOP)?;
        let deadline = Instant::now() + TIMEOUT;
        // The status is left where it is, so that freezing a frozen child sees it again.
        let how = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while waitid(WaitId::Pid(self.id()?), how)?.is_none() {
            if Instant::now() >= deadline {
                let message = format!("pid {} does not stop within {TIMEOUT:?}", self.pid());
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn id(&self) -> io::Result<Pid> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        pid.ok_or_else(|| io::Error::other("a pid that is no pid"))
    }

    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Whether the child ended within `timeout`.
    pub(crate) fn wait_ended(&mut self, timeout: Duration) -> io::Result<bool> {
        let deadline = Instant::now() + timeout;
        loop {
            if self.ended()?.is_some() {
                return Ok(true);
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only for a child that is gone, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

type Request = (Command, Signal, Sender<io::Result<Child>>);

fn spawner() -> io::Result<&'static Mutex<Sender<Request>>> {
    static SPAWNER: OnceLock<Mutex<Sender<Request>>> = OnceLock::new();
    if let Some(spawner) = SPAWNER.get() {
        return Ok(spawner);
    }
    let (sender, requests) = channel::<Request>();
    thread::Builder::new().name("zklock-spawner".into()).spawn(move || {
        for (mut command, signal, answer) in requests {
            in_child::prepare(&mut command, signal);
            // Nobody waits any more only if the asking thread panicked: then the child must not stay.
            if let Err(unclaimed) = answer.send(command.spawn()) {
                if let Ok(child) = unclaimed.0 {
                    drop(Process { child });
                }
            }
        }
    })?;
    // Of two threads that got here at once, the loser's sender is dropped and its thread ends.
    Ok(SPAWNER.get_or_init(|| Mutex::new(sender)))
}
