//! What is known of deletions that must happen (`guaranteed_delete.rs`), and are not certain yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Duty;
use crate::error::{Code, Error, Result};
use crate::runtime::wake;

/// Deletions with an unknown outcome: tried again by the driver while connected.
#[derive(Default)]
pub(super) struct Unconfirmed {
    pub(super) deletes: Vec<GuaranteedDelete>,
    /// Set once the session is over and nothing can be tried any more.
    pub(super) over: bool,
}

/// How a znode is to be deleted next.
#[derive(Clone, Copy)]
pub(super) struct How {
    /// Whether to look first if it is still the one that its transaction created.
    pub(super) look: bool,
    /// Whether it is written to before, in the same transaction, which tells who watches it that its holder has released it.
    pub(super) announced: bool,
    /// Whether no deletion was tried before: after one, a missing znode is how success looks.
    pub(super) first: bool,
}

impl Default for How {
    fn default() -> How {
        How { look: false, announced: false, first: true }
    }
}

/// A znode that must go.
pub(super) struct GuaranteedDelete {
    pub(super) path: Arc<str>,
    pub(super) czxid: i64,
    pub(super) how: How,
    /// How often it was looked at without a deletion after that.
    pub(super) stale_looks: u32,
    pub(super) done: oneshot::Sender<Result<bool>>,
    /// Set when it is certain that the znode is gone; kept until the deletion has ended.
    pub(super) gone: Arc<AtomicBool>,
    /// Until it is certain.
    pub(super) _duty: Duty,
}

impl GuaranteedDelete {
    pub(super) fn end(self, reply: std::result::Result<(), Code>) {
        if matches!(reply, Ok(()) | Err(Code::NO_NODE)) {
            self.gone.store(true, Ordering::Release);
        }
        let result = match reply {
            Ok(()) => Ok(true),
            Err(Code::NO_NODE) => Ok(!self.how.first),
            Err(code) => Err(Error::new("delete", &self.path, code)),
        };
        wake::send(self.done, result);
    }
}
