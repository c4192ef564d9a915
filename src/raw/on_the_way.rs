//! A request that was sent and is not answered yet.

use std::sync::Arc;

/// Counts the requests in flight.
pub(super) trait Traffic: Send + Sync {
    /// One of so many bytes is not on its way any more.
    fn over(&self, bytes: usize);

    /// One was answered, by a reply of so many bytes: others may be sent.
    fn answered(self: Arc<Self>, reply: usize);
}

/// One request on its way, counted for as long as it lives.
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
