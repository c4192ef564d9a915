//! A future that a thread blocks for, and that goes on where what it waits for comes in.
//!
//! Each step of an acquire needs the servers' answer to the one before. Were the blocked thread woken for each, the
//! next request would leave a thread switch later. So the thread that brings an answer takes the next step itself, and
//! wakes the one that blocks when all is done. It takes one step for each answer and no more: others that the
//! same answer wakes go on by themselves, so that a crowd does not keep heartbeats waiting.

use std::any::Any;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use parking_lot::Mutex;

use super::blocked::Blocked;
use super::{block_on_until, role};

thread_local! {
    /// What goes on once the answer has been handed over; `None` where nothing may.
    static WOKEN: RefCell<Option<Woken>> = const { RefCell::new(None) };
}

/// What an answer has woken: mostly one.
#[derive(Default)]
struct Woken {
    first: Option<Arc<dyn CarryOn>>,
    others: Vec<Arc<dyn CarryOn>>,
}

/// Hands over an answer that has come in on this thread, and takes the next step of whoever blocks for it.
pub(super) fn with(hand_over: impl FnOnce()) {
    // The driver and its helpers have to do for all.
    if role::is_ours() {
        return hand_over();
    }
    let outer = WOKEN.try_with(|woken| woken.replace(Some(Woken::default())));
    hand_over();
    let Ok(outer) = outer else { return };
    let woken = WOKEN.try_with(|woken| woken.replace(outer)).ok().flatten();
    let Woken { first, others } = woken.unwrap_or_default();
    if let Some(first) = first {
        first.carry_on();
    }
    for other in others {
        other.wake_blocked();
    }
}

pub(super) type Going<O> = Pin<Box<dyn Future<Output = O> + Send>>;

/// A future's output, or the future once the deadline has passed.
pub(super) fn wait<O: Send + 'static>(
    deadline: Option<Instant>,
    future: Going<O>,
) -> Result<O, Going<O>> {
    let carried =
        Arc::new(Carried { state: Mutex::new(State::Going(future)), blocked: OnceLock::new() });
    let waker = Waker::from(Arc::clone(&carried));
    let ends = poll_fn(|cx| {
        carried.blocked.get_or_init(|| cx.waker().clone());
        step(&mut carried.state.lock(), &waker)
    });
    let _ = block_on_until(deadline, ends);
    // It may have ended just now.
    match mem::replace(&mut *carried.state.lock(), State::Taken) {
        State::Ended(ended) => Ok(ended.unwrap_or_else(|panic| resume_unwind(panic))),
        State::Going(future) => Err(future),
        State::Taken => unreachable!("it is taken once"),
    }
}

type Ended<O> = Result<O, Box<dyn Any + Send>>;

enum State<O> {
    Going(Going<O>),
    Ended(Ended<O>),
    Taken,
}

struct Carried<O> {
    state: Mutex<State<O>>,
    /// The thread that blocks.
    blocked: OnceLock<Waker>,
}

/// Goes on as far as that is possible now.
fn step<O>(state: &mut State<O>, waker: &Waker) -> Poll<()> {
    let State::Going(future) = state else { return Poll::Ready(()) };
    let _blocked = Blocked::begin(waker);
    let polled =
        catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(waker))));
    *state = State::Ended(match polled {
        Ok(Poll::Pending) => return Poll::Pending,
        Ok(Poll::Ready(output)) => Ok(output),
        Err(panic) => Err(panic),
    });
    Poll::Ready(())
}

trait CarryOn {
    /// Takes the next step here, and wakes the thread that blocks if that was the last.
    fn carry_on(self: Arc<Self>);
    fn wake_blocked(&self);
}

impl<O: Send + 'static> CarryOn for Carried<O> {
    fn carry_on(self: Arc<Self>) {
        // Where somebody takes a step now, the one that blocks looks once more.
        let stepped = self.state.try_lock().map(|mut it| step(&mut it, &Arc::clone(&self).into()));
        if stepped != Some(Poll::Pending) {
            self.wake_blocked();
        }
    }

    fn wake_blocked(&self) {
        if let Some(blocked) = self.blocked.get() {
            blocked.wake_by_ref();
        }
    }
}

