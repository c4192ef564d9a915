//! Futures that continue on the thread that brings the reply.
//!
//! Each step of an acquire needs the servers' reply to the step before. If each reply woke the blocked thread, the next
//! request would leave a thread switch later. So the thread that brings a reply takes the next step, and the blocked
//! thread is woken once, at the end. A reply takes one step only. Other futures that it wakes continue on their own
//! threads, so that many of them do not keep heartbeats waiting.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use async_task::Runnable;
use parking_lot::Mutex;

use super::block::{Blocked, block_on_until};
use super::wake::{Continue, Woken, put_off};

/// Runs a future here as far as it goes, and from there on wherever it is woken. It must not block, and no code of
/// other programs may be what wakes it.
pub(crate) fn run_in_place(future: impl Future<Output = ()> + Send + 'static) {
    let go_on = |runnable: Runnable| {
        runnable.run();
    };
    let (runnable, task) = async_task::spawn(future, go_on);
    task.detach();
    runnable.run();
}

pub(super) type Running<O> = Pin<Box<dyn Future<Output = O> + Send>>;

/// Blocks until the future's output is there. Gives the future back once the deadline has passed.
pub(super) fn wait<O: Send + 'static>(
    deadline: Option<Instant>,
    future: Running<O>,
) -> Result<O, Running<O>> {
    let continuation = Arc::new(Continuation {
        state: Mutex::new(State::Running(future)),
        blocked: OnceLock::new(),
    });
    let waker = Waker::from(Arc::clone(&continuation));
    let ends = poll_fn(|cx| {
        continuation.blocked.get_or_init(|| cx.waker().clone());
        step(&mut continuation.state.lock(), &waker)
    });
    let _ = block_on_until(deadline, ends);
    // It may have ended just now.
    match mem::replace(&mut *continuation.state.lock(), State::Taken) {
        State::Ended(ended) => Ok(ended.unwrap_or_else(|panic| resume_unwind(panic))),
        State::Running(future) => Err(future),
        State::Taken => unreachable!("it is taken once"),
    }
}

enum State<O> {
    Running(Running<O>),
    Ended(Result<O, Box<dyn Any + Send>>),
    Taken,
}

struct Continuation<O> {
    state: Mutex<State<O>>,
    /// The thread that blocks.
    blocked: OnceLock<Waker>,
}

/// Goes on as far as that is possible now.
fn step<O>(state: &mut State<O>, waker: &Waker) -> Poll<()> {
    let State::Running(future) = state else { return Poll::Ready(()) };
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

impl<O: Send + 'static> Continue for Continuation<O> {
    fn continue_here(self: Arc<Self>) {
        // Where another thread takes a step now, the one that blocks looks once more.
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

impl<O: Send + 'static> Wake for Continuation<O> {
    fn wake(self: Arc<Self>) {
        if !put_off(Woken::Continuation(Arc::clone(&self) as _)) {
            self.wake_blocked();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::super::{offload, wake};
    use super::*;

    /// Stands for a thread that blocks.
    #[derive(Default)]
    struct Thread(AtomicUsize);

    impl Wake for Thread {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A continuation after its first step, and the thread that blocks for it.
    fn blocked<O: Send + 'static>(going: Running<O>) -> (Arc<Continuation<O>>, Arc<Thread>) {
        let thread = Arc::new(Thread::default());
        let blocked = OnceLock::from(Waker::from(Arc::clone(&thread)));
        let continuation =
            Arc::new(Continuation { state: Mutex::new(State::Running(going)), blocked });
        let first = step(&mut continuation.state.lock(), &Arc::clone(&continuation).into());
        assert!(first.is_pending());
        (continuation, thread)
    }

    fn woken(thread: &Thread) -> usize {
        thread.0.load(Ordering::SeqCst)
    }

    fn deliver(reply: oneshot::Sender<()>) {
        wake::answer(reply, ());
    }

    #[test]
    fn who_brings_an_answer_takes_the_step_after_it_and_the_last_wakes_the_thread() {
        let (first, first_reply) = oneshot::async_channel();
        let (second, second_reply) = oneshot::async_channel();
        let (says, went_on) = std::sync::mpsc::channel();
        let (continuation, thread) = blocked(Box::pin(async move {
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
        assert!(matches!(*continuation.state.lock(), State::Ended(Ok(7))));
    }

    #[test]
    fn an_answer_takes_one_step_and_wakes_the_others() {
        let event = event_listener::Event::new();
        let all: Vec<_> = (0..8).map(|_| blocked(Box::pin(event.listen()))).collect();
        wake::deliver(true, || _ = event.notify(usize::MAX));
        let ended = |(continuation, _): &&(Arc<Continuation<()>>, _)| {
            matches!(*continuation.state.lock(), State::Ended(Ok(())))
        };
        assert_eq!(all.iter().filter(ended).count(), 1);
        assert!(all.iter().all(|(_, thread)| woken(thread) == 1));
    }

    #[test]
    fn where_a_step_is_taken_elsewhere_the_thread_looks_once_more() {
        let (answer, reply) = oneshot::async_channel();
        let (continuation, thread) = blocked(Box::pin(async move { reply.await.unwrap() }));
        let elsewhere = continuation.state.lock();
        deliver(answer);
        assert_eq!(woken(&thread), 1);
        assert!(matches!(*elsewhere, State::Running(_)));
    }

    #[test]
    fn a_thread_of_ours_and_whoever_brings_no_answer_take_no_step() {
        let (answer, reply) = oneshot::async_channel();
        let (continuation, thread) = blocked(Box::pin(async move { reply.await.unwrap() }));
        let driver = thread::spawn(|| {
            offload::take_role(offload::Role::Driver);
            deliver(answer);
        });
        driver.join().unwrap();
        let (other, reply) = oneshot::async_channel::<()>();
        let (_other, its_thread) = blocked(Box::pin(async move { reply.await.unwrap() }));
        other.send(()).unwrap();
        assert_eq!((woken(&thread), woken(&its_thread)), (1, 1));
        assert!(matches!(*continuation.state.lock(), State::Running(_)));
    }

    #[test]
    fn a_step_that_panics_does_so_where_it_is_waited_for() {
        let (answer, reply) = oneshot::async_channel::<()>();
        let waiting = thread::spawn(|| {
            let bad: Running<()> = Box::pin(async move {
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
        let going: Running<()> = Box::pin(async move { reply.await.unwrap() });
        let deadline = Instant::now() + Duration::from_millis(20);
        let Err(mut left) = wait(Some(deadline), going) else { panic!("it has not ended") };
        deliver(answer);
        assert!(left.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    }
}
