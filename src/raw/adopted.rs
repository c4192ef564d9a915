//! Working on a `zhandle_t` that the program owns, uses, and may close at any time.
//!
//! # How the program's `zookeeper_close` is noticed in time
//! A freed handle must never be touched, and nobody tells us when the program frees it. But
//! `zookeeper_close` joins the handle's completion thread before it frees anything, and a thread
//! that ends runs the destructors of its thread-locals first. So a thread-local is left on the
//! completion thread ([`ADOPTED_HERE`]); its destructor shuts the gate, waiting for calls that are inside.
//! The thread can't end before, so the handle can't be freed before, and no call comes after.
//!
//! The completion thread is known by its callbacks. One is not enough: what is still queued when a
//! handle is closed is called back on the closing thread. That thread never calls back what is
//! submitted from there, though. So two requests are sent, the second from the callback of the
//! first; when both are answered on one thread, it is the completion thread, and the gate opens.
//! Until then nothing else touches the handle, except from inside the two callbacks.
//!
//! The C client answers within the session timeout, if only with a lost connection. Where no answer
//! comes for twice that, its callbacks are held up by the program, or the handle was closed at the
//! wrong moment: the adoption ends ([`is_overdue`](super::Handle::is_overdue)).
//!
//! One way remains on which the thread ends too late: `zookeeper_close` *inside* a callback of the
//! handle frees it on the completion thread itself. A program that does so must let go of the
//! handle first. Where the session is over, it need not: every watch is notified of that on the
//! completion thread, and the gate is shut there and then.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_int;
use std::ptr::NonNull;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::gate::{Gate, Live};
use super::handle::{HandleState, Requests, Sink, Terms, Turn, WatchOn};
use super::slots::{self, Receiver, Slot};
use super::watcher::{self, Event, EventKind};
use super::window::Window;
use super::zhandle::Zhandle;
use super::{callback, sys};
use crate::error::Code;
use crate::panics::catch_panic;
use crate::sync::thread::{self, ThreadId};
use crate::sync::{Mutex, per_process, per_thread};
use crate::znode::Stat;

/// A handle of the program's that somebody has vouched for.
pub(crate) struct Adopted(Live);

impl Adopted {
    /// `None` for a null pointer.
    ///
    /// # Safety
    /// `zh` is a live handle of `libzookeeper_mt`, and stays so until [`Zhandle::adopt`] returned.
    /// It is closed inside its own callbacks only after [`close`](super::Handle::close) returned, or once its
    /// session is over.
    pub(crate) unsafe fn new(zh: *mut sys::zhandle_t) -> Option<Adopted> {
        Some(Adopted(Live(NonNull::new(zh)?)))
    }
}

/// What a busy machine may add to the time that an answer takes.
const LEEWAY: Duration = Duration::from_secs(2);

/// What a completion thread has to shut when it ends, and its handle's address.
pub(super) struct Kept(RefCell<Vec<Weak<Adoption>>>, Cell<usize>);

per_thread! {
    pub(super) static ADOPTED_HERE: Kept = Kept(RefCell::new(Vec::new()), Cell::new(0));
}

per_process! {
    /// The context of each handle that was adopted, by the handle's address, until its completion
    /// thread ends. One that is adopted again gets the same, so that its watches are known to the C
    /// client as those that it has already.
    static CONTEXTS: Mutex<HashMap<usize, usize>> = Mutex::default();
}

fn context_of(address: usize) -> usize {
    *CONTEXTS.lock().entry(address).or_insert_with(watcher::new_number)
}

fn forget_context_of(address: usize) {
    CONTEXTS.lock().remove(&address);
}

/// Whether the handle was adopted before a fork: the threads behind it are the parent's.
#[cfg(not(zklock_loom))]
fn is_inherited(address: usize) -> bool {
    // Should it have been locked by a thread that is not here, nobody knows.
    let knows = |contexts: &Mutex<HashMap<usize, usize>>| {
        contexts.try_lock().is_some_and(|contexts| contexts.contains_key(&address))
    };
    CONTEXTS.inherited().any(knows)
}

#[cfg(zklock_loom)]
fn is_inherited(_address: usize) -> bool {
    false
}

/// An adopted handle, as its completion thread knows it.
pub(super) struct Adoption {
    id: usize,
    context: usize,
    address: usize,
    gate: Arc<Gate>,
    window: Arc<Window>,
    since: Instant,
    /// Whether the handle was connected at that time, and the session timeout that it had.
    connected: bool,
    session_timeout: Duration,
}

impl Kept {
    pub(super) fn thread_ends(&self) {
        for adoption in self.0.take() {
            if let Some(adoption) = adoption.upgrade() {
                catch_panic(|| adoption.end());
            }
        }
        let address = self.1.take();
        if address != 0 {
            forget_context_of(address);
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.thread_ends();
    }
}

/// Whether this is the completion thread of an adopted handle.
pub(super) fn is_completion_thread() -> bool {
    let any = |kept: &Kept| kept.0.borrow().iter().any(|adoption| adoption.strong_count() > 0);
    ADOPTED_HERE.try_with(any).unwrap_or(false)
}

impl Adoption {
    /// The program closes the handle: nothing may touch it any more.
    fn end(&self) {
        if self.gate.shut(Some(HandleState::GONE)).is_some() {
            self.window.clear();
            slots::abandon(self.id);
            self.tell_of_session();
        }
    }

