//! A lock of a client's, for the face.

use std::any::Any;
use std::future::Future;
use std::sync::Arc;

use super::acquire;
use super::acquire::attempt::Acquired;
use super::acquire::seen_ahead::SeenAhead;
use super::contenders;
use super::contenders::holder;
use super::contenders::revoke;
use super::hold::Tenure;
use super::hold::deletion_watch::watch_once_old;
use super::kinds::limit_node;
use super::refusal::{Obstacle, refused};
use super::spec::{HoldSpec, LockSpec, NamingSpec, Spec};
use crate::client::{Client, TrustedSession};
use crate::error::{Code, Error};
use crate::lock::{
    ACQUIRED, AcquireTrace, Change, Contender, Guard, Interop, KeyedLocks, Lock, LockError, LockOp,
    LockView, ReadWriteLock, Revocation, Semaphore, StoredLock, Strategy, TAKEN, Tried, ready,
};
use crate::process::inherited;
use crate::runtime::{Late, Pending, within};
use crate::znode::{Acl, Permissions};

#[derive(Clone)]
struct ZooKeeperLock {
    client: Client,
    spec: Arc<Spec>,
}

impl Client {
    /// A lock on a path, with [`Strategy::Queue`]. An acquire creates the missing parts of the path. Names that begin
    /// with `zl-` are reserved: a lock or recipe on such a path is refused.
    ///
    /// # Permissions
    /// A contender's session needs these permissions of ZooKeeper:
    ///
    /// | on | in a queue | with the other strategies |
    /// |---|---|---|
    /// | the lock's path | `READ`, `CREATE`, `DELETE` | `READ` (of the claim, which is this znode) |
    /// | the znode above it | | `CREATE`, `DELETE` |
    /// | the claims | `READ` | |
    /// | the last existing znode above it | `CREATE`, if some are missing | the same |
    ///
    /// Znodes of a lock get the ACL of [`Lock::acl`]. By default it allows everything to all clients.
    ///
    /// ZooKeeper checks `DELETE` on the parent of a deleted znode. Without it, a session's claims stay until the
    /// session ends:
    /// - [`Guard::release`] fails with [`NotPermitted`](LockError::NotPermitted).
    /// - A claim of a cancelled acquire or a dropped guard is logged as a warning.
    /// - The client replaces its session as soon as that holds no lock. For everything else on the session that is an
    ///   expiry: waiting acquires join the end of the queue, ephemeral znodes and watches are gone, and
    ///   [`Client::states`] reports `Lost`. It does not do so with [`reopen(false)`](crate::ClientOptions::reopen), or
    ///   on a handle that a C program owns.
    pub fn lock(&self, path: &str) -> Lock {
        let lock = LockSpec {
            client: Arc::clone(self.inner()),
            path: path.into(),
            memory: self.inner().registry.of(path),
            strategy: Strategy::default(),
            acl: Arc::clone(&self.inner().open_acl),
            limit: 0,
            leaves_nothing: false,
        };
        let (naming, hold) = (NamingSpec::default(), HoldSpec::default());
        let spec = Spec { lock: Arc::new(lock), naming, hold };
        Lock::of_program(ZooKeeperLock { client: self.clone(), spec: Arc::new(spec) })
    }

    /// A read/write lock on a path, in a queue, with the permissions of [`lock`](Client::lock). Its claims have the
    /// names of Curator's `InterProcessReadWriteLock`, so both exclude each other on one path. A plain
    /// [`lock`](Client::lock) on that path excludes its readers and writers.
    pub fn read_write(&self, path: &str) -> ReadWriteLock {
        ReadWriteLock::new(self.lock(path))
    }

    /// A semaphore on a path, in a queue. It has this number of permits, unless its znode has another. That znode is
    /// persistent. Its data holds the number of permits, and its children are the claims.
    ///
    /// It needs the permissions of [`lock`](Client::lock), and `WRITE` on the path and on the claims. A lock of another
    /// kind on that path takes all permits, and waits until none is taken.
    pub fn semaphore(&self, path: &str, permits: u32) -> Semaphore {
        Semaphore::new(self.lock(path), permits)
    }

    /// Locks by key below a path. Sends nothing.
    pub fn locks(&self, path: &str) -> KeyedLocks {
        KeyedLocks::below(self.lock(path))
    }
}

impl Lock {
    /// Sets the ACL of the znodes that the lock creates: its claims, and missing parts of the path. By default all
    /// clients may do everything. Contenders must be able to read and create.
    ///
    /// A list that is empty, or lets nobody read, makes the lock [`Unusable`](LockError::Unusable). So does any list for a lock outside ZooKeeper:
    /// other stores cannot protect single locks.
    #[must_use]
    pub fn acl(self, acl: impl Into<Vec<Acl>>) -> Lock {
        Lock::new(self.stored().with(Change::Acl(acl.into().into())))
    }

    /// Names its claims as the C recipe does, and reports their place in the queue after each listing.
    #[cfg(feature = "capi")]
    pub(crate) fn like_the_recipe(self, on_position: super::spec::OnPosition) -> Lock {
        let Some(stored) = self.stored().as_any().downcast_ref::<ZooKeeperLock>() else {
            return self;
        };
        Lock::new(stored.changed(|spec| spec.naming.on_position = Some(on_position)))
    }
}

