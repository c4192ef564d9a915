//! A service with one active copy. Its work starts again each time the lock was lost.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::Lock;
use super::caller::Caller;
use super::error::LockError;
use super::guard::Guard;
use super::while_held::Course;
use crate::logging::log;
use crate::runtime::{Pending, Timer, block_on, machine};

/// Between two attempts after an error; it doubles with each error in a row.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

impl Lock {
    /// Repeats [`while_held`](Lock::while_held): after a loss, it acquires the lock again at the end of the queue and
    /// restarts the work. Use it to keep one copy of a service active.
    ///
    /// ```no_run
    /// # use std::future::Future;
    /// # async fn example(zk: zklock::Client, ctrl_c: impl Future<Output = ()>) -> Result<(), zklock::LockError> {
    /// let lock = zk.lock("/services/billing");
    /// lock.whenever_held(|guard| async move { serve(guard.fencing_token()).await }).until(ctrl_c).await?;
    /// # Ok(()) }
    /// # async fn serve(token: i64) {}
    /// ```
    ///
    /// It ends when the work ends by itself while the lock is held, and gives the result of the work. With
    /// [`until`](WheneverHeld::until), it also ends on a signal. After an error of the store it retries; the pause
    /// between attempts grows to ten seconds. It waits for the lock without a limit. To limit an acquire, use
    /// [`Guard::while_held`](crate::Guard::while_held) in a loop of your own.
    ///
    /// # Errors
    /// Errors that a retry cannot fix: [`Unusable`](LockError::Unusable), [`NotPermitted`](LockError::NotPermitted),
    /// [`Closed`](LockError::Closed).
    ///
    /// # On connection loss
    /// The work continues until the lock is lost, and is then dropped. The lock is acquired again on the next
    /// connection.
    ///
    /// # Cancel safety
    /// Dropping it drops the work, then releases the lock.
    pub fn whenever_held<W, F>(&self, work: W) -> WheneverHeld<W, F>
    where
        W: FnMut(Arc<Guard>) -> F,
        F: Future,
    {
        let lock = self.clone();
        WheneverHeld::new(self.path(), move || lock.acquire(), work)
    }
}

/// Work that is done whenever a lock is held: see [`Lock::whenever_held`].
#[must_use = "nothing is done unless this is awaited or waited for"]
pub struct WheneverHeld<W, F> {
    path: Box<str>,
    acquire: Acquire,
    course: Course<F>,
    work: W,
    pause: Option<Timer>,
    errors: u32,
}

type Acquire = Box<dyn Fn() -> Pending<Guard, LockError> + Send + Sync>;

impl<W, F> WheneverHeld<W, F>
where
    W: FnMut(Arc<Guard>) -> F,
    F: Future,
{
    /// Acquires so, now and after each loss.
    pub(super) fn new(
        path: &str,
        acquire: impl Fn() -> Pending<Guard, LockError> + Send + Sync + 'static,
        work: W,
    ) -> WheneverHeld<W, F> {
        let caller = Caller::present();
        let course = Course::Acquiring(acquire());
        let acquire = Box::new(move || caller.acts(&acquire));
        WheneverHeld { path: path.into(), acquire, course, work, pause: None, errors: 0 }
    }

    /// Blocks this thread until the work ends by itself. The work runs on this thread.
    ///
    /// # Errors
    /// As [`Lock::whenever_held`].
    pub fn wait(self) -> Result<F::Output, LockError> {
        block_on(self)
    }

    /// Stops as soon as `stop` is ready, also during the wait for the lock or while no server answers. It drops the
    /// work, releases the lock in the background and gives `None`. Work that must finish something first can wait for
    /// the signal itself; `stop` is then its deadline.
    ///
    /// # Errors
    /// As [`Lock::whenever_held`].
    pub async fn until(
        self,
        stop: impl Future<Output = ()>,
    ) -> Result<Option<F::Output>, LockError> {
        let stopped = async {
            stop.await;
            Ok(None)
        };
        futures_lite::future::or(stopped, async { self.await.map(Some) }).await
    }

    /// The pause before another attempt, unless none would help.
    fn pause_after(&mut self, error: &LockError) -> Option<Duration> {
        match error {
            LockError::Unusable { .. }
            | LockError::NotPermitted { .. }
            | LockError::Closed { .. } => None,
            // The work had begun. After other errors, such as `NotHeld`, an acquire at once may fail again at once.
            LockError::Lost { .. } => {
                self.errors = 0;
                Some(Duration::ZERO)
            }
            _ => {
                let pause = FIRST_PAUSE * 2u32.saturating_pow(self.errors.min(10));
                self.errors += 1;
                Some(pause.min(LONGEST_PAUSE))
            }
        }
    }
}

// What is pinned is in a box.
impl<W, F> Unpin for WheneverHeld<W, F> {}

