//! Owns one `zhandle_t`, or adopts one (`adopted.rs`).

use std::ffi::c_int;
use std::io;
use std::net::SocketAddr;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::adoption::Adoption;
use super::gate::{Gate, Live};
use super::handle::{Config, Handle, HandleState, Terms};
use super::slots::{Receiver, Slot};
use super::watcher::{self, Event};
use super::window::{Request, Window};
use super::{callback_thread, contexts, convert, reserve, secure, slots, sys};
use crate::error::Code;
use crate::logging::log;
use crate::panics::catch_panic;
use crate::session_key::SessionKey;
use crate::sync::{self, per_process};

/// More addresses than any list of hosts has.
const MAX_ADDRESSES: usize = 4_096;

/// A `zhandle_t`.
pub(crate) struct Zhandle {
    /// Names the handle in the slot table and among those that listen.
    id: usize,
    /// Names the C client's handle to its watcher.
    context: usize,
    gate: Arc<Gate>,
    window: Arc<Window>,
    /// The state that an adopted handle's completion thread keeps; `None` for a handle of our own.
    adoption: Option<Arc<Adoption>>,
}

impl Zhandle {
    /// Starts to connect. Resolves host names, so it can block for as long as DNS does.
    ///
    /// `listener` runs on the completion thread and must not block.
    ///
    /// # Errors
    /// The resource that the C client lacks (see [`scarcity`](crate::scarcity)), or why it rejects the hosts.
    pub(crate) fn open(
        config: &Config,
        listener: impl Fn(Event) + Send + Sync + 'static,
    ) -> io::Result<Zhandle> {
        let invalid = |_| io::Error::from(io::ErrorKind::InvalidInput);
        let hosts = convert::c_string(&config.hosts).map_err(invalid)?;
        let timeout = c_int::try_from(config.session_timeout.as_millis())
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let client_id = config.session.map(|key| sys::clientid_t {
            client_id: key.id(),
            passwd: key.password().map(|byte| byte as std::ffi::c_char),
        });
        let client_id = client_id.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        if !cfg!(zklock_loom) {
            reserve::reserve()?;
        }
        let id = contexts::new_number();
        watcher::register(id, id, Arc::new(listener));
        let order = config.in_order.then(InOrder::begin);
        let plain = secure::Plain { hosts: hosts.as_ptr(), timeout, client_id, id };
        // SAFETY: `hosts` and `client_id` outlive the call, which copies them.
        let zh = unsafe { secure::open(&plain, config) };
        let error = io::Error::last_os_error();
        drop(order);
        let zh = zh.and_then(|zh| NonNull::new(zh).ok_or(error)).inspect_err(|_| {
            watcher::unregister(id, id);
            secure::closed(id);
        })?;
        // Without this the C client resolves its hosts again on every turn of its loop. While it
        // is disconnected it still does, so a server that moved is found.
        //
        // SAFETY: `zh` is a live handle that nobody else knows yet.
        unsafe { sys::zoo_set_servers_resolution_delay(zh.as_ptr(), -1) };
        let gate = Arc::new(Gate::open(Live(zh)));
        let window = Window::new(Arc::clone(&gate), false);
        Ok(Zhandle { id, context: id, gate, window, adoption: None })
    }

    pub(super) fn adopted(
        id: usize,
        context: usize,
        gate: Arc<Gate>,
        window: Arc<Window>,
        adoption: Arc<Adoption>,
    ) -> Zhandle {
        Zhandle { id, context, gate, window, adoption: Some(adoption) }
    }

    pub(super) fn adoption(&self) -> Option<&Adoption> {
        self.adoption.as_deref()
    }

    pub(super) fn context(&self) -> usize {
        self.context
    }

    /// How many requests have not been answered yet.
    #[cfg(test)]
    pub(crate) fn in_flight(&self) -> usize {
        self.window.len()
    }

    /// Makes the next server the present one, and names it.
    fn next_server(&self) -> Option<String> {
        // SAFETY: `with` keeps the handle open during the call, which locks what it changes.
        self.gate.with(|zh| unsafe { sys::zoo_cycle_next_server(zh) })?;
        self.present_server()
    }

    fn present_server(&self) -> Option<String> {
        self.gate.with(|zh| {
            // SAFETY: `with` keeps the handle open during the call. It gives a static buffer, which ends with a NUL
            // whatever is written to it meanwhile.
            let name = unsafe { sys::zoo_get_current_server(zh) };
            // SAFETY: as above.
            unsafe { convert::string(name) }
        })?
    }

    /// Sends a request of so many bytes of path and data, now or when its turn has come. `receiver` is
    /// answered exactly once.
    pub(super) fn submit(
        &self,
        terms: Terms,
        receiver: Receiver,
        memory: Option<super::multi::MultiMemory>,
        bytes: usize,
        request: impl Request,
    ) {
        let slot = Slot {
            handle: self.id,
            deadline: terms.deadline,
            receiver: Some(receiver),
            memory,
            on_the_way: None,
        };
        self.window.submit(terms.turn, slot, bytes, request);
    }

    /// As [`submit`](Zhandle::submit), now, for a completion that may send no other request: it may run
    /// under a lock of the C client.
    pub(super) fn submit_uncounted(
        &self,
        deadline: Option<Instant>,
        receiver: Receiver,
        call: impl FnOnce(*mut sys::zhandle_t, *const std::ffi::c_void) -> c_int,
    ) {
        let receiver = Some(receiver);
        let slot = Slot { handle: self.id, deadline, receiver, memory: None, on_the_way: None };
        self.window.send_uncounted(slot, call);
    }
}

