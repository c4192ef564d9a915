//! The way to a `zhandle_t`: open while calls may go through, shut for ever afterwards.

use std::ptr::NonNull;
use std::time::Instant;

use event_listener::{Event, Listener as _};

use super::handle::HandleState;
use super::sys;
use crate::process::Process;
use crate::sync::RwLock;

/// A pointer that is good for as long as the gate that holds it is not shut.
pub(super) struct Live(pub(super) NonNull<sys::zhandle_t>);

// SAFETY: the C client's functions may be called from any thread; the gate keeps them from running
// beside or after `zookeeper_close`.
unsafe impl Send for Live {}
// SAFETY: as above: the C client locks its own data.
unsafe impl Sync for Live {}

enum Door {
    /// An adopted handle that is not known well enough yet: see `adopted.rs`.
    Opening(Live),
    Open(Live),
    /// With the state that was the reason, where there was one.
    Shut(Option<HandleState>),
}

pub(super) struct Gate {
    /// Held shared around every call into the C client, exclusively to take the pointer out.
    door: RwLock<Door>,
    /// Wakes the threads that wait for the opening.
    moved: Event,
    /// The process that owns the handle. In a child of it the gate is shut, because handle and connection
    /// are its parent's. The child does not look at the door: a thread that the child does not have may
    /// have been moving it.
    process: Process,
}

impl Gate {
    pub(super) fn open(live: Live) -> Gate {
        Gate::new(Door::Open(live))
    }

    pub(super) fn opening(live: Live) -> Gate {
        Gate::new(Door::Opening(live))
    }

    fn new(door: Door) -> Gate {
        Gate { door: RwLock::new(door), moved: Event::new(), process: Process::this() }
    }

    /// Whether this is a child of the process that has the handle.
    pub(super) fn is_inherited(&self) -> bool {
        !self.process.is_this()
    }

    /// Lets calls through from now on, unless the gate was shut meanwhile.
    pub(super) fn finish_opening(&self) {
        {
            let mut door = self.door.write();
            let before = std::mem::replace(&mut *door, Door::Shut(None));
            *door = match before {
                Door::Opening(live) => Door::Open(live),
                other => other,
            };
        }
        self.moved.notify(usize::MAX);
    }

    pub(super) fn is_opening(&self) -> bool {
        !self.is_inherited() && matches!(*self.door.read_recursive(), Door::Opening(_))
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(*self.door.read_recursive(), Door::Open(_))
    }

    /// Waits until the gate is open or shut, but no longer than until `deadline`: `false` then.
    pub(super) fn wait_for_opening(&self, deadline: Instant) -> bool {
        if self.is_inherited() {
            return true;
        }
        loop {
            let moved = self.moved.listen();
            if !self.is_opening() {
                return true;
            }
            if moved.wait_deadline(deadline).is_none() {
                return !self.is_opening();
            }
        }
    }

    /// Runs `call` with the live pointer, unless the gate is not open yet or no more.
    pub(super) fn with<T>(&self, call: impl FnOnce(*mut sys::zhandle_t) -> T) -> Option<T> {
        if self.is_inherited() {
            return None;
        }
        // Never behind a closer that waits: it waits for calls that may themselves wait for a lock
        // of the C client, which a callback that comes through here may hold.
        match &*self.door.read_recursive() {
            Door::Open(live) => Some(call(live.0.as_ptr())),
            Door::Opening(_) | Door::Shut(_) => None,
        }
    }

    /// As [`with`](Gate::with), for the first calls on an adopted handle.
    pub(super) fn with_opening<T>(&self, call: impl FnOnce(*mut sys::zhandle_t) -> T) -> Option<T> {
        if self.is_inherited() {
            return None;
        }
        match &*self.door.read_recursive() {
            Door::Opening(live) => Some(call(live.0.as_ptr())),
            Door::Open(_) | Door::Shut(_) => None,
        }
    }

    /// The C client's state; why the gate is shut, if it is.
    pub(super) fn state(&self) -> Option<HandleState> {
        if self.is_inherited() {
            return Some(HandleState::GONE);
        }
        match &*self.door.read_recursive() {
            // SAFETY: the gate is held, so the handle is open during the call, which only reads.
            Door::Open(live) => Some(HandleState(unsafe { sys::zoo_state(live.0.as_ptr()) })),
            Door::Opening(_) => Some(HandleState::NOT_CONNECTED),
            Door::Shut(why) => *why,
        }
    }

    /// Waits for the calls that are inside, and lets none in from then on. Gives the pointer the
    /// first time.
    pub(super) fn shut(&self, why: Option<HandleState>) -> Option<Live> {
        if self.is_inherited() {
            return None;
        }
        let before = {
            let mut door = self.door.write();
            if matches!(*door, Door::Shut(_)) {
                return None;
            }
            std::mem::replace(&mut *door, Door::Shut(why))
        };
        self.moved.notify(usize::MAX);
        match before {
            Door::Opening(live) | Door::Open(live) => Some(live),
            Door::Shut(_) => None,
        }
    }
}
