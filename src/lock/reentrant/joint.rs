//! One owner's claim, and all that share it: guards, and acquires in flight.
//!
//! Each of them has an `Arc` of the [`Joint`]. The last one to be dropped cancels an acquire in flight, and releases a
//! claim that is held. Every waiter drives the acquire for all.

use std::collections::HashMap;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use event_listener::Event;
use parking_lot::Mutex;

use super::owner::Owner;
use crate::lock::contender::Contender;
use crate::lock::error::LockError;
use crate::lock::guard::Guard;
use crate::lock::shared_tenure::{SharedTenure, Sharer};
use crate::lock::store::{StoredLock, Tried};
use crate::lock::tenure::Tenure;
use crate::runtime::{Late, Pending, wake};

/// The claims of a re-entrant lock, by owner.
#[derive(Default)]
pub(crate) struct Joints {
    by_owner: Mutex<HashMap<Owner, Weak<Joint>>>,
}

pub(super) struct Joint {
    state: Mutex<State>,
    pub(super) is_try: bool,
    pub(super) late: Option<Arc<dyn Late<LockError>>>,
    everybody: Arc<Everybody>,
    place: Place,
}

enum State {
    /// Empty while somebody polls it.
    UnderWay(Option<Pending<Tried<Guard>, LockError>>),
    Holds(Guard),
    Taken(Option<Contender>),
    Failed(LockError),
}

/// Where it can be found as long as anybody has a part.
#[derive(Default)]
struct Place(Option<(Arc<Joints>, Owner)>);

#[derive(Default)]
struct Everybody {
    event: Event,
    is_woken: AtomicBool,
}

impl Wake for Everybody {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        wake::all(&self.event);
    }
}

impl Joints {
    /// A part in the owner's claim; where there is none, in one that `begin` makes.
    pub(super) fn join(
        self: &Arc<Self>,
        owner: &Owner,
        begin: impl FnOnce() -> Joint,
    ) -> Arc<Joint> {
        let present = self.by_owner.lock().get(owner).and_then(Weak::upgrade);
        if let Some(joint) = present.filter(|joint| !joint.is_over()) {
            return joint;
        }
        // Outside the lock, as it may wake somebody.
        let joint = begin();
        // Dropped after the map is let go of: its last part may be this one.
        let faster;
        let mut by_owner = self.by_owner.lock();
        faster = by_owner.get(owner).and_then(Weak::upgrade);
        if let Some(faster) = faster.as_ref().filter(|joint| !joint.is_over()) {
            // What was begun here ends.
            return Arc::clone(faster);
        }
        let place = Place(Some((Arc::clone(self), owner.clone())));
        let joint = Arc::new(Joint { place, ..joint });
        by_owner.insert(owner.clone(), Arc::downgrade(&joint));
        joint
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some((joints, owner)) = self.0.take() {
            let mut by_owner = joints.by_owner.lock();
            // Another may have come in its place.
            if by_owner.get(&owner).is_some_and(|joint| joint.strong_count() == 0) {
                by_owner.remove(&owner);
            }
        }
    }
}

impl Joint {
    pub(super) fn acquire(stored: &Arc<dyn StoredLock>) -> Joint {
        let acquiring = Arc::clone(stored).acquire();
        let late = acquiring.late();
        Joint::new(false, late, acquiring.map(|acquired| acquired.map(Ok)))
    }

    pub(super) fn try_acquire(stored: &Arc<dyn StoredLock>) -> Joint {
        Joint::new(true, None, Arc::clone(stored).try_acquire())
    }

    fn new(
        is_try: bool,
        late: Option<Arc<dyn Late<LockError>>>,
        under_way: Pending<Tried<Guard>, LockError>,
    ) -> Joint {
        let state = Mutex::new(State::UnderWay(Some(under_way)));
        Joint { state, is_try, late, everybody: Arc::default(), place: Place::default() }
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.is_try && matches!(*self.state.lock(), State::UnderWay(_))
    }

    fn is_over(&self) -> bool {
        matches!(*self.state.lock(), State::Taken(_) | State::Failed(_))
    }

