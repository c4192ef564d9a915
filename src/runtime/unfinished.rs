//! Counts the work that the end of the process waits for, for a short time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::process::Process;
use crate::sync::per_process;

per_process! {
    static OPEN: AtomicUsize = AtomicUsize::new(0);
}

/// Something that is to be done before the process ends, until this is dropped.
pub(crate) struct Unfinished {
    process: Process,
}

impl Unfinished {
    pub(crate) fn begin() -> Unfinished {
        OPEN.fetch_add(1, Ordering::AcqRel);
        Unfinished { process: Process::this() }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.process.is_this() {
            OPEN.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// How long the end of a process waits, and how often it looks.
const AT_EXIT: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(1);

/// Runs when the process ends by `exit`. Locks nothing, because the thread that ends the process may
/// have been anywhere.
pub(crate) fn wait_at_exit() {
    let begun = Instant::now();
    while OPEN.load(Ordering::Acquire) > 0 && begun.elapsed() < AT_EXIT {
        std::thread::sleep(LOOK);
    }
}
