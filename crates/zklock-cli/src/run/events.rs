//! All that `zklock run` waits for, in one line.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use super::signals::{Caught, Signals};
use crate::supervise::orders::Report;

pub enum Event {
    Signal(Caught),
    Report(Report),
    /// The supervisor has died.
    NoSupervisor,
    /// Work on another thread has ended.
    Done,
    /// That work continues.
    Tick,
    /// The lock may be lost.
    Lost,
    /// Somebody has asked for the lock that is held by this token.
    Asked {
        token: i64,
        reason: String,
    },
}

const TICK: Duration = Duration::from_secs(1);

pub struct Events {
    sender: Sender<Event>,
    receiver: Receiver<Event>,
    signals: Arc<Signals>,
}

impl Events {
    /// Blocks the signals, so it comes before any thread.
    ///
    /// # Errors
    /// No descriptors are left.
    pub fn new() -> io::Result<Events> {
        let (sender, receiver) = channel();
        let signals = Signals::block()?;
        Ok(Events { sender, receiver, signals: Arc::new(signals) })
    }

    /// Starts the thread that reads the signals.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn listen(&self) -> io::Result<()> {
        let (signals, sender) = (Arc::clone(&self.signals), self.sender());
        let listen = move || loop {
            signals.wait();
            signals.read(|caught| drop(sender.send(Event::Signal(caught))));
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(listen)?;
        Ok(())
    }

    pub fn sender(&self) -> Sender<Event> {
        self.sender.clone()
    }

    /// The next event, if one comes within that time. It misses no signal that came before this call.
    pub fn next(&self, within: Duration) -> Option<Event> {
        // The thread that listens may be late.
        self.signals.read(|caught| drop(self.sender.send(Event::Signal(caught))));
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
            match self.receiver.recv_timeout(TICK) {
                Ok(Event::Done) => {}
                event => other(event.unwrap_or(Event::Tick))?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::{Signal, raise};

    use super::*;

    #[test]
    fn a_signal_is_the_next_event_also_if_the_thread_that_listens_is_late() {
        let events = Events::new().unwrap();
        raise(Signal::SIGUSR2).unwrap();
        let next = events.next(Duration::ZERO);
        let Some(Event::Signal(caught)) = next else { panic!("no signal") };
        assert_eq!(caught.signal, Signal::SIGUSR2 as i32);
        assert!(events.next(Duration::ZERO).is_none());
    }
}