impl<W, F> Future for WheneverHeld<W, F>
where
    W: FnMut(Arc<Guard>) -> F,
    F: Future,
{
    type Output = Result<F::Output, LockError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            if let Some(pause) = &mut this.pause {
                ready!(Pin::new(pause).poll(cx));
                this.pause = None;
                this.course = Course::Acquiring((this.acquire)());
            }
            let WheneverHeld { course, work, .. } = this;
            let error = match ready!(course.poll(cx, |guard| Some(work(guard)))) {
                Ok(done) => return Poll::Ready(Ok(done)),
                Err(error) => error,
            };
            let why = error.to_string();
            // Without the result of work that ended after the loss: the work is done again.
            let error = LockError::from(error);
            let Some(pause) = this.pause_after(&error) else {
                return Poll::Ready(Err(error));
            };
            // Whose store needs no thread has started none that wakes it.
            if machine::start().is_err() {
                return Poll::Ready(Err(error));
            }
            log!(INFO, why, ?pause, "the work begins again once the lock is held again");
            this.pause = Some(Timer::after(pause));
            if pause.is_zero() {
                // Others of this task have a turn, also where all is ready at once.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }
}

impl<W, F> std::fmt::Debug for WheneverHeld<W, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WheneverHeld").field("path", &self.path).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(zklock_loom)))]
mod tests {
    use std::any::Any;
    use std::cell::{Cell, RefCell};
    use std::collections::VecDeque;
    use std::rc::Rc;
    use std::task::Waker;

    use futures_lite::future::Boxed;
    use parking_lot::Mutex;

    use super::super::contender::Contender;
    use super::super::loss::LostReason;
    use super::super::op::ready;
    use super::super::store::{Change, LockView, StoredLock};
    use super::super::strategy::Strategy;
    use super::*;
    use crate::error::{Code, Error};
    use crate::runtime::simulated::{self, Machine};
    use crate::runtime::{Pending, Timers, now};

    /// A machine with a clock that advances only while a task waits for it.
    #[derive(Default)]
    struct Clock {
        shows: Cell<Duration>,
        timers: RefCell<Timers>,
    }

    impl Machine for Clock {
        fn clock(&self) -> Duration {
            self.shows.get()
        }

        fn timers(&self) -> &RefCell<Timers> {
            &self.timers
        }

        fn drive(&self, _: Boxed<()>) {}
    }

    /// Fails with one error after the other, and knows when it was asked.
    struct Failing {
        errors: Mutex<VecDeque<LockError>>,
        asked: Mutex<Vec<Duration>>,
    }

    impl StoredLock for Failing {
        fn path(&self) -> &str {
            "/failing"
        }

        fn strategy(&self) -> Strategy {
            Strategy::Queue
        }

        fn with(&self, _: Change) -> Arc<dyn StoredLock> {
            unreachable!()
        }

        fn acquire(self: Arc<Self>) -> Pending<Guard, LockError> {
            self.asked.lock().push(simulated::clock_of(now()));
            let end = || LockError::closed("/failing", Error::new("acquire", "", Code::CLOSING));
            let error = self.errors.lock().pop_front().unwrap_or_else(end);
            ready(Err(error))
        }

        fn try_acquire(self: Arc<Self>) -> Pending<Result<Guard, Option<Contender>>, LockError> {
            unreachable!()
        }

        fn view(self: Arc<Self>) -> Arc<dyn LockView> {
            unreachable!()
        }

        fn as_any(&self) -> &dyn Any {
            self
        }
    }

    /// How long the pauses are, in milliseconds, before each attempt that follows one of these errors; and how it ends.
    fn pauses_after(errors: Vec<LockError>) -> (Vec<u128>, LockError) {
        let failing = Failing { errors: Mutex::new(errors.into()), asked: Mutex::default() };
        let failing = Arc::new(failing);
        let lock = Lock::new(Arc::clone(&failing) as _);
        let clock = Rc::new(Clock::default());
        let error = simulated::on(&(Rc::clone(&clock) as Rc<dyn Machine>), || {
            let mut service = lock.whenever_held(|_| std::future::ready(()));
            let mut nobody = Context::from_waker(Waker::noop());
            loop {
                if let Poll::Ready(end) = Pin::new(&mut service).poll(&mut nobody) {
                    break end.unwrap_err();
                }
                // Without one, it lets others have a turn.
                let next = clock.timers.borrow().first();
                if let Some(next) = next {
                    clock.shows.set(simulated::clock_of(next));
                    clock.timers.borrow_mut().wake_due(next);
                }
            }
        });
        let asked = failing.asked.lock();
        let pauses = asked.windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect();
        (pauses, error)
    }

    fn trouble() -> LockError {
        LockError::store("/failing", Error::new("acquire", "", Code::SYSTEM_ERROR))
    }

    #[test]
    fn the_pause_after_an_error_of_the_store_doubles_up_to_ten_seconds() {
        let (pauses, error) = pauses_after((0..14).map(|_| trouble()).collect());
        let growing = [100, 200, 400, 800, 1_600, 3_200, 6_400];
        let longest = [10_000; 7];
        assert_eq!(pauses, [growing, longest].concat());
        assert!(matches!(error, LockError::Closed { .. }), "{error:?}");
    }

    #[test]
    fn after_a_loss_it_tries_at_once_and_the_next_error_is_the_first_again() {
        let lost = LockError::lost("/failing", LostReason::Session);
        let (pauses, _) = pauses_after(vec![trouble(), trouble(), trouble(), lost, trouble()]);
        assert_eq!(pauses, [100, 200, 400, 0, 100]);
    }

    #[test]
    fn it_pauses_after_a_refusal_that_comes_again_at_once() {
        let kept = || LockError::not_held("/failing", LostReason::Session);
        let (pauses, _) = pauses_after(vec![kept(), kept()]);
        assert_eq!(pauses, [100, 200]);
    }

    #[test]
    fn what_no_other_attempt_would_mend_ends_it_at_once() {
        let unusable = LockError::unusable("/failing", "as intended", Code::BAD_ARGUMENTS);
        let (pauses, error) = pauses_after(vec![unusable]);
        assert!(pauses.is_empty() && matches!(error, LockError::Unusable { .. }), "{error:?}");
    }
}
