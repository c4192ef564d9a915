//! The holders of a lock, one after the other.

use std::sync::Arc;

use futures_lite::stream;

use super::contender::Contender;
use super::error::LockError;
use super::store::StoredLock;
use crate::process::{Process, inherited};
use crate::runtime::Updates;

/// The holders of a lock as they change: see [`Lock::watch_holder`](super::Lock::watch_holder).
pub type Holders = Updates<Result<Option<Contender>, LockError>>;

pub(super) fn of(lock: Arc<dyn StoredLock>) -> Holders {
    let in_a_child = Err(LockError::closed(lock.path(), inherited("watch_holder", lock.path())));
    let stream = stream::unfold(Some((lock, None)), |watching| async {
        let (lock, reported) = watching?;
        let holder = Arc::clone(&lock).view().holder_other_than(reported).await;
        let reported =
            holder.as_ref().ok().map(|holder| holder.as_ref().map(|holder| holder.token));
        Some((holder, reported.map(|reported| (lock, Some(reported)))))
    });
    Updates::new(Process::this(), in_a_child, stream)
}
