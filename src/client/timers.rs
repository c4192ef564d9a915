//! Waiting for a point in time: one thread for all clients of the process, started before the first
//! of them is made, and ended after the last is gone. It needs no descriptor.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::wake;
use crate::per_process::PerProcess;

static TIMERS: PerProcess<Mutex<Weak<Timers>>> = PerProcess::new();

/// The timers of a process; its thread ends with it.
pub(crate) struct Timers {
    queue: Arc<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    /// Whom to wake, by when; the number tells apart those of one time.
    wakers: BTreeMap<(Instant, u64), Waker>,
    last: u64,
    /// Nobody needs the thread any more, or it has ended: nobody would be woken.
    over: bool,
}

impl Timers {
    /// Those of this process.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(super) fn shared() -> io::Result<Arc<Timers>> {
        let mut shared = TIMERS.get().lock();
        if let Some(timers) = shared.upgrade() {
            if !timers.queue.waiting.lock().over {
                return Ok(timers);
            }
        }
        let timers = Arc::new(Timers { queue: Arc::default() });
        let served = Serving(Arc::clone(&timers.queue));
        std::thread::Builder::new().name("zklock-timer".into()).spawn(move || served.serve())?;
        *shared = Arc::downgrade(&timers);
        Ok(timers)
    }

    pub(crate) fn at(self: &Arc<Self>, at: Instant) -> Sleep {
        Sleep { timers: Arc::clone(self), at, number: None }
    }

    pub(crate) fn after(self: &Arc<Self>, pause: Duration) -> Sleep {
        self.at(Instant::now() + pause)
    }

    /// At a deadline; never, where there is none.
    pub(crate) async fn deadline(self: &Arc<Self>, deadline: Option<Instant>) {
        match deadline {
            Some(deadline) => self.at(deadline).await,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Timers {
    fn drop(&mut self) {
        self.queue.waiting.lock().over = true;
        self.queue.changed.notify_all();
    }
}

/// The thread's side. However it ends, nobody is left to wait for it.
struct Serving(Arc<Queue>);

impl Serving {
    fn serve(&self) {
        let mut waiting = self.0.waiting.lock();
        while !waiting.over {
            let now = Instant::now();
            let first = waiting.wakers.first_key_value().map(|(key, _)| *key);
            match first {
                Some(key) if key.0 <= now => {
                    let waker = waiting.wakers.remove(&key);
                    // Outside the lock: a waker is somebody else's code.
                    drop(waiting);
                    wake::shielded(|| waker.map(Waker::wake));
                    waiting = self.0.waiting.lock();
                }
                Some((at, _)) => drop(self.0.changed.wait_until(&mut waiting, at)),
                None => self.0.changed.wait(&mut waiting),
            }
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let wakers = {
            let mut waiting = self.0.waiting.lock();
            waiting.over = true;
            std::mem::take(&mut waiting.wakers)
        };
        for waker in wakers.into_values() {
            wake::shielded(|| waker.wake());
        }
    }
}

/// Ready from a point in time on; earlier only if the thread of the timers is gone, as a wait that
/// ends too early does less harm than one that never ends.
#[must_use = "it waits when it is polled"]
pub(crate) struct Sleep {
    timers: Arc<Timers>,
    at: Instant,
    /// Under which the waker is kept.
    number: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.at {
            return Poll::Ready(());
        }
        let waker = cx.waker().clone();
        let queue = Arc::clone(&self.timers.queue);
        let mut waiting = queue.waiting.lock();
        if waiting.over {
            return Poll::Ready(());
        }
        let number = self.number.unwrap_or_else(|| {
            waiting.last += 1;
            waiting.last
        });
        self.number = Some(number);
        let key = (self.at, number);
        let before = waiting.wakers.insert(key, waker);
        let is_first = waiting.wakers.first_key_value().is_some_and(|(first, _)| *first == key);
        drop(waiting);
        if is_first {
            queue.changed.notify_all();
        }
        // Outside the lock.
        drop(before);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let waker = self.timers.queue.waiting.lock().wakers.remove(&(self.at, number));
            drop(waker);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::block_on;

    /// How long anything may take that is certain to come.
    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn timers_fire_in_their_order_and_not_before_their_time() {
        let timers = Timers::shared().unwrap();
        let began = Instant::now();
        let order = Mutex::new(Vec::new());
        let wait = |millis: u64| {
            let (timers, order) = (&timers, &order);
            async move {
                timers.after(Duration::from_millis(millis)).await;
                assert!(began.elapsed() >= Duration::from_millis(millis));
                order.lock().push(millis);
            }
        };
        let all = async {
            futures_lite::future::zip(wait(200), futures_lite::future::zip(wait(1), wait(100)))
                .await
        };
        block_on(all, Some(Instant::now() + PATIENCE)).unwrap();
        assert_eq!(*order.lock(), [1, 100, 200]);
    }

    #[test]
    fn a_timer_that_is_dropped_is_forgotten() {
        let timers = Timers { queue: Arc::default() };
        let timers = Arc::new(timers);
        let mut sleep = timers.after(PATIENCE);
        for _ in 0..3 {
            assert!(
                Pin::new(&mut sleep).poll(&mut Context::from_waker(Waker::noop())).is_pending()
            );
        }
        assert_eq!(timers.queue.waiting.lock().wakers.len(), 1);
        drop(sleep);
        assert!(timers.queue.waiting.lock().wakers.is_empty());
    }

    #[test]
    fn whoever_waits_when_the_thread_ends_is_woken() {
        let timers = Arc::new(Timers { queue: Arc::default() });
        let serving = Serving(Arc::clone(&timers.queue));
        let sleeping = std::thread::spawn(move || block_on(timers.after(PATIENCE * 10), None));
        let queue = Arc::clone(&serving.0);
        while queue.waiting.lock().wakers.is_empty() {
            std::thread::yield_now();
        }
        drop(serving);
        sleeping.join().unwrap();
    }
}