impl ZooKeeperLock {
    fn changed(&self, change: impl FnOnce(&mut Spec)) -> Arc<ZooKeeperLock> {
        let mut changed = self.clone();
        change(Arc::make_mut(&mut changed.spec));
        Arc::new(changed)
    }

    fn lock_changed(&self, change: impl FnOnce(&mut LockSpec)) -> Arc<ZooKeeperLock> {
        self.changed(|spec| change(Arc::make_mut(&mut spec.lock)))
    }

    fn at(&self, path: &str) -> ZooKeeperLock {
        let mut at = self.clone();
        let lock = Arc::make_mut(&mut Arc::make_mut(&mut at.spec).lock);
        (lock.path, lock.memory) = (path.into(), self.client.inner().registry.of(path));
        at
    }

    fn guard(&self, acquired: Acquired, trace: &AcquireTrace) -> Guard {
        let tenure = Tenure::begin(&self.spec, acquired, trace);
        watch_once_old(&tenure, tenure.node.czxid);
        Guard::new(tenure, self.client.to_store(), trace.started)
    }

    fn queues_of_this_client(&self, all: &[Arc<dyn StoredLock>]) -> Option<Vec<ZooKeeperLock>> {
        let queue = |stored: &Arc<dyn StoredLock>| {
            let lock = stored.as_any().downcast_ref::<ZooKeeperLock>()?;
            let is_one = lock.transaction().is_some_and(|it| Some(it) == self.transaction());
            is_one.then(|| lock.clone())
        };
        all.iter().map(queue).collect()
    }

    /// Fails with the reason if no such lock can exist.
    fn check(&self) -> Result<(), &'static str> {
        let Spec { lock, naming, .. } = &*self.spec;
        lock.strategy.check_path(&lock.path)?;
        let may_read = |acl: &Acl| acl.permissions.contains(Permissions::READ);
        if !lock.acl.is_empty() && !lock.acl.iter().any(may_read) {
            return Err(
                "its ACL lets nobody read its claims: after a lost reply they could not be found",
            );
        }
        naming.interop.check(naming.kind, lock.strategy)?;
        naming.kind.check(lock.strategy, &lock.path, lock.limit)
    }

    /// Looks at the servers, for no longer than an operation may take.
    fn look<T, F>(
        &self,
        op: LockOp,
        look: impl FnOnce(TrustedSession) -> F + Send + 'static,
    ) -> Pending<T, LockError>
    where
        F: Future<Output = Result<T, LockError>> + Send + 'static,
    {
        let lock = Arc::clone(&self.spec.lock);
        let deadline = lock.client.operation_deadline();
        self.run(op, async move {
            let looked = async { look(lock.session().await?).await };
            let late = || {
                let detail = "no word from the servers";
                let error = Error::with_detail(op.name(), "", Code::OPERATION_TIMEOUT, detail);
                Err(LockError::store(&lock.path, error))
            };
            within(deadline, looked, late).await
        })
    }

    /// Runs an operation, unless no such lock can exist.
    fn run<T>(
        &self,
        op: LockOp,
        work: impl Future<Output = Result<T, LockError>> + Send + 'static,
    ) -> Pending<T, LockError> {
        let path = &self.spec.lock.path;
        let refused = if self.client.is_inherited() {
            LockError::closed(path, inherited(op.name(), ""))
        } else if let Err(why) = self.check() {
            Obstacle::bad_path(why).at(path)
        } else {
            return op.run(Arc::clone(path), work);
        };
        ready(Err(refused))
    }
}

/// The first unusable one, or the first of all.
fn usable(locks: &[ZooKeeperLock]) -> &ZooKeeperLock {
    locks.iter().find(|lock| lock.check().is_err()).unwrap_or(&locks[0])
}

async fn hold_together(
    locks: Vec<ZooKeeperLock>,
    no_wait: bool,
    ahead: Arc<SeenAhead>,
) -> Result<Option<Vec<Guard>>, LockError> {
    let traces: Vec<_> = locks.iter().map(|lock| lock.spec.trace()).collect();
    let specs = locks.iter().map(|lock| Arc::clone(&lock.spec));
    let acquired = acquire::acquire_together(specs, no_wait, &ahead).await;
    for trace in &traces {
        trace.ended(&acquired, |acquired| if acquired.is_some() { ACQUIRED } else { TAKEN });
    }
    let Some(acquired) = acquired? else { return Ok(None) };
    let held = locks.iter().zip(acquired).zip(&traces);
    Ok(Some(held.map(|((lock, acquired), trace)| lock.guard(acquired, trace)).collect()))
}

impl StoredLock for ZooKeeperLock {
    fn path(&self) -> &str {
        &self.spec.lock.path
    }

    fn strategy(&self) -> Strategy {
        self.spec.lock.strategy
    }

