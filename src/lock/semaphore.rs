//! A semaphore: locks that take some of a number of permits.

use super::Lock;
use super::error::LockError;
use super::kind::Kind;
use super::store::Change;
use crate::runtime::Pending;

/// A number of permits, of which holders take some each.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let zk = zklock::Client::connect("127.0.0.1:2181").wait()?;
/// let transfers = zk.semaphore("/limits/transfers", 10);
/// let one = transfers.permit().acquire().wait()?;
/// let many = transfers.permits(3).acquire().wait()?;
/// // ... six are left to others ...
/// drop((one, many));
/// transfers.set_limit(20).wait()?; // from now on, for all
/// # Ok(()) }
/// ```
///
/// Each request for permits, of however many, has one place in a fair queue: it is served when there are enough for it
/// and all that are before it. So who asks for many is not overtaken for ever by those who ask for few, and until it is
/// served, permits that would do for those behind it stay free.
///
/// # The limit
/// How many there are is kept in the store, and is the same for all. The number that a program gives counts where none
/// is kept yet. [`set_limit`](Semaphore::set_limit) changes it while permits are held and waited for. More are given to
/// those who wait at once. When there are fewer than are held, all who hold go on to; others are let in again when
/// enough have released. A request for more than there are fails with [`Unusable`](LockError::Unusable), also
/// while it waits, when it comes to be next in line.
///
/// [`Client::semaphore`](crate::Client::semaphore) makes one that is kept in ZooKeeper,
/// [`LocalStore::semaphore`](crate::LocalStore::semaphore) one within this process.
#[derive(Clone)]
pub struct Semaphore {
    lock: Lock,
}

impl Semaphore {
    /// Of a lock on the same path, for its store.
    pub(crate) fn new(lock: Lock, limit: u32) -> Semaphore {
        Semaphore { lock: Lock::new(lock.stored().with(Change::Limit(limit))) }
    }

    /// What the owner calls itself: as [`Lock::label`].
    #[must_use]
    pub fn label(self, label: impl Into<String>) -> Semaphore {
        Semaphore { lock: self.lock.label(label) }
    }

    /// The semaphore's path.
    pub fn path(&self) -> &str {
        self.lock.path()
    }

    /// One permit, to be acquired: see [`permits`](Semaphore::permits).
    pub fn permit(&self) -> Lock {
        self.permits(1)
    }

    /// So many permits, to be acquired together: a [`Lock`] that holders of the rest hold at the same time. A try of it
    /// fails where not so many are free, or somebody waits. An acquire fails with [`Unusable`](LockError::Unusable)
    /// for none, and for more than there are. Its [`contenders`](Lock::contenders) are all who hold permits or wait
    /// for some, and [`holder`](Lock::holder) is the first of them.
    ///
    /// A [fencing token](super::Guard::fencing_token) orders those who could not hold at the same time.
    pub fn permits(&self, number: u32) -> Lock {
        self.lock.of_kind(Kind::Permits(number))
    }

    /// How many permits there are; where none has said so yet, what this program gave.
    ///
    /// # Errors
    /// As [`Lock::contenders`].
    pub fn limit(&self) -> Pending<u32, LockError> {
        self.lock.of_kind(Kind::Permits(1)).shared().limit()
    }

    /// Sets how many permits there are, for all.
    ///
    /// # Errors
    /// [`Unusable`](LockError::Unusable) for 0; [`NotPermitted`](LockError::NotPermitted);
    /// [`OutcomeUnknown`](LockError::OutcomeUnknown) when no server has confirmed it within the client's operation
    /// timeout; otherwise as [`Lock::contenders`].
    ///
    /// # On connection loss
    /// It is repeated until it is certain.
    ///
    /// # Cancellation
    /// It may be set all the same.
    pub fn set_limit(&self, limit: u32) -> Pending<(), LockError> {
        self.lock.of_kind(Kind::Permits(1)).shared().set_limit(limit)
    }
}

impl std::fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Semaphore").field("path", &self.path()).finish_non_exhaustive()
    }
}
