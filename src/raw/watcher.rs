//! The one watcher function that the C client knows, and who listens behind it.
//!
//! Each handle has one listener; its context is the handle's number. Node watches and session
//! events arrive here alike.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{callback, convert, sys};
use crate::sync::{AtomicUsize, Mutex, per_process};

/// What happened, by ZooKeeper's number: an open set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EventKind(pub(crate) i32);

impl EventKind {
    pub(crate) const CREATED: EventKind = EventKind(1);
    pub(crate) const DELETED: EventKind = EventKind(2);
    pub(crate) const CHANGED: EventKind = EventKind(3);
    pub(crate) const CHILD: EventKind = EventKind(4);
    pub(crate) const SESSION: EventKind = EventKind(-1);
    /// The server has dropped a watch without an event for it.
    pub(crate) const NOT_WATCHING: EventKind = EventKind(-2);
}

/// A watch or session event.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) kind: EventKind,
    /// The znode's path, without the chroot; empty for session events.
    pub(crate) path: String,
}

/// Runs on the completion thread: it must not block.
pub(super) type Listener = Arc<dyn Fn(Event) + Send + Sync>;

struct Listeners {
    by_id: Mutex<HashMap<usize, Listener>>,
    next: AtomicUsize,
}

per_process! {
    static LISTENERS: Listeners = Listeners { by_id: Mutex::default(), next: AtomicUsize::new(1) };
}

/// Files a listener and returns the number that is its handle's and its context.
pub(super) fn register(listener: Listener) -> usize {
    let id = LISTENERS.next.fetch_add(1, Ordering::Relaxed);
    LISTENERS.by_id.lock().insert(id, listener);
    id
}

pub(super) fn unregister(id: usize) {
    // Dropped after the table's lock is released: the listener may own the last reference to a
    // client.
    let listener = LISTENERS.by_id.lock().remove(&id);
    drop(listener);
}

/// A handle's number, shaped as a context for the C client. It is never followed.
pub(super) fn context(id: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(id)
}

pub(super) unsafe extern "C" fn watcher(
    _zh: *mut sys::zhandle_t,
    kind: c_int,
    _state: c_int,
    path: *const c_char,
    context: *mut c_void,
) {
    callback::run(|| {
        // SAFETY: the C client keeps the string until the callback returns.
        let path = unsafe { convert::string(path) }.unwrap_or_default();
        tell(context.addr(), Event { kind: EventKind(kind), path });
    });
}

/// Tells a handle's listener, if it still has one.
pub(super) fn tell(id: usize, event: Event) {
    let listener = LISTENERS.by_id.lock().get(&id).cloned();
    if let Some(listener) = listener {
        listener(event);
    }
}
