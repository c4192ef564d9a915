//! Wakes waiters after their result has been delivered.
//!
//! A waker is code of another program. It may use the client, so it is called under none of our locks. It may panic,
//! which must cost neither the driver nor other waiters anything. It may block, so the driver hands it to a worker.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::task::{Context, Poll, Wake, Waker};

use event_listener::Event;
use smallvec::SmallVec;

use super::block::Blocked;
use super::offload;
use crate::panics::catch_panic;

thread_local! {
    /// Everything that the present delivery on this thread has woken; `None` outside a delivery.
    static WOKEN: RefCell<Option<SmallVec<[Woken; 1]>>> = const { RefCell::new(None) };
}

/// Something to wake after a delivery.
pub(super) enum Woken {
    Sleeper(Sleeper),
    Continuation(Arc<dyn Continue>),
}

/// A future that a thread blocks for, and that can continue on another (`continuation.rs`).
pub(super) trait Continue: Send + Sync {
    fn continue_here(self: Arc<Self>);
    fn wake_blocked(&self);
}

/// Wakes what the delivery wakes, once it is over. With `continues`, the first continuation goes on on this thread.
pub(super) fn deliver(continues: bool, delivery: impl FnOnce()) {
    let outer = WOKEN.try_with(|woken| woken.replace(Some(SmallVec::new())));
    delivery();
    let Ok(outer) = outer else { return };
    let woken = WOKEN.try_with(|woken| woken.replace(outer)).ok().flatten();
    let mut continues = continues;
    for woken in woken.into_iter().flatten() {
        match woken {
            Woken::Sleeper(sleeper) => sleeper.wake(),
            Woken::Continuation(first) if std::mem::take(&mut continues) => first.continue_here(),
            Woken::Continuation(other) => other.wake_blocked(),
        }
    }
}

/// Leaves that to the delivery on this thread. Gives `false` if there is none.
pub(super) fn put_off(woken: Woken) -> bool {
    let put_off = WOKEN.try_with(|list| list.borrow_mut().as_mut().map(|list| list.push(woken)));
    put_off.is_ok_and(|put_off| put_off.is_some())
}

/// A waiter.
#[derive(Clone)]
pub(crate) struct Sleeper {
    waker: Waker,
    /// Whether the waker is our own: the driver's, or that of a thread that blocks.
    is_ours: bool,
}

impl Sleeper {
    /// The waiter that polls on this thread with that waker.
    pub(crate) fn new(waker: &Waker) -> Sleeper {
        let is_ours = offload::is_driver() || Blocked::is_by(waker);
        Sleeper { waker: waker.clone(), is_ours }
    }

    /// Whether it is by that waker that somebody waits.
    #[cfg(test)]
    pub(crate) fn is(&self, waker: &Waker) -> bool {
        self.waker.will_wake(waker)
    }

    pub(crate) fn wake(self) {
        if self.is_ours || !offload::is_driver() {
            catch_panic(|| self.waker.wake());
        } else {
            offload::wake(self.waker);
        }
    }
}

/// Wakes all listeners. They are polled through [`DeferredWake`].
pub(crate) fn all(event: &Event) {
    // An event without listeners has taken no memory yet. The fence replaces the one that it would have made: a later
    // listener sees the change.
    fence(Ordering::SeqCst);
    if event.total_listeners() > 0 {
        // An event wakes under a lock of its own, and a panic there would leave it broken for good.
        deliver(false, || _ = event.notify(usize::MAX));
    }
}

/// Polls a listener in a way that its waker can do no harm to the event, whatever it does.
pub(crate) struct DeferredWake<F>(pub(crate) F);

impl<F: Future + Unpin> Future for DeferredWake<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // By that, a thread is unparked, and nothing else.
        if Blocked::is_by(cx.waker()) {
            return Pin::new(&mut self.0).poll(cx);
        }
        let waker = Waker::from(Arc::new(Later(Sleeper::new(cx.waker()))));
        Pin::new(&mut self.0).poll(&mut Context::from_waker(&waker))
    }
}

/// Wakes after [`all`] is through with the event.
struct Later(Sleeper);

impl Wake for Later {
    fn wake(self: Arc<Self>) {
        if !put_off(Woken::Sleeper(self.0.clone())) {
            self.0.clone().wake();
        }
    }
}

/// Sends a reply of the servers', on the thread that brings it, to a receiver that may be gone. Its continuation goes on
/// here, except on a thread that has to do for all clients.
pub(crate) fn answer<T>(sender: oneshot::Sender<T>, value: T) {
    deliver(!offload::has_role(), || send(sender, value));
}

/// Sends to a receiver that may be gone.
pub(crate) fn send<T>(sender: oneshot::Sender<T>, value: T) {
    catch_panic(|| drop(sender.send(value)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    struct Bad {
        event: Arc<Event>,
        woken: AtomicUsize,
    }

    impl Wake for Bad {
        fn wake(self: Arc<Self>) {
            self.woken.fetch_add(1, Ordering::SeqCst);
            // Would wait for itself, were it woken under the event's lock.
            drop(self.event.listen());
            panic!("a bad waker, as intended");
        }
    }

    #[test]
    fn a_bad_waker_neither_breaks_the_event_nor_keeps_others_from_being_woken() {
        let event = Arc::new(Event::new());
        let bad = Arc::new(Bad { event: Arc::clone(&event), woken: AtomicUsize::new(0) });
        let waker = Waker::from(Arc::clone(&bad));
        let mut listeners = [(); 3].map(|()| DeferredWake(event.listen()));
        for listener in &mut listeners {
            assert!(Pin::new(listener).poll(&mut Context::from_waker(&waker)).is_pending());
        }
        all(&event);
        assert_eq!(bad.woken.load(Ordering::SeqCst), 3);
        for listener in &mut listeners {
            assert!(Pin::new(listener).poll(&mut Context::from_waker(Waker::noop())).is_ready());
        }
    }
}