    fn tenure(&self) -> Option<Arc<dyn Tenure>> {
        match &*self.state.lock() {
            State::Holds(guard) => Some(Arc::clone(guard.tenure())),
            _ => None,
        }
    }

    /// Waits for what becomes of it. A claim that is held is looked at: it may be lost.
    pub(super) async fn part(
        self: Arc<Self>,
        path: &str,
        asked: Instant,
    ) -> Result<Tried<Guard>, LockError> {
        loop {
            let listener = self.everybody.event.listen();
            if self.advance() {
                break;
            }
            wake::DeferredWake(listener).await;
        }
        // Outside the lock, as it may wake somebody.
        if let Some(reason) = self.tenure().and_then(|tenure| tenure.ended()) {
            return Err(LockError::not_held(path, reason));
        }
        let state = self.state.lock();
        match &*state {
            State::Holds(guard) => {
                let (guard, tenure) = SharedTenure::beside(guard, asked);
                drop(state);
                tenure.give(self);
                Ok(Ok(guard))
            }
            State::Taken(ahead) => Ok(Err(ahead.clone())),
            State::Failed(error) => Err(error.clone()),
            State::UnderWay(_) => unreachable!("what has ended does not begin again"),
        }
    }

    /// Goes on with what is in flight, unless somebody else does. Says whether it has ended.
    fn advance(&self) -> bool {
        let mut state = self.state.lock();
        let State::UnderWay(place) = &mut *state else { return true };
        // Somebody else polls it.
        let Some(mut under_way) = place.take() else { return false };
        // It may run code of others.
        drop(state);
        let waker = Waker::from(Arc::clone(&self.everybody));
        self.everybody.is_woken.store(false, Ordering::Release);
        let next = match Pin::new(&mut under_way).poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => State::UnderWay(Some(under_way)),
            Poll::Ready(Ok(Ok(guard))) => State::Holds(guard),
            Poll::Ready(Ok(Err(ahead))) => State::Taken(ahead),
            Poll::Ready(Err(error)) => State::Failed(error),
        };
        let has_ended = !matches!(next, State::UnderWay(_));
        *self.state.lock() = next;
        // What has woken it meanwhile has found it being polled, and who polls may give up here.
        if has_ended || self.everybody.is_woken.load(Ordering::Acquire) {
            wake::all(&self.everybody.event);
        }
        has_ended
    }
}

impl Sharer for Arc<Joint> {
    fn holds(&self) -> usize {
        Arc::strong_count(self)
    }

    fn leave(self) -> Option<Guard> {
        let Joint { state, place, .. } = Arc::into_inner(self)?;
        drop(place);
        match state.into_inner() {
            State::Holds(guard) => Some(guard),
            State::UnderWay(_) | State::Taken(_) | State::Failed(_) => None,
        }
    }
}

#[cfg(all(test, not(zklock_loom)))]
mod tests {
    use std::sync::OnceLock;
    use std::task::Poll;
    use std::time::Duration;

    use event_listener::{EventListener, Listener as _};

    use super::*;
    use crate::lock::op::LockOp;

    #[test]
    fn a_wake_while_somebody_polls_reaches_who_has_looked_meanwhile() {
        let place: Arc<OnceLock<Arc<Joint>>> = Arc::default();
        let other: Arc<Mutex<Option<EventListener>>> = Arc::default();
        let (polled, looks) = (Arc::clone(&place), Arc::clone(&other));
        let under_way = std::future::poll_fn(move |cx| {
            if let Some(joint) = polled.get() {
                cx.waker().wake_by_ref();
                *looks.lock() = Some(joint.everybody.event.listen());
                assert!(!joint.advance(), "it is being polled");
            }
            Poll::Pending
        });
        let under_way = LockOp::Acquire.run("/joint", under_way);
        let joint = Arc::new(Joint::new(false, None, under_way));
        assert!(place.set(Arc::clone(&joint)).is_ok());
        // Who polls gives up after that.
        assert!(!joint.advance());
        let other = other.lock().take().expect("it was polled");
        assert!(other.wait_timeout(Duration::from_secs(60)).is_some(), "nobody would poll again");
    }
}
