//! A request that was sent and is not answered yet.

use std::sync::Arc;

/// Counts the requests in flight.
pub(super) trait Traffic: Send + Sync {
    /// A request of `bytes` bytes is no longer in flight.
    fn over(&self, bytes: usize);

    /// A request was answered, by a reply of `reply` bytes: others may be sent.
    fn answered(self: Arc<Self>, reply: usize);
}

/// One request in flight, counted for as long as this lives.
pub(super) struct OnTheWay {
    traffic: Arc<dyn Traffic>,
    bytes: usize,
}

impl OnTheWay {
    pub(super) fn new(traffic: Arc<dyn Traffic>, bytes: usize) -> OnTheWay {
        OnTheWay { traffic, bytes }
    }

    pub(super) fn traffic(&self) -> Arc<dyn Traffic> {
        Arc::clone(&self.traffic)
    }
}

impl Drop for OnTheWay {
    fn drop(&mut self) {
        self.traffic.over(self.bytes);
    }
}
