//! What has to be done whether or not anybody waits for it: deletions that are under way, claims that
//! were given up.
//!
//! Each is a duty while it lasts. An adopted handle is given back, and a process ends, when there is
//! none left.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use event_listener::{Event, EventListener};
use parking_lot::Mutex;

use crate::process::Process;
use crate::runtime::wake;
use crate::sync::per_process;

per_process! {
    /// Of all clients.
    static OPEN: AtomicUsize = AtomicUsize::new(0);
}

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
}

impl Duties {
    pub(crate) fn begin(self: &Arc<Self>) -> Duty {
        let mut open = self.open.lock();
        let number = open.next;
        open.next += 1;
        open.numbers.insert(number);
        OPEN.fetch_add(1, Ordering::AcqRel);
        Duty { duties: Arc::clone(self), number, process: Process::this() }
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
            OPEN.fetch_sub(1, Ordering::AcqRel);
            wake::all(&self.duties.ended);
        }
    }
}

/// How long the end of a process waits for its duties, and how often it looks.
const AT_EXIT: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(1);

/// Runs when the process ends by `exit`. Locks nothing, because the thread that ends the process may
/// have been anywhere.
pub(super) fn wait_at_exit() {
    let begun = Instant::now();
    while OPEN.load(Ordering::Acquire) > 0 && begun.elapsed() < AT_EXIT {
        std::thread::sleep(LOOK);
    }
}
