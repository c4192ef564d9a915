//! Limits how many requests of a handle are in flight, and queues the others.
//!
//! The C client and the server answer in order, so each request waits for all earlier ones. A heartbeat goes ahead of the
//! queue, and few enough requests are in flight that it is answered in time. The queue keeps the order of submission. Each
//! answer sends the next request.

use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::time::Instant;

use super::gate::Gate;
use super::handle::{HandleState, Turn};
use super::on_the_way::{OnTheWay, Traffic};
use super::slots::{self, Receiver, Slot};
use super::sys;
use crate::error::Code;
use crate::sync::Mutex;

/// A request as the C client takes it.
pub(super) trait Request {
    fn send(self, zh: *mut sys::zhandle_t, context: *const c_void) -> c_int;

    /// The same for later, with copies of all that it refers to.
    fn keep(self) -> Call;
}

pub(super) type Call = Box<dyn FnOnce(*mut sys::zhandle_t, *const c_void) -> c_int + Send>;

impl<F> Request for F
where
    F: FnOnce(*mut sys::zhandle_t, *const c_void) -> c_int + Send + 'static,
{
    fn send(self, zh: *mut sys::zhandle_t, context: *const c_void) -> c_int {
        self(zh, context)
    }

    fn keep(self) -> Call {
        Box::new(self)
    }
}

/// The most requests in flight. More than 65,536 unread wake-ups in the C client's pipe would break the connection. But
/// with far fewer, the last request already waits too long.
const REQUESTS: usize = if cfg!(zklock_loom) { 1 } else { 512 };
/// The most bytes in flight, of requests and expected replies. A single request may be larger.
const BYTES: usize = 1 << 20;
/// How many may wait, and how many bytes of them.
const WAITING: usize = 16_000;
const WAITING_BYTES: usize = 64 << 20;
/// About how many bytes a request and its reply take beside path and data.
const OVERHEAD: usize = 100;

pub(super) struct Window {
    gate: Arc<Gate>,
    /// Whether the program owns the handle.
    is_adopted: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sent: usize,
    sent_bytes: usize,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    /// Whether a thread is sending those that wait: none may be sent beside it, or the order is lost.
    sending: bool,
    /// How large replies have been lately.
    reply: usize,
    /// Of requests that may not have been answered, in the order in which they were submitted: all of a handle
    /// have the same time.
    deadlines: VecDeque<(Instant, usize)>,
}

struct Waiting {
    token: usize,
    bytes: usize,
    call: Call,
}

impl State {
    fn has_room_for(&self, bytes: usize) -> bool {
        let replies = self.sent.saturating_mul(self.reply);
        let load = self.sent_bytes.saturating_add(replies).saturating_add(bytes);
        self.sent == 0 || self.sent < REQUESTS && load <= BYTES
    }

    fn note(&mut self, deadline: Option<Instant>, token: usize) {
        let Some(deadline) = deadline else { return };
        // Nearly all are answered in their order. Two go for each that comes, so none pile up.
        for _ in 0..2 {
            self.forget_first_if_answered();
        }
        self.deadlines.push_back((deadline, token));
    }

    fn forget_first_if_answered(&mut self) -> bool {
        let is_answered = self.deadlines.front().is_some_and(|(_, token)| !slots::waits(*token));
        is_answered && self.deadlines.pop_front().is_some()
    }

    fn send(&mut self, window: &Arc<Window>, bytes: usize) -> OnTheWay {
        self.sent += 1;
        self.sent_bytes += bytes;
        OnTheWay::new(Arc::clone(window) as _, bytes)
    }
}

impl Traffic for Window {
    fn over(&self, bytes: usize) {
        let mut state = self.state.lock();
        state.sent -= 1;
        state.sent_bytes -= bytes;
    }

    /// One was answered, by a reply of so many bytes: sends those that there is room for now.
    fn answered(self: Arc<Self>, reply: usize) {
        {
            let mut state = self.state.lock();
            // Forgets large replies slowly: the next ones may be as large.
            state.reply = reply.max(state.reply - state.reply.div_ceil(16));
            if state.sending || state.waiting.is_empty() {
                return;
            }
            state.sending = true;
        }
        while let Some((token, call)) = self.next() {
            self.send(token, call);
        }
    }
}

impl Window {
    pub(super) fn new(gate: Arc<Gate>, is_adopted: bool) -> Arc<Window> {
        Arc::new(Window { gate, is_adopted, state: Mutex::default() })
    }

