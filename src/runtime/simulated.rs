//! What a thread of the library's own tests has in the place of this machine, when it simulates one.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use futures_lite::future::Boxed;

use super::role::{self, Role};
use super::timer::Timers;
use crate::raw::{Config, Event, Handle};

pub(crate) type Listener = Box<dyn Fn(Event) + Send + Sync>;

/// What a client is simulated on.
pub(crate) trait Machine {
    /// How much time has passed on it.
    fn clock(&self) -> Duration;
    fn timers(&self) -> &RefCell<Timers>;
    fn drive(&self, session: Boxed<()>);
    fn open(&self, config: &Config, listener: Listener) -> Box<dyn Handle>;
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
    struct Back(Option<Rc<dyn Machine>>);
    impl Drop for Back {
        fn drop(&mut self) {
            let _ = CURRENT.try_with(|current| current.replace(self.0.take()));
        }
    }
    // Nothing here may wait for an end that is brought about here.
    role::take(Role::Helper);
    let _back = Back(CURRENT.with(|current| current.replace(Some(Rc::clone(machine)))));
    body()
}

pub(crate) fn current() -> Option<Rc<dyn Machine>> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}
