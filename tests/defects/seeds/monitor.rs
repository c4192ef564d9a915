//! A Java monitor, or a condition variable in C, as it is used without a predicate: who is notified is
//! woken, and a notification that finds nobody waiting is gone.

use std::collections::VecDeque;

use parking_lot::{Condvar, Mutex};

#[derive(Default)]
pub struct Monitor {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    next: u64,
    /// Those who wait, in the order in which they are notified.
    waiting: VecDeque<u64>,
    waits: u64,
    notifications: u64,
    closed: bool,
}

impl Monitor {
    /// Waits to be notified. `false` when the test has ended the wait instead.
    pub fn wait(&self) -> bool {
        let mut state = self.state.lock();
        let ticket = state.next;
        state.next += 1;
        state.waits += 1;
        state.waiting.push_back(ticket);
        self.changed.notify_all();
        while state.waiting.contains(&ticket) && !state.closed {
            self.changed.wait(&mut state);
        }
        !state.closed
    }

    /// Wakes one of those who wait.
    pub fn notify(&self) {
        let mut state = self.state.lock();
        state.notifications += 1;
        state.waiting.pop_front();
        self.changed.notify_all();
    }

    /// How many times anybody has begun to wait.
    pub fn waits(&self) -> u64 {
        self.state.lock().waits
    }

    /// How many wait now.
    pub fn waiting(&self) -> usize {
        self.state.lock().waiting.len()
    }

    /// How many notifications there have been.
    pub fn notifications(&self) -> u64 {
        self.state.lock().notifications
    }

    /// Sends everybody home: the end of a test that has shown that nobody else would.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }
}
