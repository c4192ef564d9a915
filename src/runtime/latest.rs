//! A cell with the latest value. A change wakes its waiters.

use event_listener::{Event, EventListener};
use parking_lot::Mutex;

use super::wake;

#[derive(Default)]
pub(crate) struct Latest<T> {
    value: Mutex<T>,
    changed: Event,
}

impl<T: Clone> Latest<T> {
    pub(crate) fn new(value: T) -> Latest<T> {
        Latest { value: Mutex::new(value), changed: Event::new() }
    }

    pub(crate) fn get(&self) -> T {
        self.value.lock().clone()
    }

    /// Changes the value in place; wakes everybody if `change` says that something changed.
    pub(crate) fn update(&self, change: impl FnOnce(&mut T) -> bool) {
        let changed = change(&mut self.value.lock());
        if changed {
            wake::all(&self.changed);
        }
    }

    /// Hears of every change from now on. Listen first, look second, wait third.
    pub(crate) fn listen(&self) -> EventListener {
        self.changed.listen()
    }

    /// Waits until `wanted` finds what it wants. It is shown a copy, so it may do what it likes.
    pub(crate) async fn wait_for<U>(&self, mut wanted: impl FnMut(&T) -> Option<U>) -> U {
        loop {
            if let Some(found) = wanted(&self.get()) {
                return found;
            }
            let listener = self.listen();
            if let Some(found) = wanted(&self.get()) {
                return found;
            }
            wake::DeferredWake(listener).await;
        }
    }
}
