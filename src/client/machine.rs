//! What sessions live on: a clock, threads, and the C client. In the library's own tests a thread can
//! have a simulated machine instead: then this is all that is not production code.

use std::future::Future;
use std::io;
use std::time::Instant;

use super::{driver, offload};
use crate::raw::{self, Event, Handle, Zhandle};

#[cfg(test)]
pub(super) use simulated::current as simulated;
#[cfg(test)]
pub(crate) use simulated::{Listener, Machine, clock_of, on, time_of};

/// The time, by the clock that timers and deadlines go by.
pub(crate) fn now() -> Instant {
    #[cfg(test)]
    if let Some(machine) = simulated() {
        return time_of(machine.clock());
    }
    Instant::now()
}

/// Makes sure that there is something to drive sessions.
///
/// # Errors
/// When there is no thread to be had.
pub(super) fn start() -> io::Result<()> {
    #[cfg(test)]
    if simulated().is_some() {
        return Ok(());
    }
    driver::start()
}

/// Drives a session to its end.
pub(super) fn drive(session: impl Future<Output = ()> + Send + 'static) {
    #[cfg(test)]
    if let Some(machine) = simulated() {
        return machine.drive(Box::pin(session));
    }
    driver::spawn(session);
}

/// Runs what may block, on a thread of its own.
pub(super) fn run(job: impl FnOnce() + Send + 'static) {
    #[cfg(test)]
    if simulated().is_some() {
        return job();
    }
    offload::run(job);
}

/// As [`run`]; gives the result of `job`, or `None` if it has panicked. Where nobody waits for the
/// result any more, it is dropped on that thread.
pub(super) async fn result<T: Send + 'static>(
    job: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (send, result) = oneshot::async_channel();
    run(move || drop(send.send(job())));
    result.await.ok()
}

/// Whether hosts can be asked how they are.
pub(super) fn has_a_network() -> bool {
    #[cfg(test)]
    return simulated().is_none();
    #[cfg(not(test))]
    true
}

/// Opens a handle of the C client's.
///
/// # Errors
/// As [`Zhandle::open`].
pub(super) fn open(
    config: &raw::Config,
    listener: impl Fn(Event) + Send + Sync + 'static,
) -> io::Result<Box<dyn Handle>> {
    #[cfg(test)]
    if let Some(machine) = simulated() {
        return Ok(machine.open(config, Box::new(listener)));
    }
    Ok(Box::new(Zhandle::open(config, listener)?))
}

#[cfg(test)]
mod simulated {
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::sync::LazyLock;
    use std::time::{Duration, Instant};

    use futures_lite::future::Boxed;

    use crate::client::role::{self, Role};
    use crate::client::timer::Timers;
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

    pub(in crate::client) fn current() -> Option<Rc<dyn Machine>> {
        CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
    }
}
