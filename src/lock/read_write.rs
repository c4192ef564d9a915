//! A read/write lock: two locks on one path.

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
/// Neither can be turned into the other while it is held: who reads and asks for [`write`](ReadWriteLock::write) waits
/// for its own guard.
///
/// [`Client::read_write`](crate::Client::read_write) makes one that is kept in ZooKeeper,
/// [`local::Store::read_write`](crate::local::Store::read_write) one within this process.
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
