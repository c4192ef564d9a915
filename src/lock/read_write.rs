//! A read/write lock: three locks on one path.

use super::Lock;
use super::kind::Kind;

/// A lock that many readers hold together, or one writer alone.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let zk = zklock::Client::connect("127.0.0.1:2181").wait()?;
/// let catalogue = zk.read_write("/locks/catalogue");
/// let reading = catalogue.read().acquire().wait()?;
/// // ... others read, too; nobody writes ...
/// reading.release().wait()?;
/// let writing = catalogue.write().acquire().wait()?;
/// // ... nobody else has it ...
/// writing.release().wait()?;
/// # Ok(()) }
/// ```
///
/// All contenders stand in one fair queue. A reader waits for earlier writers; a writer waits for all earlier claims.
/// So no reader overtakes a waiting writer, and no writer waits for later readers. A reader's [fencing
/// token](super::Guard::fencing_token) lies between those of the writers before and after it.
///
/// # Upgrade and downgrade
/// An [`upgradeable`](ReadWriteLock::upgradeable) holder reads beside readers and can [become a
/// writer](super::Guard::upgrade) without releasing. Only one holder at a time is upgradeable, so upgrades cannot
/// deadlock. [`Guard::downgrade`](super::Guard::downgrade) turns a writer into an upgradeable holder or a reader. A
/// plain reader cannot be upgraded. If it acquires [`write`](ReadWriteLock::write), it waits for its own guard.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let zk = zklock::Client::connect("127.0.0.1:2181").wait()?;
/// use zklock::Access;
///
/// let guard = zk.read_write("/locks/catalogue").upgradeable().acquire().wait()?;
/// // ... look, while others read ...
/// guard.upgrade().wait()?;
/// // ... write: what was read is still true ...
/// guard.downgrade(Access::Read).wait()?;
/// # Ok(()) }
/// ```
///
/// [`Client::read_write`](crate::Client::read_write) makes one in ZooKeeper,
/// [`LocalStore::read_write`](crate::LocalStore::read_write) one within this process.
#[derive(Clone, Debug)]
pub struct ReadWriteLock {
    lock: Lock,
}

impl ReadWriteLock {
    pub(crate) fn new(lock: Lock) -> ReadWriteLock {
        ReadWriteLock { lock }
    }

    /// A name for the owner, of readers and writers: as [`Lock::label`].
    #[must_use]
    pub fn label(self, label: impl Into<String>) -> ReadWriteLock {
        ReadWriteLock { lock: self.lock.label(label) }
    }

    /// The lock's path.
    pub fn path(&self) -> &str {
        self.lock.path()
    }

    /// The lock of readers; several hold it at a time. It waits for writers only. A try fails if a writer holds or
    /// waits. Its [`contenders`](Lock::contenders) include writers, and its [`holder`](Lock::holder) is the first of
    /// all holders.
    pub fn read(&self) -> Lock {
        self.lock.of_kind(Kind::Read)
    }

    /// The lock of readers that may become writers. It is held beside readers, by one such holder at a time. It waits
    /// for writers and its own kind. To contenders that do not know this kind, it is a reader.
    pub fn upgradeable(&self) -> Lock {
        self.lock.of_kind(Kind::Upgradeable)
    }

    /// The lock of writers. Its holder is alone.
    pub fn write(&self) -> Lock {
        self.lock.of_kind(Kind::Write)
    }
}
