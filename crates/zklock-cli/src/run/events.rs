//! All that `zklock run` waits for, in one line.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use crate::supervise::orders::Report;

/// A signal to this process.
#[derive(Clone, Copy, Debug)]
pub struct Caught {
    pub signal: i32,
    /// A key or the end of the terminal sent it, so the whole process group received it.
    pub is_of_terminal: bool,
}

pub enum Event {
    Signal(Caught),
    Report(Report),
    /// The supervisor has died.
    NoSupervisor,
    /// Work on another thread has ended.
    Done,
    /// The lock may be lost.
    Lost,
    /// Somebody has asked for the lock that is held by this token.
    Asked {
        token: i64,
        reason: String,
    },
}

pub struct Events {
    sender: Sender<Event>,
    receiver: Receiver<Event>,
}

impl Events {
    pub fn new() -> Events {
        let (sender, receiver) = channel();
        Events { sender, receiver }
    }

    pub fn sender(&self) -> Sender<Event> {
        self.sender.clone()
    }

    /// The next, if there is one within that time.
    pub fn next(&self, within: Duration) -> Option<Event> {
        self.receiver.recv_timeout(within).ok()
    }

    /// Does the work on another thread, and hands events to `other` meanwhile, until that says to wait no longer.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn meanwhile<T: Send + 'static, E: From<io::Error>>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
        mut other: impl FnMut(Event) -> Result<(), E>,
    ) -> Result<T, E> {
        let (give, take) = channel();
        let done = self.sender();
        let work = move || {
            let _ = give.send(work());
            let _ = done.send(Event::Done);
        };
        std::thread::Builder::new().name("zklock".to_owned()).spawn(work)?;
        loop {
            if let Ok(result) = take.try_recv() {
                return Ok(result);
            }
            match self.receiver.recv() {
                Ok(Event::Done) | Err(_) => {}
                Ok(event) => other(event)?,
            }
        }
    }
}
