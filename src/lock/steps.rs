//! What a strategy has to do: claim a lock, and say where the claim stands.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::Mutex;

use super::claim::{Claim, ClaimPlace};
use super::service::Session;
use crate::client::Watch;
use crate::error::{Code, Error, Result};

/// Where a claim stands.
pub(super) enum Standing {
    /// It holds the lock, as of requests that were submitted in this session.
    Held,
    /// Somebody is ahead, and the caller would not wait.
    Taken,
    /// Something has changed on the way: look again at once.
    Again,
    /// Nothing can change before this watch ends.
    Watching(Watch),
    /// Look again after a pause.
    Pausing(Duration),
}

/// One caller's attempt at a lock.
pub(super) struct Attempt {
    pub(super) path: String,
    pub(super) claim: Claim,
    /// Looks once, and does not wait.
    pub(super) once: bool,
    /// How often the strategy has found the lock taken.
    pub(super) refusals: u32,
    /// Whether the last acquire of this lock had to wait, so that this one probably has to.
    pub(super) contended: Arc<AtomicBool>,
    /// Who is ahead, for the error that a deadline gives.
    pub(super) ahead: Arc<Mutex<Option<String>>>,
}

impl Attempt {
    pub(super) fn note_ahead(&self, who: impl std::fmt::Display) {
        *self.ahead.lock() = Some(who.to_string());
    }
}

/// Claims, or looks again where the claim stands. The acquire loop calls it until it holds; it
/// alone handles lost replies, lost sessions, deadlines and the claim's end.
pub(super) trait Steps: Send + Sync {
    fn place(&self, path: &str) -> ClaimPlace;

    fn step<'a>(
        &'a self,
        attempt: &'a mut Attempt,
        session: &'a Arc<dyn Session>,
    ) -> Pin<Box<dyn Future<Output = Result<Standing>> + Send + 'a>>;
}

/// Refuses to wait for a node that no session's end will ever remove.
pub(super) fn not_a_lock(path: &str) -> Error {
    let detail = "the znode there is not ephemeral, so it is no lock of this strategy: \
                  use another path, or the queue strategy";
    Error::with_detail("acquire", path, Code::NODE_EXISTS, detail)
}
