//! Notices servers that do not know what earlier ones have committed: another ensemble behind the same name, or one that
//! has lost writes.
//!
//! Each write gets a larger zxid than all writes before it. So a write that a session sends is newer than every write that
//! was known before the session began, if the servers are the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use crate::logging::log;

/// The newest write that a client has seen, in any of its sessions.
#[derive(Default)]
pub(super) struct History {
    newest: AtomicI64,
}

/// What one session adds to it.
pub(super) struct SessionHistory {
    client: Arc<History>,
    /// The newest write that was known when the session began.
    before: i64,
    is_reported: AtomicBool,
}

impl SessionHistory {
    pub(super) fn begin(client: &Arc<History>) -> SessionHistory {
        let before = client.newest.load(Ordering::Acquire);
        SessionHistory { client: Arc::clone(client), before, is_reported: AtomicBool::new(false) }
    }

    /// A write of this session has this zxid.
    pub(super) fn wrote(&self, zxid: i64) {
        self.client.newest.fetch_max(zxid, Ordering::AcqRel);
        if zxid <= self.before && !self.is_reported.swap(true, Ordering::AcqRel) {
            let (before, now) = (format!("{:#x}", self.before), format!("{zxid:#x}"));
            let why = "these servers do not know what earlier ones have committed: they belong to another ensemble, or have \
                       lost writes. Locks may be held there too, and tokens are smaller than before. Check the host \
                       string and DNS";
            log!(ERROR, before, now, why, "older history");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_session_writes_later() {
        let client = Arc::new(History::default());
        let first = SessionHistory::begin(&client);
        let at_the_same_time = SessionHistory::begin(&client);
        first.wrote(7);
        at_the_same_time.wrote(5);
        assert!(
            !at_the_same_time.is_reported.load(Ordering::Acquire),
            "nothing was known before it"
        );
        let later = SessionHistory::begin(&client);
        first.wrote(6);
        later.wrote(8);
        assert!(!later.is_reported.load(Ordering::Acquire));
        later.wrote(7);
        assert!(later.is_reported.load(Ordering::Acquire));
    }
}
