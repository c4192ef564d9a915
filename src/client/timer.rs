//! Waiting for a time: one thread for the process wakes all who do.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::wake;
use crate::logging::log;
use crate::process::Process;
use crate::sync::per_process;

/// Comes when it is time.
pub(crate) struct Timer {
    /// `None`: a time too far to name.
    at: Option<Instant>,
    waits: Option<Key>,
    process: Process,
}

/// When, and a number that no other has.
type Key = (Instant, u64);

#[derive(Default)]
struct Timers {
    waiting: Mutex<Waiting>,
    /// There is another that comes first.
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    wakers: BTreeMap<Key, Waker>,
    latest: u64,
    has_thread: bool,
    /// When the thread looks by itself again; `None` while there is nothing to wake.
    looks_at: Option<Instant>,
}

per_process! {
    static TIMERS: Timers = Timers::default();
}

impl Timer {
    pub(crate) fn at(at: Instant) -> Timer {
        Timer { at: Some(at), waits: None, process: Process::this() }
    }

    pub(crate) fn after(pause: Duration) -> Timer {
        Timer { at: Instant::now().checked_add(pause), waits: None, process: Process::this() }
    }
}

impl Timer {
    /// At a deadline; never, where there is none.
    pub(crate) async fn deadline(deadline: Option<Instant>) {
        match deadline {
            Some(deadline) => Timer::at(deadline).await,
            None => std::future::pending().await,
        }
    }
}

/// Makes sure that timers come.
pub(super) fn start() -> io::Result<()> {
    TIMERS.locked().start()
}

impl Timers {
    fn locked(&self) -> MutexGuard<'_, Waiting> {
        // Nothing here panics while it is locked.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread's work, for as long as the process lives.
    fn keep_time(&self) {
        let mut waiting = self.locked();
        loop {
            let now = Instant::now();
            let later = waiting.wakers.split_off(&(now, u64::MAX));
            let due = std::mem::replace(&mut waiting.wakers, later);
            if !due.is_empty() {
                drop(waiting);
                for waker in due.into_values() {
                    wake::shielded(|| waker.wake());
                }
                waiting = self.locked();
                continue;
            }
            waiting.looks_at = waiting.wakers.first_key_value().map(|((at, _), _)| *at);
            waiting = match waiting.looks_at.map(|at| at - now) {
                Some(pause) => {
                    self.changed
                        .wait_timeout(waiting, pause)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
                None => self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

impl Waiting {
    fn start(&mut self) -> io::Result<()> {
        if !self.has_thread {
            let thread = std::thread::Builder::new().name("zklock-timer".into());
            thread.spawn(|| TIMERS.keep_time())?;
            self.has_thread = true;
        }
        Ok(())
    }
}

impl Future for Timer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.at else { return Poll::Pending };
        if Instant::now() >= at || !self.process.is_this() {
            return Poll::Ready(());
        }
        let mut waiting = TIMERS.locked();
        if let Err(error) = waiting.start() {
            // A client has started it before: this is a child that goes on with its parent's work.
            log!(ERROR, %error, "no thread for timers");
        }
        let key = *self.waits.get_or_insert_with(|| {
            waiting.latest += 1;
            (at, waiting.latest)
        });
        let before = waiting.wakers.insert(key, cx.waker().clone());
        // Most timers are dropped before their time, and the thread sleeps on until the first of them:
        // then a later one wakes nobody when it begins.
        let is_sooner = waiting.looks_at.is_none_or(|looks_at| at < looks_at);
        drop(waiting);
        // Dropping a waker is running code of others.
        drop(before);
        if is_sooner {
            TIMERS.changed.notify_one();
        }
        Poll::Pending
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(key) = self.waits.filter(|_| self.process.is_this()) {
            let waker = TIMERS.locked().wakers.remove(&key);
            drop(waker);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::block_on;

    #[test]
    fn timers_come_in_their_order_and_not_too_early() {
        let begun = Instant::now();
        let waits = [30, 10, 20].map(|millis| {
            std::thread::spawn(move || {
                let at = begun + Duration::from_millis(millis);
                block_on(Timer::at(at), None);
                assert!(Instant::now() >= at);
            })
        });
        waits.into_iter().for_each(|wait| wait.join().unwrap());
        block_on(Timer::at(begun), None);
    }

    #[test]
    fn a_timer_that_is_dropped_is_forgotten() {
        let far = Duration::from_secs(3_600);
        assert_eq!(block_on(Timer::after(far), Some(Instant::now())), None);
        let latest = Instant::now() + far;
        let left = TIMERS.locked().wakers.keys().filter(|(at, _)| *at > latest - far / 2).count();
        assert_eq!(left, 0);
        assert_eq!(block_on(Timer::after(Duration::MAX), Some(Instant::now())), None);
    }
}
