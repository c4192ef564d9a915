//! The one watcher function that the C client knows, and who listens behind it.
//!
//! The context is a number, of a handle of our own or of one that the program owns. Of the latter
//! there may be several listeners, one for each time that it was adopted: were the contexts others,
//! the C client would keep a watch for each of them. Node watches and session events arrive here alike.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use super::{callback_thread, convert, sys};
use crate::sync::{Mutex, per_process};

/// The type of an event, by ZooKeeper's number: an open set.
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

type Listeners = HashMap<usize, Vec<(usize, Listener)>>;

per_process! {
    /// By context.
    static LISTENERS: Mutex<Listeners> = Mutex::default();
}

/// Files the listener of handle `id` under a context.
pub(super) fn register(context: usize, id: usize, listener: Listener) {
    LISTENERS.lock().entry(context).or_default().push((id, listener));
}

pub(super) fn unregister(context: usize, id: usize) {
    let mut by_context = LISTENERS.lock();
    let Some(listeners) = by_context.get_mut(&context) else { return };
    let at = listeners.iter().position(|(of, _)| *of == id);
    let listener = at.map(|at| listeners.swap_remove(at));
    if listeners.is_empty() {
        by_context.remove(&context);
    }
    // The listener may own the last reference to a client.
    drop(by_context);
    drop(listener);
}

/// Frees what the table does not need now.
#[cfg(feature = "capi")]
pub(super) fn shrink() {
    LISTENERS.lock().shrink_to_fit();
}

/// A number, shaped as a context for the C client. It is never followed.
pub(super) fn context(number: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(number)
}

pub(super) unsafe extern "C" fn watcher(
    _zh: *mut sys::zhandle_t,
    kind: c_int,
    _state: c_int,
    path: *const c_char,
    context: *mut c_void,
) {
    callback_thread::run(|| {
        // SAFETY: the C client keeps the string until the callback returns.
        let path = unsafe { convert::string(path) }.unwrap_or_default();
        tell(context.addr(), &Event { kind: EventKind(kind), path });
    });
}

/// Notifies the listeners.
pub(super) fn tell(context: usize, event: &Event) {
    let listeners = LISTENERS.lock().get(&context).cloned();
    for (_, listener) in listeners.into_iter().flatten() {
        listener(event.clone());
    }
}
