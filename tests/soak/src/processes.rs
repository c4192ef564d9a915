//! The client processes, seen from outside: started, killed and replaced, frozen and thawed.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::worker::{ACQUIRED, HOLDING, Orders, PARKED, VARIABLE};

/// One of its threads may wait for a disk, and stops only then.
const STOPS_WITHIN: Duration = Duration::from_secs(300);

/// One client process; dropping it kills it.
///
/// It has to be started by a thread that lives as long as the program: it dies with that thread.
pub struct Worker {
    /// Unlike all processes before it.
    pub number: u32,
    child: Child,
    stdin: ChildStdin,
    status: Arc<Status>,
}

#[derive(Default)]
struct Status {
    acquired: AtomicU64,
    parked: AtomicBool,
    holding: AtomicU64,
}

impl Worker {
    /// # Errors
    /// Those of starting a process.
    pub fn start(orders: &Orders) -> io::Result<Worker> {
        let mut child = Command::new(std::env::current_exe()?)
            .env(VARIABLE, orders.encode())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C is for the one who runs the soak.
            .process_group(0)
            .spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
            return Err(io::Error::other("a child without pipes"));
        };
        let status = Arc::new(Status::default());
        let worker = Worker { number: orders.process, child, stdin, status: Arc::clone(&status) };
        thread::Builder::new().name("processes".to_owned()).spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if line == PARKED {
                    status.parked.store(true, Ordering::SeqCst);
                } else if let Some(count) = line.strip_prefix(ACQUIRED) {
                    status.acquired.store(count.parse().unwrap_or(0), Ordering::Relaxed);
                } else if let Some(count) = line.strip_prefix(HOLDING) {
                    status.holding.store(count.parse().unwrap_or(0), Ordering::Relaxed);
                }
            }
        })?;
        Ok(worker)
    }

    /// Locks acquired so far, as it has told.
    pub fn acquired(&self) -> u64 {
        self.status.acquired.load(Ordering::Relaxed)
    }

    /// Whether it has told lately that a thread of its is at a long hold.
    pub fn is_holding(&self) -> bool {
        self.status.holding.load(Ordering::Relaxed) > 0
    }

    pub fn is_parked(&self) -> bool {
        self.status.parked.load(Ordering::SeqCst)
    }

    /// Whether it has ended by itself, which it does only when it is told to.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Says [`PARK`](crate::worker::PARK) or [`CLOSE`](crate::worker::CLOSE) to it.
    ///
    /// # Errors
    /// Those of writing to a process that has ended.
    pub fn say(&mut self, word: &str) -> io::Result<()> {
        self.stdin.write_all(word.as_bytes())?;
        self.stdin.flush()
    }

    /// Kills it, and waits for its end.
    pub fn kill(&mut self) {
        // Both fail only for a process that is gone, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Stops it in its tracks: when this returns, all of its threads stand still.
    ///
    /// # Errors
    /// Those of the system calls; `TimedOut` when it does not stop.
    pub fn freeze(&self) -> io::Result<()> {
        kill_process(self.pid()?, Signal::STOP)?;
        let deadline = Instant::now() + STOPS_WITHIN;
        let how = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while waitid(WaitId::Pid(self.pid()?), how)?.is_none() {
            if Instant::now() >= deadline {
                let what = format!("client {} does not stop", self.number);
                return Err(io::Error::new(io::ErrorKind::TimedOut, what));
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// # Errors
    /// Those of the system call.
    pub fn thaw(&self) -> io::Result<()> {
        Ok(kill_process(self.pid()?, Signal::CONT)?)
    }

    /// Waits for its end; kills it when it is too late.
    pub fn wait_ended(&mut self, deadline: Instant) -> bool {
        while !self.has_ended() {
            if Instant::now() >= deadline {
                self.kill();
                return false;
            }
            thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// It is not reaped as long as this value is there, so the pid is its own.
    fn pid(&self) -> io::Result<Pid> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        pid.ok_or_else(|| io::Error::other("a pid that is no pid"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}
