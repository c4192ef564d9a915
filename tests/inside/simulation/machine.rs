//! What a simulated client lives on: its own clock, its timers, and handles of the simulated world.
//!
//! Clocks are the clients' own, and pass at the schedule's pace: no two processes have to be equally fast,
//! and nothing in a session depends on another client's clock.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use futures_lite::future::Boxed;

use super::handle::{Shared, SimulatedHandle};
use super::server::SESSION_TIMEOUT;
use crate::client::handles::{self, Handles, Listener};
use crate::raw::{Config, Handle};
use crate::runtime::Timers;
use crate::runtime::simulated::{self, Machine};

pub(super) struct ClientMachine {
    world: Shared,
    client: usize,
    clock: Cell<Duration>,
    timers: RefCell<Timers>,
    /// What drives its session, until the schedule takes it over.
    driven: RefCell<Option<Boxed<()>>>,
}

impl ClientMachine {
    pub(super) fn new(world: &Shared, client: usize) -> Rc<ClientMachine> {
        Rc::new(ClientMachine {
            world: Arc::clone(world),
            client,
            clock: Cell::default(),
            timers: RefCell::default(),
            driven: RefCell::default(),
        })
    }

    /// Runs `body` as its code.
    pub(super) fn run<T>(self: &Rc<Self>, body: impl FnOnce() -> T) -> T {
        let (machine, handles) = (Rc::clone(self) as Rc<dyn Machine>, Rc::clone(self) as _);
        handles::of(&handles, || simulated::on(&machine, body))
    }

    pub(super) fn take_driven(&self) -> Option<Boxed<()>> {
        self.driven.take()
    }

    /// Its clock shows that from now on; nobody has been woken for it yet.
    pub(super) fn set_clock(&self, clock: Duration) {
        self.clock.set(clock);
    }

    /// To when the clock passes, if anybody waits for it: no further at once than what drives a session
    /// sleeps, whose own timer is not there while it has been woken.
    pub(super) fn next(&self) -> Option<Duration> {
        let first = self.timers.borrow().first().map(simulated::clock_of);
        first.map(|first| first.min(self.clock.get() + SESSION_TIMEOUT / 20))
    }

    /// When the next is due of those for whom somebody waits by that waker, or by others than that.
    pub(super) fn next_by(&self, waker: &Waker, is_that: bool) -> Option<Duration> {
        self.timers.borrow().next_by(waker, is_that).map(simulated::clock_of)
    }

    pub(super) fn wake_due(&self) {
        self.timers.borrow_mut().wake_due(simulated::time_of(self.clock.get()));
    }
}

impl Machine for ClientMachine {
    fn clock(&self) -> Duration {
        self.clock.get()
    }

    fn timers(&self) -> &RefCell<Timers> {
        &self.timers
    }

    fn drive(&self, session: Boxed<()>) {
        self.driven.replace(Some(session));
    }
}

impl Handles for ClientMachine {
    fn open(&self, config: &Config, listener: Listener) -> Box<dyn Handle> {
        Box::new(SimulatedHandle::open(&self.world, self.client, config, listener))
    }
}
