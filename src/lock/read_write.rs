//! A read/write lock: three locks on one path.

use super::Lock;
use super::kind::Kind;

/// A lock that readers hold together, and writers alone.
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
/// All stand in one fair queue. A reader waits for the writers before it, a writer for all that are before it. So no
/// reader overtakes a writer that waits, and no writer waits for readers that come after it. A reader's
/// [fencing token](super::Guard::fencing_token) is larger than that of the writer before it, and smaller than that
/// of the next one.
///
/// # Upgrade and downgrade
/// What is held as [`upgradeable`](ReadWriteLock::upgradeable) reads beside readers, and [becomes a
/// writer's](super::Guard::upgrade) without a moment in which it is not held. One such holds at a time, so no two wait for each
/// other. A writer's hold becomes a reader's, or an upgradeable one's, by [`Guard::downgrade`](super::Guard::downgrade). A
/// plain reader can become nothing else: one that asks for [`write`](ReadWriteLock::write) waits for its own guard.
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
/// [`Client::read_write`](crate::Client::read_write) makes one that is kept in ZooKeeper,
/// [`LocalStore::read_write`](crate::LocalStore::read_write) one within this process.
#[derive(Clone)]
pub struct ReadWriteLock {
    lock: Lock,
}

impl ReadWriteLock {
    /// Of a lock on the same path, for its store and its label.
    pub(crate) fn new(lock: Lock) -> ReadWriteLock {
        ReadWriteLock { lock }
    }

    /// What the owner calls itself, of readers and writers: as [`Lock::label`].
    #[must_use]
    pub fn label(self, label: impl Into<String>) -> ReadWriteLock {
        ReadWriteLock { lock: self.lock.label(label) }
    }

    /// The lock's path.
    pub fn path(&self) -> &str {
        self.lock.path()
    }

    /// The lock of readers: several hold it at a time. It waits for writers only, and a try of it fails where one holds
    /// or waits. Its [`contenders`](Lock::contenders) are writers, too; [`holder`](Lock::holder) is the first of those
    /// who hold.
    pub fn read(&self) -> Lock {
        self.lock.of_kind(Kind::Read)
    }

    /// The lock of readers that may become writers: it holds with readers, one such at a time, and waits for writers and
    /// those of its own kind. To contenders that know of no such kind it is a reader's.
    pub fn upgradeable(&self) -> Lock {
        self.lock.of_kind(Kind::Upgradeable)
    }

    /// The lock of writers: who holds it is alone.
    pub fn write(&self) -> Lock {
        self.lock.of_kind(Kind::Write)
    }
}

impl std::fmt::Debug for ReadWriteLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadWriteLock").field("path", &self.path()).finish_non_exhaustive()
    }
}
