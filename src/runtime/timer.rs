//! Waiting for a time. The driver wakes all who do.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_lite::future::or;
use parking::Unparker;
use parking_lot::Mutex;

use super::clock::now;
use super::wake::Sleeper;
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
pub(crate) struct Timers {
    waiting: BTreeMap<Key, Sleeper>,
    latest: u64,
    /// Wakes the driver, which is there before the first client is.
    driver: Option<Unparker>,
    /// When it looks by itself again; `None` while there is nobody to wake.
    looks_at: Option<Instant>,
}

per_process! {
    static TIMERS: Mutex<Timers> = Mutex::default();
}

/// Those of this process.
fn timers<T>(body: impl FnOnce(&mut Timers) -> T) -> T {
    #[cfg(test)]
    if let Some(machine) = super::simulated::current() {
        return body(&mut machine.timers().borrow_mut());
    }
    body(&mut TIMERS.lock())
}

impl Timer {
    pub(crate) fn at(at: Instant) -> Timer {
        Timer { at: Some(at), waits: None, process: Process::this() }
    }

    pub(crate) fn after(pause: Duration) -> Timer {
        Timer { at: now().checked_add(pause), waits: None, process: Process::this() }
    }

    /// When it comes; `None` if never.
    pub(super) fn time(&self) -> Option<Instant> {
        self.at
    }

    /// Whether it comes before another does.
    pub(super) fn is_before(&self, other: &Timer) -> bool {
        self.at.is_some_and(|at| other.at.is_none_or(|other| at < other))
    }

    /// Whether somebody waits for it.
    pub(super) fn is_waited_for(&self) -> bool {
        self.waits.is_some()
    }
}

/// The result of `work`, or of `late` once the deadline has passed.
pub(crate) async fn within<T>(
    deadline: Option<Instant>,
    work: impl Future<Output = T>,
    late: impl FnOnce() -> T,
) -> T {
    let too_late = async {
        match deadline {
            Some(deadline) => Timer::at(deadline).await,
            None => std::future::pending().await,
        }
        late()
    };
    or(work, too_late).await
}

/// Whom to wake when somebody comes who waits for less long than all others: the driver.
pub(crate) fn wakes(driver: Unparker) {
    TIMERS.lock().driver = Some(driver);
}

/// Wakes the timers that are due, and returns the time of the next look. The driver calls it.
pub(crate) fn wake_due() -> Option<Instant> {
    loop {
        let mut timers = TIMERS.lock();
        let due = timers.take_due(now());
        if due.is_empty() {
            timers.looks_at = timers.next();
            return timers.looks_at;
        }
        drop(timers);
        due.into_values().for_each(Sleeper::wake);
    }
}

impl Timers {
    fn take_due(&mut self, now: Instant) -> BTreeMap<Key, Sleeper> {
        let later = self.waiting.split_off(&(now, u64::MAX));
        std::mem::replace(&mut self.waiting, later)
    }

    fn next(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// Wakes the timers that are due.
    #[cfg(test)]
    pub(crate) fn wake_due(&mut self, now: Instant) {
        self.take_due(now).into_values().for_each(Sleeper::wake);
    }

    /// The time of the next timer that is waited for with that waker, or with any other waker.
    #[cfg(test)]
    pub(crate) fn next_by(&self, waker: &std::task::Waker, is_that: bool) -> Option<Instant> {
        let mut wanted = self.waiting.iter().filter(|(_, sleeper)| sleeper.is(waker) == is_that);
        wanted.next().map(|((at, _), _)| *at)
    }

    /// The time of the next timer.
    #[cfg(test)]
    pub(crate) fn first(&self) -> Option<Instant> {
        self.next()
    }
}

impl Future for Timer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.at else { return Poll::Pending };
        if now() >= at || !self.process.is_this() {
            return Poll::Ready(());
        }
        let sleeper = Sleeper::new(cx.waker());
        let (before, driver) = timers(|timers| {
            let key = *self.waits.get_or_insert_with(|| {
                timers.latest += 1;
                (at, timers.latest)
            });
            let before = timers.waiting.insert(key, sleeper);
            // Most timers are dropped before their time, and the driver sleeps on until the first of them:
            // then a later one wakes nobody when it begins.
            let is_sooner = timers.looks_at.is_none_or(|looks_at| at < looks_at);
            (before, timers.driver.clone().filter(|_| is_sooner))
        });
        // Dropping a waker is running code of others.
        drop(before);
        if let Some(driver) = driver {
            driver.unpark();
        }
        Poll::Pending
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(key) = self.waits.filter(|_| self.process.is_this()) {
            let sleeper = timers(|timers| timers.waiting.remove(&key));
            drop(sleeper);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::{block_on, block_on_until, driver};

    #[test]
    fn timers_come_in_their_order_and_not_too_early() {
        driver::start().unwrap();
        let begun = Instant::now();
        let waits = [30, 10, 20].map(|millis| {
            std::thread::spawn(move || {
                let at = begun + Duration::from_millis(millis);
                block_on(Timer::at(at));
                assert!(Instant::now() >= at);
            })
        });
        waits.into_iter().for_each(|wait| wait.join().unwrap());
        block_on(Timer::at(begun));
    }

    #[test]
    fn a_timer_that_is_dropped_is_forgotten() {
        let far = Duration::from_secs(3_600);
        assert_eq!(block_on_until(Some(Instant::now()), Timer::after(far)), None);
        let latest = Instant::now() + far;
        let left = TIMERS.lock().waiting.keys().filter(|(at, _)| *at > latest - far / 2).count();
        assert_eq!(left, 0);
        assert_eq!(block_on_until(Some(Instant::now()), Timer::after(Duration::MAX)), None);
    }
}