    fn with(&self, change: Change) -> Arc<dyn StoredLock> {
        match change {
            Change::Strategy(strategy) => self.lock_changed(|lock| lock.strategy = strategy),
            Change::Label(label) => self.changed(|spec| spec.hold.label = label),
            Change::Limit(limit) => self.lock_changed(|lock| lock.limit = limit),
            Change::Kind(kind) => self.changed(|spec| spec.naming.kind = kind),
            Change::Interop(interop) => self.changed(|spec| spec.naming.interop = interop),
            Change::Path(path) => Arc::new(self.at(&path)),
            Change::Key(path) => self.at(&path).lock_changed(|lock| lock.leaves_nothing = true),
            Change::Acl(acl) => self.lock_changed(|lock| lock.acl = acl),
        }
    }

    fn acquire(self: Arc<Self>) -> Pending<Guard, LockError> {
        let ahead = Arc::new(SeenAhead::default());
        let (lock, trace, seen) = (Arc::clone(&self), self.spec.trace(), Arc::clone(&ahead));
        let acquired = async move {
            let acquired = acquire::acquire(&lock.spec, &seen).await;
            trace.ended(&acquired, |_| ACQUIRED);
            Ok(lock.guard(acquired?, &trace))
        };
        self.run(LockOp::Acquire, acquired).when_late(ahead).carried_on()
    }

    fn try_acquire(self: Arc<Self>) -> Pending<Result<Guard, Option<Contender>>, LockError> {
        let deadline = self.client.inner().operation_deadline();
        let (lock, trace) = (Arc::clone(&self), self.spec.trace());
        self.run(LockOp::Acquire, async move {
            let tried = acquire::try_acquire(&lock.spec, deadline).await;
            trace.ended(&tried, |tried| if tried.is_ok() { ACQUIRED } else { TAKEN });
            Ok(tried?.map(|held| lock.guard(held, &trace)))
        })
    }

    fn transaction(&self) -> Option<(&str, u64)> {
        let Spec { lock, naming, .. } = &*self.spec;
        let is_queue = lock.strategy == Strategy::Queue && naming.interop == Interop::Most;
        is_queue.then(|| (lock.client.hosts_string(), lock.client.id()))
    }

    fn acquire_together(
        self: Arc<Self>,
        all: &[Arc<dyn StoredLock>],
    ) -> Option<Pending<Vec<Guard>, LockError>> {
        let locks = self.queues_of_this_client(all)?;
        let ahead = Arc::new(SeenAhead::default());
        let late = Arc::clone(&ahead);
        let acquired = hold_together(locks.clone(), false, Arc::clone(&ahead));
        let path = Arc::clone(&self.spec.lock.path);
        let acquired = async move { acquired.await?.ok_or_else(|| late.error(&path)) };
        Some(usable(&locks).run(LockOp::Acquire, acquired).when_late(ahead))
    }

    fn try_together(
        self: Arc<Self>,
        all: &[Arc<dyn StoredLock>],
    ) -> Option<Pending<Tried<Vec<Guard>>, LockError>> {
        let locks = self.queues_of_this_client(all)?;
        let (ahead, deadline) =
            (Arc::new(SeenAhead::default()), self.client.inner().operation_deadline());
        let tried = hold_together(locks.clone(), true, Arc::clone(&ahead));
        let path = Arc::clone(&self.spec.lock.path);
        Some(usable(&locks).run(LockOp::Acquire, async move {
            let late = || Err(ahead.error(&path));
            let tried = within(deadline, Box::pin(tried), late).await?;
            Ok(tried.ok_or_else(|| ahead.take()))
        }))
    }

    fn view(self: Arc<Self>) -> Arc<dyn LockView> {
        self
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl LockView for ZooKeeperLock {
    fn contenders(self: Arc<Self>, number: usize) -> Pending<Vec<Contender>, LockError> {
        let lock = Arc::clone(&self.spec.lock);
        let look = move |session| async move { contenders::first(&lock, &session, number).await };
        self.look(LockOp::Contenders, look)
    }

    fn revoke(
        self: Arc<Self>,
        holder: Contender,
        revocation: Revocation,
    ) -> Pending<bool, LockError> {
        let lock = Arc::clone(&self.spec.lock);
        self.run(LockOp::Revoke, async move { revoke::revoke(&lock, &holder, &revocation).await })
    }

    fn limit(self: Arc<Self>) -> Pending<u32, LockError> {
        let lock = Arc::clone(&self.spec.lock);
        self.look(LockOp::Limit, |session| async move {
            let read = limit_node::read(&lock, &session).await;
            read.map_err(|error| refused(&lock.path, error))
        })
    }

    fn set_limit(self: Arc<Self>, limit: u32) -> Pending<(), LockError> {
        let changed = self.lock_changed(|lock| lock.limit = limit);
        let lock = Arc::clone(&changed.spec.lock);
        changed.run(LockOp::SetLimit, async move { limit_node::change(&lock, limit).await })
    }

    fn holder_other_than(
        self: Arc<Self>,
        reported: Option<Option<i64>>,
    ) -> Pending<Option<Contender>, LockError> {
        let lock = Arc::clone(&self.spec.lock);
        self.run(LockOp::Holder, async move { holder::other_than(&lock, reported).await })
    }
}
