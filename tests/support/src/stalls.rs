//! How long a busy machine lets a thread wait that could run: by so much a notification may come late that was sent
//! in time.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const NAP: Duration = Duration::from_millis(2);

/// Measures until it is asked, or dropped.
pub(super) struct Stalls {
    wanted: Arc<()>,
    longest: JoinHandle<Duration>,
}

impl Stalls {
    pub(super) fn measure() -> Stalls {
        let wanted = Arc::new(());
        let by = Arc::downgrade(&wanted);
        let longest = thread::spawn(move || {
            let mut longest = Duration::ZERO;
            while by.strong_count() > 0 {
                let began = Instant::now();
                thread::sleep(NAP);
                longest = longest.max(began.elapsed() - NAP);
            }
            longest
        });
        Stalls { wanted, longest }
    }

    /// The longest wait since it began. A notification comes through two threads.
    pub(super) fn longest(self) -> Duration {
        drop(self.wanted);
        2 * self.longest.join().unwrap()
    }
}
