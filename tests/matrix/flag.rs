//! Something that happens once, and can be awaited and waited for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use event_listener::{Event, Listener as _};

#[derive(Default)]
pub struct Flag {
    up: AtomicBool,
    told: Event,
}

impl Flag {
    pub fn raise(&self) {
        self.up.store(true, Ordering::SeqCst);
        self.told.notify(usize::MAX);
    }

    pub fn lower(&self) {
        self.up.store(false, Ordering::SeqCst);
    }

    pub fn is_up(&self) -> bool {
        self.up.load(Ordering::SeqCst)
    }

    pub async fn up(&self) {
        let listener = self.told.listen();
        if !self.is_up() {
            listener.await;
        }
    }

    /// Whether it went up within `timeout`.
    pub fn wait(&self, timeout: Duration) -> bool {
        let listener = self.told.listen();
        self.is_up() || listener.wait_timeout(timeout).is_some()
    }
}
