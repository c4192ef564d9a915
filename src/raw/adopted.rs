//! Working on a `zhandle_t` that the program owns, uses, and may close at any time (`adoption.rs`).

use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::adoption::Adoption;
use super::gate::{Gate, Live};
use super::handle::{HandleState, Requests, Sink, Terms, Turn, WatchOn};
use super::watcher::{self, Event};
use super::window::Window;
use super::zhandle::Zhandle;
use super::{callback_thread, contexts, sys};
use crate::error::Code;
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

/// The delay that a busy machine may add to an answer.
const LEEWAY: Duration = Duration::from_secs(2);

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
        if contexts::is_inherited(zh.addr()) {
            return Err(Code::INVALID_STATE);
        }
        // SAFETY: whoever made `adopted` keeps the handle alive during this function.
        let state = HandleState(unsafe { sys::zoo_state(zh) });
        // SAFETY: as above.
        let millis = unsafe { sys::zoo_recv_timeout(zh) };
        let (id, address) = (contexts::new_number(), zh.addr());
        let context = contexts::context_of(address);
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
                contexts::forget_context_of(address);
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
        if callback_thread::inside_callback() {
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
