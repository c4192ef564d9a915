//! Turns what is held of a read/write lock into something else.

use std::sync::Arc;

use super::access::Access;
use super::error::LockError;
use super::guard::Guard;
use super::op::ready;
use super::tenure::Tenure;
use crate::error::Code;
use crate::runtime::Pending;

const NOT_UPGRADEABLE: &str = "only what was acquired as upgradeable can be upgraded, by the guard that \
     stands for it alone";
const NOT_DOWNGRADEABLE: &str = "only a writer's hold becomes an upgradeable reader's, and only that or a \
     writer's becomes a reader's, by the guard that stands for it alone";
const NOT_HERE: &str = "in this store a hold stays what it was acquired as: release it, and acquire the other (zookeeper: \
     and local: can change it)";

/// Upgrades and downgrades of a read/write lock that is held. Other guards fail with [`Unusable`](LockError::Unusable),
/// and nothing is done: those of other locks, of several locks, or of a claim with several guards.
impl Guard {
    /// How the lock is held now. `None` for a lock that is not a read/write lock, and for a guard of several
    /// locks or of a claim with several guards. Costs no request.
    pub fn access(&self) -> Option<Access> {
        self.here().and_then(Tenure::access)
    }

    /// Turns an upgradeable hold into a writer's without releasing it. It waits for the readers that hold now. Once it
    /// is submitted, it is ahead of later readers and of waiting writers. For a writer it does nothing.
    ///
    /// The [fencing token](Guard::fencing_token) stays the same: larger than that of each earlier writer, smaller than
    /// that of each later one. Readers beside the upgradeable hold may have larger tokens. If a store rejects smaller
    /// tokens, show it only those of writers.
    ///
    /// # Errors
    /// After an error the hold is still upgradeable, unless it is lost, and nothing is left behind.
    /// - [`NotHeld`](LockError::NotHeld): the lock is lost.
    /// - [`Unusable`](LockError::Unusable): the hold is a plain reader's, or another change of this guard is in flight.
    /// - [`TimedOut`](LockError::TimedOut): the limit has passed. The error names the contender ahead.
    /// - Otherwise as [`Lock::acquire`](crate::Lock::acquire).
    ///
    /// # On connection loss
    /// It continues on the next connection and looks up its claim there.
    ///
    /// # Cancel safety
    /// Dropping it cancels the upgrade, and the hold stays upgradeable. A [`Pending`] that is kept and not polled keeps
    /// readers out.
    pub fn upgrade(&self) -> Pending<(), LockError> {
        self.change(Access::Write, |now| now == Access::Upgradeable, NOT_UPGRADEABLE)
    }

    /// Turns a writer's hold into an upgradeable one or a reader's, or an upgradeable hold into a reader's, without
    /// releasing it. If the hold is already as wanted, it does nothing.
    ///
    /// The hold keeps its place in the queue. Readers directly behind it are admitted. No reader passes a waiting
    /// writer. A hold that was [upgraded](Guard::upgrade) can become upgradeable again. The [fencing
    /// token](Guard::fencing_token) stays the same.
    ///
    /// # Errors
    /// - [`NotHeld`](LockError::NotHeld): the lock is lost.
    /// - [`Unusable`](LockError::Unusable): `to` is [`Access::Write`], a reader is to become upgradeable, or another
    ///   change of this guard is in flight.
    /// - [`OutcomeUnknown`](LockError::OutcomeUnknown): no server confirmed it [within](Pending::within) the limit.
    ///   [`access`](Guard::access) gives the present kind. If that is the wanted kind, the rest continues in the
    ///   background.
    /// - [`NotPermitted`](LockError::NotPermitted), and otherwise as [`Lock::acquire`](crate::Lock::acquire).
    ///
    /// # On connection loss
    /// It continues on the next connection. Until it is done, no other client is admitted.
    ///
    /// # Cancel safety
    /// Dropping it completes or cancels the change; [`access`](Guard::access) tells which. Either way the lock is held,
    /// and nothing else is left behind.
    pub fn downgrade(&self, to: Access) -> Pending<(), LockError> {
        let may = |now| to != Access::Write && now != Access::Read;
        self.change(to, may, NOT_DOWNGRADEABLE)
    }

    /// Changes it to that, if `may` says of the present access that it can become that.
    fn change(
        &self,
        to: Access,
        may: impl FnOnce(Access) -> bool,
        why: &'static str,
    ) -> Pending<(), LockError> {
        let refused = |why| ready(Err(LockError::unusable(self.path(), why, Code::BAD_ARGUMENTS)));
        if let Some(reason) = self.ended() {
            return ready(Err(LockError::not_held(self.path(), reason)));
        }
        match self.access() {
            Some(now) if now == to => ready(Ok(())),
            Some(now) if may(now) => {
                Arc::clone(self.tenure()).change(to).unwrap_or_else(|| refused(NOT_HERE))
            }
            _ => refused(why),
        }
    }
}