    /// How many requests are in flight or wait.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let state = self.state.lock();
        state.sent + state.waiting.len()
    }

    /// Whether a request has not been answered by its deadline. Costs nothing for those that were.
    pub(super) fn is_any_late(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        while state.forget_first_if_answered() {}
        state.deadlines.front().is_some_and(|(deadline, _)| *deadline <= now)
    }

    /// Takes the receivers of those that have not been answered by their deadline.
    pub(super) fn take_late(&self, now: Instant) -> Vec<Receiver> {
        let mut state = self.state.lock();
        let late = state.deadlines.partition_point(|(deadline, _)| *deadline <= now);
        state.deadlines.drain(..late).filter_map(|(_, token)| slots::take_receiver(token)).collect()
    }

    /// Counts a request that is sent now, whatever waits.
    pub(super) fn enter(self: &Arc<Self>, bytes: usize) -> OnTheWay {
        self.state.lock().send(self, bytes)
    }

    /// Sends a request of so many bytes of path and data, or puts it behind those that wait. Its slot
    /// is answered exactly once.
    pub(super) fn submit(
        self: &Arc<Self>,
        turn: Turn,
        mut slot: Slot,
        bytes: usize,
        request: impl Request,
    ) {
        let (bytes, deadline) = (bytes + OVERHEAD, slot.deadline);
        let mut state = self.state.lock();
        let is_free = !state.sending && state.waiting.is_empty() && state.has_room_for(bytes);
        if turn == Turn::Ahead || is_free {
            slot.on_the_way = Some(state.send(self, bytes));
            let token = slots::put(slot);
            state.note(deadline, token);
            drop(state);
            if !self.send(token, |zh, context| request.send(zh, context)) {
                // One that came meanwhile may wait for its answer.
                Arc::clone(self).answered(0);
            }
            return;
        }
        let is_full = state.waiting.len() >= WAITING || state.waiting_bytes + bytes > WAITING_BYTES;
        if is_full && turn == Turn::InOrder {
            drop(state);
            return slot.fail(Code::THROTTLED_OP);
        }
        let token = slots::put(slot);
        state.note(deadline, token);
        state.waiting_bytes += bytes;
        state.waiting.push_back(Waiting { token, bytes, call: request.keep() });
        drop(state);
        // Whoever has shut the gate answers what it finds in the table, and may have looked already.
        if !self.gate.is_open() {
            slots::fail_waiting(token, Code::INVALID_STATE);
            self.clear();
        }
    }

    /// The gate is shut: what waits is not sent any more. It is answered where its slot is.
    pub(super) fn clear(&self) {
        let waiting = {
            let mut state = self.state.lock();
            state.waiting_bytes = 0;
            std::mem::take(&mut state.waiting)
        };
        drop(waiting);
    }

    /// The next one to send; without one, sending is over.
    fn next(self: &Arc<Self>) -> Option<(usize, Call)> {
        let mut state = self.state.lock();
        // What still waits when the gate is shut is answered by whoever has shut it.
        while self.gate.is_open()
            && state.waiting.front().is_some_and(|next| state.has_room_for(next.bytes))
        {
            let Waiting { token, bytes, call } = state.waiting.pop_front()?;
            state.waiting_bytes -= bytes;
            // Nobody waits any more for one that was answered by its deadline: it was never sent.
            let on_the_way = state.send(self, bytes);
            let Some(unsent) = slots::set_on_the_way(token, on_the_way) else {
                return Some((token, call));
            };
            // Its drop takes the lock again.
            drop(state);
            drop(unsent);
            state = self.state.lock();
        }
        state.sending = false;
        None
    }

    /// Sends one that is not counted.
    pub(super) fn send_uncounted(
        &self,
        slot: Slot,
        call: impl FnOnce(*mut sys::zhandle_t, *const c_void) -> c_int,
    ) {
        let deadline = slot.deadline;
        let token = slots::put(slot);
        self.state.lock().note(deadline, token);
        self.send(token, call);
    }

    /// Gives whether the C client has taken the request.
    fn send(
        &self,
        token: usize,
        call: impl FnOnce(*mut sys::zhandle_t, *const c_void) -> c_int,
    ) -> bool {
        let code = match self.gate.with(|zh| call(zh, slots::context(token))) {
            Some(0) => return true,
            Some(rc) => Code::from_raw(rc),
            None => Code::INVALID_STATE,
        };
        // Not sent, so the answer is ours to give.
        match code {
            Code::MARSHALLING_ERROR => {
                // Its words for a handle that the program is closing at this moment.
                let closing = self.is_adopted.then_some(Code::INVALID_STATE);
                slots::fail_unsent(token, closing.unwrap_or(code));
            }
            code => slots::fail(token, self.refusal(code)),
        }
        false
    }

    /// Why the C client takes nothing more: once the session is over it says no more than that its state
    /// is invalid, some time before it has told anybody what has ended.
    fn refusal(&self, code: Code) -> Code {
        match (code, self.gate.state()) {
            (Code::INVALID_STATE, Some(HandleState::EXPIRED)) => Code::SESSION_EXPIRED,
            (Code::INVALID_STATE, Some(HandleState::AUTH_FAILED)) => Code::AUTH_FAILED,
            _ => code,
        }
    }
}
