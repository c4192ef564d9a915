//! A semaphore: locks that take some of a number of permits.

use super::Lock;
use super::error::LockError;
use super::kind::Kind;
use super::store::Change;
use crate::runtime::Pending;

/// A number of permits, shared among holders.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let zk = zklock::Client::connect("127.0.0.1:2181").wait()?;
/// let transfers = zk.semaphore("/limits/transfers", 10);
/// let one = transfers.permit().acquire().wait()?;
/// let many = transfers.permits(3).acquire().wait()?;
/// // ... six are left for others ...
/// drop((one, many));
/// transfers.set_limit(20).wait()?; // from now on, for all
/// # Ok(()) }
/// ```
///
/// Each request has one place in a fair queue, however many permits it asks for. It is served once the permits suffice
/// for it and all requests before it. So small requests do not overtake a large one, and permits may stay free until
/// the large request is served.
///
/// # The limit
/// The store keeps the number of permits, and it is the same for all clients. The number that a program passes counts
/// only if the store has none yet. [`set_limit`](Semaphore::set_limit) changes it while permits are held and waited
/// for:
/// - A larger limit serves waiters at once.
/// - A smaller limit takes nothing from holders. Waiters are served once enough holders have released.
/// - A request for more permits than exist fails with [`Unusable`](LockError::Unusable), also while it waits, when it
///   becomes next in line.
///
/// [`Client::semaphore`](crate::Client::semaphore) makes one in ZooKeeper,
/// [`LocalStore::semaphore`](crate::LocalStore::semaphore) one within this process.
#[derive(Clone, Debug)]
pub struct Semaphore {
    lock: Lock,
}

impl Semaphore {
    pub(crate) fn new(lock: Lock, limit: u32) -> Semaphore {
        Semaphore { lock: Lock::new(lock.stored().with(Change::Limit(limit))) }
    }

    /// A name for the owner: as [`Lock::label`].
    #[must_use]
    pub fn label(self, label: impl Into<String>) -> Semaphore {
        Semaphore { lock: self.lock.label(label) }
    }

    /// The semaphore's path.
    pub fn path(&self) -> &str {
        self.lock.path()
    }

    /// One permit: see [`permits`](Semaphore::permits).
    pub fn permit(&self) -> Lock {
        self.permits(1)
    }

    /// Several permits, acquired together: a [`Lock`] that other holders hold at the same time. A try fails if too few
    /// permits are free or a request waits. An acquire of no permits, or of more than exist, fails with
    /// [`Unusable`](LockError::Unusable). Its [`contenders`](Lock::contenders) are all holders and waiters of the
    /// semaphore, and its [`holder`](Lock::holder) is the first of them.
    ///
    /// [Fencing tokens](super::Guard::fencing_token) order only holders that could not hold at the same time.
    pub fn permits(&self, number: u32) -> Lock {
        self.lock.of_kind(Kind::Permits(number))
    }

    /// The number of permits: the stored one, or else what this program passed.
    ///
    /// Cancel safety: it changes nothing.
    ///
    /// # Errors
    /// As [`Lock::contenders`].
    pub fn limit(&self) -> Pending<u32, LockError> {
        self.lock.of_kind(Kind::Permits(1)).shared().view().limit()
    }

    /// Sets the number of permits for all clients.
    ///
    /// # Errors
    /// - [`Unusable`](LockError::Unusable): the number is 0.
    /// - [`NotPermitted`](LockError::NotPermitted): a permission is missing.
    /// - [`OutcomeUnknown`](LockError::OutcomeUnknown): no server confirmed it within the client's operation timeout, or
    ///   within the limit.
    /// - Otherwise as [`Lock::contenders`].
    ///
    /// # On connection loss
    /// It is repeated until the outcome is certain.
    ///
    /// # Cancel safety
    /// If it is dropped, the limit may or may not be set.
    pub fn set_limit(&self, limit: u32) -> Pending<(), LockError> {
        self.lock.of_kind(Kind::Permits(1)).shared().set_limit(limit)
    }
}