impl Handle for Zhandle {
    fn is_adopted(&self) -> bool {
        self.adoption.is_some()
    }

    fn is_overdue(&self) -> bool {
        self.has_waited_too_long()
    }

    fn can_be_waited_for(&self) -> bool {
        self.answers_can_come()
    }

    fn watch_session_events(&self, unwatched: Box<dyn FnOnce() + Send>) {
        self.watch_root(unwatched);
    }

    fn state(&self) -> Option<HandleState> {
        self.gate.state()
    }

    fn while_open(&self, body: &mut dyn FnMut(*mut sys::zhandle_t)) {
        self.gate.with(body);
    }

    fn session(&self) -> Option<SessionKey> {
        self.gate.with(|zh| {
            // SAFETY: `with` keeps the handle open during the call, which returns a pointer into
            // the handle; it is null only for a null handle.
            let id = unsafe { sys::zoo_client_id(zh) };
            // SAFETY: the pointer leads into the open handle. The C client writes there while it
            // connects, and tells of the connection by an event only after that.
            let id = unsafe { id.read() };
            SessionKey::new(id.client_id, id.passwd.map(|byte| byte as u8))
        })
    }

    fn session_timeout(&self) -> Option<Duration> {
        // SAFETY: `with` keeps the handle open during the call, which only reads.
        let millis = self.gate.with(|zh| unsafe { sys::zoo_recv_timeout(zh) })?;
        Some(Duration::from_millis(u64::try_from(millis).unwrap_or(0)))
    }

    fn server(&self) -> Option<SocketAddr> {
        let name = self.present_server()?;
        let (ip, port) = name.rsplit_once(':')?;
        Some(SocketAddr::new(ip.parse().ok()?, port.parse().ok()?))
    }

    fn cycle_next_server(&self, wanted: &[SocketAddr]) {
        let wanted: Vec<String> =
            wanted.iter().map(|address| format!("{}:{}", address.ip(), address.port())).collect();
        if wanted.is_empty() {
            self.next_server();
            return;
        }
        // The C client takes them always in the same order: when an attempt fails it goes on by one, and
        // by another one when it begins the next.
        let is_trying = self.state().is_some_and(HandleState::is_attempt);
        // Between attempts it may begin one at this very moment: not to miss by the same number each time.
        if !is_trying && fastrand::u8(..4) == 0 {
            return self.cycle_next_server(&[]);
        }
        let (Some(mut before_last), Some(mut last)) = (self.next_server(), self.next_server())
        else {
            return;
        };
        let before = (0..MAX_ADDRESSES).find_map(|_| {
            let next = self.next_server()?;
            let last = std::mem::replace(&mut last, next.clone());
            let before_last = std::mem::replace(&mut before_last, last.clone());
            wanted.contains(&next).then_some(if is_trying { before_last } else { last })
        });
        let Some(before) = before else { return };
        // Once around.
        (0..MAX_ADDRESSES).find(|_| self.next_server().as_ref() == Some(&before));
    }

    fn is_any_late(&self, now: Instant) -> bool {
        self.window.is_any_late(now)
    }

    fn expire(&self, now: Instant) {
        for receiver in self.window.take_late(now) {
            catch_panic(|| receiver.fail(Code::OPERATION_TIMEOUT));
        }
    }

    fn close_for(&self, why: Option<HandleState>) {
        let Some(live) = self.gate.shut(why) else {
            return;
        };
        self.window.clear();
        if self.is_adopted() {
            watcher::unregister(self.context, self.id);
            slots::abandon(self.id);
            return;
        }
        let id = self.id;
        if !callback_thread::inside_callback() {
            finish(live, id);
            return;
        }
        if let Err(error) = sync::spawn("zklock-closer", move || finish(live, id)) {
            log!(ERROR, %error, "no thread to close a handle on: its session lives until this process ends");
        }
    }
}

/// While there is one, the C client leaves the order of the hosts as it is given. It has one switch for
/// all handles of the process, so that is for the moments in which one is opened.
struct InOrder;

per_process! {
    static IN_ORDER: AtomicUsize = AtomicUsize::new(0);
}

impl InOrder {
    fn begin() -> InOrder {
        IN_ORDER.fetch_add(1, Ordering::AcqRel);
        // SAFETY: it only writes to a number.
        unsafe { sys::zoo_deterministic_conn_order(1) };
        InOrder
    }
}

impl Drop for InOrder {
    fn drop(&mut self) {
        if IN_ORDER.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: as above.
            unsafe { sys::zoo_deterministic_conn_order(0) };
        }
    }
}

impl Drop for Zhandle {
    fn drop(&mut self) {
        self.close();
    }
}

fn finish(live: Live, id: usize) {
    // SAFETY: `live` came out of the gate, so no other call uses the pointer now or later, and
    // this is no thread of the handle.
    unsafe { sys::zookeeper_close(live.0.as_ptr()) };
    watcher::unregister(id, id);
    secure::closed(id);
    for slot in slots::sweep(id) {
        if let Some(receiver) = slot.receiver {
            catch_panic(|| receiver.fail(Code::CLOSING));
        }
    }
}

/// Frees what the tables of handles do not need now: all of them, once no handle is left.
#[cfg(feature = "capi")]
pub(crate) fn shrink_tables() {
    slots::shrink();
    watcher::shrink();
    contexts::shrink();
}
