//! How it is known when the program closes a handle that it owns.
//!
//! # How the program's `zookeeper_close` is noticed in time
//! A freed handle must never be touched, and nobody tells us when the program frees it. But
//! `zookeeper_close` joins the handle's completion thread before it frees anything, and a thread
//! that ends runs the destructors of its thread-locals first. So a thread-local is left on the
//! completion thread (`callback_thread.rs`); its destructor shuts the gate, waiting for calls that are inside.
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
//! handle frees it on the completion thread itself. A program that does so must detach
//! from the handle first. Where the session is over, it need not: every watch is notified of that on the
//! completion thread, and the gate is shut there and then.

use std::ffi::c_int;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::callback_thread::{self, EndsWithThread};
use super::gate::Gate;
use super::handle::{HandleState, Sink};
use super::slots::{self, Receiver, Slot};
use super::watcher::{self, Event, EventKind};
use super::window::Window;
use super::{callback, contexts, sys};
use crate::error::Code;
use crate::sync::thread::{self, ThreadId};
use crate::znode::Stat;

/// A handle that is being closed refuses the second request, with the same code as one that has no memory for
/// it at that moment. The one does so again.
const ATTEMPTS: usize = 3;

/// An adopted handle, as its completion thread knows it.
pub(super) struct Adoption {
    pub(super) id: usize,
    pub(super) context: usize,
    pub(super) address: usize,
    pub(super) gate: Arc<Gate>,
    pub(super) window: Arc<Window>,
    pub(super) since: Instant,
    /// Whether the handle was connected at that time, and the session timeout that it had.
    pub(super) connected: bool,
    pub(super) session_timeout: Duration,
}

impl EndsWithThread for Adoption {
    /// The program closes the handle: nothing may touch it any more.
    fn end(&self) {
        // The handle is freed later. Its session may be over, and nobody here may have seen that yet.
        let ended = self.gate.state().filter(|state| state.is_final());
        if self.gate.shut(ended.or(Some(HandleState::GONE))).is_some() {
            self.window.clear();
            slots::abandon(self.id);
            self.tell_of_session();
            watcher::unregister(self.context, self.id);
        }
    }
}

impl Adoption {
    fn tell_of_session(&self) {
        watcher::tell(self.context, &Event { kind: EventKind::SESSION, path: String::new() });
    }

    /// Submits a harmless read. Its completion shows which thread is the completion thread.
    pub(super) fn ask(&self, sink: Sink<Stat>) -> c_int {
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
    pub(super) fn first_answer(self: &Arc<Self>, reply: Result<Stat, Code>) {
        if reply == Err(Code::CLOSING) {
            // Its completion thread is not known, and will not say that it ends.
            contexts::forget_context_of(self.address);
            return self.end();
        }
        let this: Weak<Self> = Arc::downgrade(self);
        let is_kept = callback_thread::ends_here(this, self.address);
        let thread = thread::current().id();
        let ask_again = |_| {
            let adoption = Arc::clone(self);
            self.ask(Box::new(move |reply| adoption.second_answer(thread, reply))) == 0
        };
        if !is_kept || !(0..ATTEMPTS).any(ask_again) {
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
