//! What a thread of the library's own tests has in the place of this machine, when it simulates one.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::LazyLock;
use std::thread::LocalKey;
use std::time::{Duration, Instant};

use futures_lite::future::Boxed;

use super::offload::{Role, take_role};
use super::timer::Timers;

/// What a client is simulated on.
pub(crate) trait Machine {
    /// How much time has passed on it.
    fn clock(&self) -> Duration;
    fn timers(&self) -> &RefCell<Timers>;
    fn drive(&self, session: Boxed<()>);
}

static BEGINNING: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The time when a simulated clock shows that.
pub(crate) fn time_of(clock: Duration) -> Instant {
    *BEGINNING + clock
}

/// What a simulated clock shows at that time.
pub(crate) fn clock_of(time: Instant) -> Duration {
    time - *BEGINNING
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<dyn Machine>>> = const { RefCell::new(None) };
}

/// Runs `body` as code on that machine.
pub(crate) fn on<T>(machine: &Rc<dyn Machine>, body: impl FnOnce() -> T) -> T {
    // Nothing here may wait for an end that is brought about here.
    take_role(Role::Worker);
    within(&CURRENT, machine, body)
}

/// Runs `body` while that is the thread's.
pub(crate) fn within<M: ?Sized, T>(
    current: &'static LocalKey<RefCell<Option<Rc<M>>>>,
    machine: &Rc<M>,
    body: impl FnOnce() -> T,
) -> T {
    struct Back<M: ?Sized + 'static>(&'static LocalKey<RefCell<Option<Rc<M>>>>, Option<Rc<M>>);
    impl<M: ?Sized> Drop for Back<M> {
        fn drop(&mut self) {
            let before = self.1.take();
            let _ = self.0.try_with(|current| current.replace(before));
        }
    }
    let before = current.with(|current| current.replace(Some(Rc::clone(machine))));
    let _back = Back(current, before);
    body()
}

pub(crate) fn current() -> Option<Rc<dyn Machine>> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}
