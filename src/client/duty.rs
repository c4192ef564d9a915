//! Work that must be completed whether or not a caller waits for it: deletions in flight, and abandoned
//! claims.
//!
//! Each is a duty while it lasts. When no duty is left, an adopted handle is given back, and a process
//! may end.

use std::collections::BTreeSet;
use std::sync::Arc;

use event_listener::{Event, EventListener};
use parking_lot::Mutex;

use crate::process::Process;
use crate::runtime::{Unfinished, wake};

/// The duties of one client.
#[derive(Default)]
pub(crate) struct Duties {
    open: Mutex<Open>,
    ended: Event,
}

#[derive(Default)]
struct Open {
    numbers: BTreeSet<u64>,
    next: u64,
}

/// Lasts until it is dropped.
pub(crate) struct Duty {
    duties: Arc<Duties>,
    number: u64,
    process: Process,
    _unfinished: Unfinished,
}

impl Duties {
    pub(crate) fn begin(self: &Arc<Self>) -> Duty {
        let mut open = self.open.lock();
        let number = open.next;
        open.next += 1;
        open.numbers.insert(number);
        let (process, _unfinished) = (Process::this(), Unfinished::begin());
        Duty { duties: Arc::clone(self), number, process, _unfinished }
    }

    pub(crate) fn are_done(&self) -> bool {
        self.open.lock().numbers.is_empty()
    }

    /// Comes with the end of a duty, from now on.
    pub(super) fn listen(&self) -> EventListener {
        self.ended.listen()
    }

    /// Waits until the duties are done that there are now.
    pub(crate) async fn done(&self) {
        let end = self.open.lock().next;
        loop {
            let listener = self.listen();
            if self.open.lock().numbers.first().is_none_or(|first| *first >= end) {
                return;
            }
            wake::DeferredWake(listener).await;
        }
    }
}

impl Drop for Duty {
    fn drop(&mut self) {
        if self.process.is_this() {
            self.duties.open.lock().numbers.remove(&self.number);
            wake::all(&self.duties.ended);
        }
    }
}