impl<O: Send + 'static> Wake for Carried<O> {
    fn wake(self: Arc<Self>) {
        let put_off = WOKEN.try_with(|woken| match &mut *woken.borrow_mut() {
            Some(woken) => {
                let it = Arc::clone(&self) as _;
                match woken.first {
                    None => woken.first = Some(it),
                    Some(_) => woken.others.push(it),
                }
                true
            }
            None => false,
        });
        if put_off != Ok(true) {
            self.wake_blocked();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// Stands for a thread that blocks.
    #[derive(Default)]
    struct Thread(AtomicUsize);

    impl Wake for Thread {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// What a thread blocks for that has taken its first step.
    fn blocked<O: Send + 'static>(going: Going<O>) -> (Arc<Carried<O>>, Arc<Thread>) {
        let thread = Arc::new(Thread::default());
        let blocked = OnceLock::from(Waker::from(Arc::clone(&thread)));
        let carried = Arc::new(Carried { state: Mutex::new(State::Going(going)), blocked });
        let first = step(&mut carried.state.lock(), &Arc::clone(&carried).into());
        assert!(first.is_pending());
        (carried, thread)
    }

    fn woken(thread: &Thread) -> usize {
        thread.0.load(Ordering::SeqCst)
    }

    fn deliver(answer: oneshot::Sender<()>) {
        with(|| answer.send(()).unwrap());
    }

    #[test]
    fn who_brings_an_answer_takes_the_step_after_it_and_the_last_wakes_the_thread() {
        let (first, first_reply) = oneshot::async_channel();
        let (second, second_reply) = oneshot::async_channel();
        let (says, went_on) = std::sync::mpsc::channel();
        let (carried, thread) = blocked(Box::pin(async move {
            first_reply.await.unwrap();
            says.send(thread::current().id()).unwrap();
            second_reply.await.unwrap();
            7
        }));
        deliver(first);
        assert_eq!(went_on.try_recv(), Ok(thread::current().id()));
        assert_eq!(woken(&thread), 0);
        deliver(second);
        assert_eq!(woken(&thread), 1);
        assert!(matches!(*carried.state.lock(), State::Ended(Ok(7))));
    }

    #[test]
    fn an_answer_takes_one_step_and_wakes_the_others() {
        let event = event_listener::Event::new();
        let all: Vec<_> = (0..8).map(|_| blocked(Box::pin(event.listen()))).collect();
        with(|| {
            event.notify(usize::MAX);
        });
        let ended = |(carried, _): &&(Arc<Carried<()>>, _)| {
            matches!(*carried.state.lock(), State::Ended(Ok(())))
        };
        assert_eq!(all.iter().filter(ended).count(), 1);
        assert!(all.iter().all(|(_, thread)| woken(thread) == 1));
    }

    #[test]
    fn where_a_step_is_taken_elsewhere_the_thread_looks_once_more() {
        let (answer, reply) = oneshot::async_channel();
        let (carried, thread) = blocked(Box::pin(async move { reply.await.unwrap() }));
        let elsewhere = carried.state.lock();
        deliver(answer);
        assert_eq!(woken(&thread), 1);
        assert!(matches!(*elsewhere, State::Going(_)));
    }

    #[test]
    fn a_thread_of_ours_and_whoever_brings_no_answer_take_no_step() {
        let (answer, reply) = oneshot::async_channel();
        let (carried, thread) = blocked(Box::pin(async move { reply.await.unwrap() }));
        let driver = thread::spawn(|| {
            role::take(role::Role::Driver);
            deliver(answer);
        });
        driver.join().unwrap();
        let (other, reply) = oneshot::async_channel::<()>();
        let (_other, its_thread) = blocked(Box::pin(async move { reply.await.unwrap() }));
        other.send(()).unwrap();
        assert_eq!((woken(&thread), woken(&its_thread)), (1, 1));
        assert!(matches!(*carried.state.lock(), State::Going(_)));
    }

    #[test]
    fn a_step_that_panics_does_so_where_it_is_waited_for() {
        let (answer, reply) = oneshot::async_channel::<()>();
        let waiting = thread::spawn(|| {
            let bad: Going<()> = Box::pin(async move {
                let _ = reply.await;
                panic!("a bad step, as intended");
            });
            let _ = wait(None, bad);
        });
        deliver(answer);
        assert!(waiting.join().is_err());
    }

    #[test]
    fn after_the_deadline_the_future_is_given_back_as_it_stands() {
        let (answer, reply) = oneshot::async_channel();
        let going: Going<()> = Box::pin(async move { reply.await.unwrap() });
        let deadline = Instant::now() + Duration::from_millis(20);
        let Err(mut left) = wait(Some(deadline), going) else { panic!("it has not ended") };
        deliver(answer);
        assert!(left.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    }
}
