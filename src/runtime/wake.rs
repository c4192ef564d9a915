//! Waking those who wait, whoever they are.
//!
//! A waker is somebody else's code. It may call back into the client, so none is woken under one of
//! our locks; it may panic, which must cost neither the driver nor the others who wait; and it may block, so
//! none is woken by the driver.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::task::{Context, Poll, Wake, Waker};

use event_listener::Event;

use super::blocked::Blocked;
use super::{carried_on, offload, role};
use crate::panics::catch_panic;

thread_local! {
    /// Whom to wake once the event that they listen to has let go of its lock.
    static DEFERRED: RefCell<Option<Vec<Sleeper>>> = const { RefCell::new(None) };
}

/// Somebody who waits.
#[derive(Clone)]
pub(crate) struct Sleeper {
    waker: Waker,
    /// Whether the waker is our own: the driver's, or that of a thread that blocks.
    is_ours: bool,
}

impl Sleeper {
    /// Whoever polls on this thread with that waker.
    pub(crate) fn new(waker: &Waker) -> Sleeper {
        let is_ours = role::is_driver() || Blocked::is_by(waker);
        Sleeper { waker: waker.clone(), is_ours }
    }

    /// Whether it is by that waker that somebody waits.
    #[cfg(test)]
    pub(crate) fn is(&self, waker: &Waker) -> bool {
        self.waker.will_wake(waker)
    }

    pub(crate) fn wake(self) {
        if self.is_ours || !role::is_driver() {
            catch_panic(|| self.waker.wake());
        } else {
            offload::run_in_order(|| self.waker.wake());
        }
    }
}

/// Wakes everybody who listens. Listeners are polled through [`DeferredWake`].
pub(crate) fn all(event: &Event) {
    // An event that nobody listens to has taken no memory yet. The fence is the one that it would have made:
    // whoever begins to listen after this finds what has changed.
    fence(Ordering::SeqCst);
    if event.total_listeners() == 0 {
        return;
    }
    // An event wakes under a lock of its own, and a panic there would leave it broken for good.
    let outer = DEFERRED.try_with(|deferred| deferred.replace(Some(Vec::new())));
    event.notify(usize::MAX);
    let Ok(outer) = outer else { return };
    let woken = DEFERRED.try_with(|deferred| deferred.replace(outer)).ok().flatten();
    for sleeper in woken.into_iter().flatten() {
        sleeper.wake();
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
        let deferred = DEFERRED.try_with(|deferred| {
            deferred.borrow_mut().as_mut().map(|list| list.push(self.0.clone())).is_some()
        });
        if deferred != Ok(true) {
            self.0.clone().wake();
        }
    }
}

/// Sends what the servers have answered, on the thread that brings it, to a receiver that may be gone.
pub(crate) fn answer<T>(sender: oneshot::Sender<T>, value: T) {
    carried_on::with(|| send(sender, value));
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
