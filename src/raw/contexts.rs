//! Numbers of handles, and the contexts by which the C client knows their watchers.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use super::slots;
use crate::sync::{AtomicUsize, Mutex, per_process};

per_process! {
    /// The context of each handle that was adopted, by the handle's address, until its completion
    /// thread ends. One that is adopted again gets the same, so that its watches are known to the C
    /// client as those that it has already.
    static CONTEXTS: Mutex<HashMap<usize, usize>> = Mutex::default();
}

per_process! {
    static NEXT: AtomicUsize = AtomicUsize::new(slots::first_number());
}

/// That of an adopted handle.
pub(super) fn context_of(address: usize) -> usize {
    *CONTEXTS.lock().entry(address).or_insert_with(new_number)
}

/// Its completion thread ends: at its address there may be another handle.
pub(super) fn forget_context_of(address: usize) {
    CONTEXTS.lock().remove(&address);
}

/// Frees what the table does not need now.
#[cfg(feature = "capi")]
pub(super) fn shrink() {
    CONTEXTS.lock().shrink_to_fit();
}

/// Whether the handle was adopted before a fork: the threads behind it are the parent's.
#[cfg(not(zklock_loom))]
pub(super) fn is_inherited(address: usize) -> bool {
    // Should it have been locked by a thread that is not here, nobody knows.
    let knows = |contexts: &Mutex<HashMap<usize, usize>>| {
        contexts.try_lock().is_some_and(|contexts| contexts.contains_key(&address))
    };
    CONTEXTS.inherited().any(knows)
}

#[cfg(zklock_loom)]
pub(super) fn is_inherited(_address: usize) -> bool {
    false
}

/// A number that no handle and no context has.
pub(super) fn new_number() -> usize {
    NEXT.fetch_add(1, Ordering::Relaxed)
}