    fn tell_of_session(&self) {
        watcher::tell(self.context, &Event { kind: EventKind::SESSION, path: String::new() });
    }

    /// Submits a harmless read whose answer shows the completion thread.
    fn ask(&self, sink: Sink<Stat>) -> c_int {
        let token = slots::put(Slot {
            handle: self.id,
            deadline: None,
            receiver: Some(Receiver::Stat(sink)),
            memory: None,
            on_the_way: Some(self.window.enter(0)),
        });
        let rc = self.gate.with_opening(|zh| {
            let root = c"/".as_ptr();
            // SAFETY: the handle is live: either its owner is inside `adopt`, or this is one of its
            // callbacks; the path is static; the context is a number.
            unsafe { sys::zoo_aexists(zh, root, 0, Some(callback::stat), slots::context(token)) }
        });
        let rc = rc.unwrap_or(Code::INVALID_STATE.as_raw());
        if rc != 0 {
            drop(slots::take(token));
        }
        rc
    }

    /// The first answer: this is the completion thread, or the one that closes the handle.
    fn first_answer(self: &Arc<Self>, reply: Result<Stat, Code>) {
        if reply == Err(Code::CLOSING) {
            return self.end();
        }
        let kept = ADOPTED_HERE.try_with(|kept| {
            kept.1.set(self.address);
            let mut kept = kept.0.borrow_mut();
            kept.retain(|adoption| adoption.strong_count() > 0);
            kept.push(Arc::downgrade(self));
        });
        let thread = thread::current().id();
        let adoption = Arc::clone(self);
        let second: Sink<Stat> = Box::new(move |reply| adoption.second_answer(thread, reply));
        if kept.is_err() || self.ask(second) != 0 {
            self.end();
        }
    }

    fn second_answer(&self, first: ThreadId, reply: Result<Stat, Code>) {
        if reply == Err(Code::CLOSING) || thread::current().id() != first {
            return self.end();
        }
        self.gate.finish_opening();
        self.tell_of_session();
    }
}

impl Zhandle {
    /// Works on a handle of the program's from now on. `listener` hears of the handle's node
    /// events, and of its session events once [`watch_session_events`](super::Handle::watch_session_events) was answered.
    ///
    /// # Errors
    /// The C client's refusal: `INVALID_STATE` when the session is over.
    pub(crate) fn adopt(
        adopted: Adopted,
        listener: impl Fn(Event) + Send + Sync + 'static,
    ) -> Result<Zhandle, Code> {
        let zh = adopted.0.0.as_ptr();
        if is_inherited(zh.addr()) {
            return Err(Code::INVALID_STATE);
        }
        // SAFETY: whoever made `adopted` keeps the handle alive during this function.
        let state = HandleState(unsafe { sys::zoo_state(zh) });
        // SAFETY: as above.
        let millis = unsafe { sys::zoo_recv_timeout(zh) };
        let (id, address) = (watcher::new_number(), zh.addr());
        let context = context_of(address);
        watcher::register(context, id, Arc::new(listener));
        let gate = Arc::new(Gate::opening(adopted.0));
        let window = Window::new(Arc::clone(&gate), true);
        let adoption = Arc::new(Adoption {
            id,
            context,
            address,
            gate: Arc::clone(&gate),
            window: Arc::clone(&window),
            since: Instant::now(),
            connected: state == HandleState::CONNECTED,
            session_timeout: Duration::from_millis(u64::try_from(millis).unwrap_or(0)),
        });
        // Owns the adoption from here on: dropping it on an error gives it back.
        let handle = Zhandle::adopted(id, context, gate, window, Arc::clone(&adoption));
        let next = Arc::clone(&adoption);
        match adoption.ask(Box::new(move |reply| next.first_answer(reply))) {
            0 => Ok(handle),
            rc => {
                forget_context_of(address);
                Err(Code::from_raw(rc))
            }
        }
    }

    pub(super) fn has_waited_too_long(&self) -> bool {
        self.adoption().is_some_and(|adoption| {
            adoption.gate.is_opening()
                && adoption.since.elapsed() > 2 * adoption.session_timeout + LEEWAY
        })
    }

    pub(super) fn answers_can_come(&self) -> bool {
        if callback::inside_callback() {
            return false;
        }
        self.adoption().filter(|adoption| adoption.connected).is_none_or(|adoption| {
            let timeout = (adoption.session_timeout / 4).min(LEEWAY);
            adoption.gate.wait_for_opening(Instant::now() + timeout)
        })
    }

    pub(super) fn watch_root(&self, unwatched: Box<dyn FnOnce() + Send>) {
        let sink: Sink<Stat> = Box::new(move |reply| {
            if reply.is_err_and(|code| code != Code::NO_NODE) {
                unwatched();
            }
        });
        let terms = Terms { deadline: None, turn: Turn::Ahead };
        self.exists(terms, "/", WatchOn::Yes, sink);
    }
}
