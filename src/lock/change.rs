//! Turns what is held of a read/write lock into something else.

use std::sync::Arc;

use super::access::Access;
use super::error::LockError;
use super::guard::Guard;
use crate::error::Code;
use crate::runtime::Pending;

/// What a hold can't be turned into.
const NOT_UPGRADEABLE: &str = "only what was acquired as upgradeable can be upgraded, by the guard that \
     stands for it alone";
const NOT_DOWNGRADEABLE: &str = "only a writer's hold becomes an upgradeable reader's, and only that or a \
     writer's becomes a reader's, by the guard that stands for it alone";
const NOT_HERE: &str = "in this store a hold stays what it was acquired as: release it, and acquire the other (zookeeper: \
     and local: can change it)";

/// Of a read/write lock, while it is held. Others (of one lock, of several, or one of several guards that stand for one
/// claim) fail with [`Unusable`](LockError::Unusable), and nothing is done.
impl Guard {
    /// What it leaves to others now; `None` of another lock than a read/write lock, and of a guard that stands for
    /// several locks or is one of several of a claim. Costs no request.
    pub fn access(&self) -> Option<Access> {
        self.tenure().access()
    }

    /// Turns an upgradeable reader's hold into a writer's, without a moment in which it is not held. It waits until the
    /// readers that hold have released; nobody comes in from when it is submitted: neither readers that come after it, nor
    /// a writer that waited before. Of a writer it does nothing.
    ///
    /// The [fencing token](Guard::fencing_token) stays what it is: larger than that of each earlier writer, and
    /// smaller than that of each later one. Readers that held beside it may have larger ones; a store that
    /// refuses small tokens should be shown those of writers alone.
    ///
    /// # Errors
    /// [`NotHeld`](LockError::NotHeld) when the lock is lost; [`Unusable`](LockError::Unusable) of a plain reader, and
    /// while another change of this guard is under way; within a limit [`TimedOut`](LockError::TimedOut), which
    /// says who was ahead; otherwise as [`Lock::acquire`](crate::Lock::acquire). The hold is an upgradeable reader's then
    /// as before, if it is not lost, and nothing is left behind.
    ///
    /// # On connection loss
    /// It goes on: what became of its claim is looked up on the next connection.
    ///
    /// # Cancellation
    /// Dropping the [`Pending`] gives it up, and the hold stays an upgradeable reader's. One that is kept and neither
    /// awaited nor waited for keeps readers out.
    pub fn upgrade(&self) -> Pending<(), LockError> {
        self.change("upgrade", Access::Write, NOT_UPGRADEABLE)
    }

    /// Turns a writer's hold into an upgradeable reader's or a reader's, or an upgradeable reader's into a reader's,
    /// without a moment in which it is not held. It keeps its place in the queue: those readers come in that
    /// wait directly behind it; a writer that waits is not passed, and those behind that writer go on to wait. What was
    /// [upgraded](Guard::upgrade) is an upgradeable reader's again. To what it is already it does nothing.
    ///
    /// The [fencing token](Guard::fencing_token) stays what it is.
    ///
    /// # Errors
    /// [`NotHeld`](LockError::NotHeld) when the lock is lost; [`Unusable`](LockError::Unusable) for
    /// [`Access::Write`], of a reader that is to become upgradeable, and while another change of this guard is under way;
    /// [`OutcomeUnknown`](LockError::OutcomeUnknown) when no server has confirmed it [within](Pending::within) a limit:
    /// [`access`](Guard::access) says what it is, and where that is what was wanted, the rest goes on in the background;
    /// [`NotPermitted`](LockError::NotPermitted), or else as [`Lock::acquire`](crate::Lock::acquire).
    ///
    /// # On connection loss
    /// It goes on with the next connection. Until it is done, nobody comes in.
    ///
    /// # Cancellation
    /// It is done or given up, as [`access`](Guard::access) says; either is held, and nothing else is left behind.
    pub fn downgrade(&self, to: Access) -> Pending<(), LockError> {
        self.change("downgrade", to, NOT_DOWNGRADEABLE)
    }

    fn change(&self, op: &str, to: Access, why: &'static str) -> Pending<(), LockError> {
        let failed = |error| Pending::ready_as(LockError::of_pending, Err(error));
        if let Some(reason) = self.tenure().ended() {
            return failed(LockError::not_held(self.path(), reason));
        }
        let may = match self.access() {
            Some(now) if now == to => {
                return Pending::ready_as(LockError::of_pending, Ok(()));
            }
            Some(now) if op == "upgrade" => now == Access::Upgradeable,
            Some(now) => to != Access::Write && now != Access::Read,
            None => false,
        };
        let refused = |why| failed(LockError::unusable(self.path(), why, Code::BAD_ARGUMENTS));
        match may {
            true => Arc::clone(self.tenure()).change(to).unwrap_or_else(|| refused(NOT_HERE)),
            false => refused(why),
        }
    }
}
