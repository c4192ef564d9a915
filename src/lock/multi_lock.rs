//! Several locks that are acquired together.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Lock;
use super::ahead::Ahead;
use super::caller::Caller;
use super::error::LockError;
use super::guard::Guard;
use super::op::LockOp;
use super::store::{StoredLock, Tried};
use super::together::Together;
use crate::error::Code;
use crate::runtime::Pending;

/// Several locks that are acquired together: all, or none.
///
/// ```
/// use zklock::{LockError, MultiLock, LocalStore};
///
/// # fn main() -> Result<(), LockError> {
/// # let zk = LocalStore::new();
/// let accounts = MultiLock::new([zk.lock("/accounts/7"), zk.lock("/accounts/4711")]);
/// let guard = accounts.acquire().wait()?;
/// assert!(zk.lock("/accounts/7").is_locked().wait()?);
/// // ... both are ours ...
/// guard.release().wait()
/// # }
/// ```
///
/// The locks may be of any kind, but no two may have the same path. One [`Guard`] covers all of them. Its state is the
/// worst of theirs, and it is lost when one of them is. [`Guard::tokens`] gives the token of each. [`Guard::multi`] and
/// the other guarded writes happen only while all are held.
///
/// # Order, and deadlock
/// **Queues of one [`Client`](crate::Client)** get all claims in one transaction. So two multi-locks have the same
/// order in every queue that they share, whatever order you name the locks in, and cannot deadlock. The transaction's
/// zxid is the token of all claims. A lock that gets its turn early is held while the others are waited for.
///
/// **Other locks** are acquired before the queues, one after the other in the order of their paths: locks of another
/// strategy, within a process, with [`Interop::All`](crate::Interop), with [hand-off](Lock::local_handoff) or with
/// [owners](crate::ReentrantLock::owned_by). So are queues of several clients of the same servers. Each other group of
/// servers gets its own transaction. If one lock fails, the earlier ones are released.
///
/// Users of multi-locks do not deadlock if all of them use each lock with the same path, strategy,
/// [`Interop`](crate::Interop) and client, and if no multi-lock takes queues of several clients of the same servers while
/// another takes two of these queues in one transaction. A program that holds one of the locks alone and then acquires
/// another can deadlock.
#[derive(Clone, Debug)]
pub struct MultiLock {
    locks: Arc<[Lock]>,
}

impl MultiLock {
    /// A multi-lock of these locks. Sends nothing.
    pub fn new(locks: impl IntoIterator<Item = Lock>) -> MultiLock {
        let mut locks: Vec<Lock> = locks.into_iter().collect();
        locks.sort_by(|one, other| one.path().cmp(other.path()));
        MultiLock { locks: locks.into() }
    }

    /// The locks, in the order of their paths.
    pub fn locks(&self) -> &[Lock] {
        &self.locks
    }

    /// Acquires all of them. It waits without a limit, or [within](Pending::within) one limit for all.
    ///
    /// # Errors
    /// [`Unusable`](LockError::Unusable) if there are no locks, or two on one path. Otherwise as [`Lock::acquire`], for
    /// the first lock that fails. Nothing is left behind.
    ///
    /// # On connection loss
    /// As of [a lock](Lock#on-connection-loss): the outcome of the transaction is looked up. If one claim is gone, all
    /// are recreated.
    ///
    /// # Cancel safety
    /// As of [a lock](Lock#cancel-safety): dropping it deletes all claims.
    pub fn acquire(&self) -> Pending<Guard, LockError> {
        let (stored, path) = (self.stored(), self.locks.first().map_or("", Lock::path));
        let ahead = Arc::new(Ahead::default());
        let (late, caller) = (Arc::clone(&ahead), Caller::present());
        LockOp::Acquire
            .run(path, async move {
                let stored = stored?;
                let steps = steps(&stored);
                loop {
                    let mut guards = Vec::with_capacity(stored.len());
                    for step in &steps {
                        let acquiring = caller.acts(|| step.acquire());
                        late.is_of(acquiring.late());
                        guards.extend(step.places(acquiring.await?));
                    }
                    // Those before the last may have been lost while it was waited for.
                    if !guards.iter().any(|(_, guard)| guard.is_lost()) {
                        return Ok(together(guards));
                    }
                }
            })
            .when_late(ahead)
    }

    /// Acquires all of them if no other contender is ahead at any: no holder and, in a queue, no waiter.
    ///
    /// Cancel safety: as [`acquire`](MultiLock::acquire).
    ///
    /// # Errors
    /// As [`acquire`](MultiLock::acquire). [`TimedOut`](LockError::TimedOut) means that no server answered within the
    /// client's operation timeout.
    pub fn try_acquire(&self) -> Pending<Option<Guard>, LockError> {
        let (stored, path) = (self.stored(), self.locks.first().map_or("", Lock::path));
        let caller = Caller::present();
        LockOp::Acquire.run(path, async move {
            let stored = stored?;
            let mut guards = Vec::with_capacity(stored.len());
            for step in steps(&stored) {
                match caller.acts(|| step.try_acquire()).await? {
                    Ok(acquired) => guards.extend(step.places(acquired)),
                    Err(_ahead) => return Ok(None),
                }
            }
            let is_lost = guards.iter().any(|(_, guard)| guard.is_lost());
            Ok((!is_lost).then(|| together(guards)))
        })
    }

    /// All of them, one at least; or why there can be no such lock.
    fn stored(&self) -> Result<Vec<Arc<dyn StoredLock>>, LockError> {
        let refused = |path, why| Err(LockError::unusable(path, why, Code::BAD_ARGUMENTS));
        if self.locks.is_empty() {
            return refused("", "a multi-lock has one lock at least");
        }
        let same = self.locks.windows(2).find(|two| two[0].path() == two[1].path());
        if let Some(two) = same {
            return refused(two[0].path(), "two locks of a multi-lock are on one path");
        }
        Ok(self.locks.iter().map(Lock::shared).collect())
    }
}

/// Locks that are acquired in one step, and their places among all.
struct Step {
    places: Vec<usize>,
    locks: Vec<Arc<dyn StoredLock>>,
}

/// The steps of an acquire. Locks without a transaction come first, by their paths: their users hold nothing in the queues
/// of a transaction while they wait for each other. Servers come in the same order for all users.
fn steps(all: &[Arc<dyn StoredLock>]) -> Vec<Step> {
    let alone = |place: usize| Step { places: vec![place], locks: vec![Arc::clone(&all[place])] };
    let (mut steps, mut by_servers) = (Vec::new(), BTreeMap::<_, Vec<(u64, usize)>>::new());
    for (place, lock) in all.iter().enumerate() {
        match lock.transaction() {
            Some((servers, client)) => by_servers.entry(servers).or_default().push((client, place)),
            None => steps.push(alone(place)),
        }
    }
    for locks in by_servers.into_values() {
        let is_of_one_client = locks.iter().all(|(client, _)| *client == locks[0].0);
        let singles = locks.into_iter().map(|(_, place)| alone(place));
        if is_of_one_client {
            let (places, locks): (Vec<_>, Vec<_>) =
                singles.map(|step| (step.places, step.locks)).unzip();
            steps.push(Step { places: places.concat(), locks: locks.concat() });
        } else {
            steps.extend(singles);
        }
    }
    steps
}

impl Step {
    fn first(&self) -> Arc<dyn StoredLock> {
        Arc::clone(&self.locks[0])
    }

    fn acquire(&self) -> Pending<Vec<Guard>, LockError> {
        let together = self.first().acquire_together(&self.locks);
        together.unwrap_or_else(|| self.first().acquire().map(|guard| Ok(vec![guard?])))
    }

    fn try_acquire(&self) -> Pending<Tried<Vec<Guard>>, LockError> {
        let together = self.first().try_together(&self.locks);
        together.unwrap_or_else(|| {
            self.first().try_acquire().map(|tried| Ok(tried?.map(|guard| vec![guard])))
        })
    }

    fn places(&self, guards: Vec<Guard>) -> impl Iterator<Item = (usize, Guard)> {
        self.places.iter().copied().zip(guards)
    }
}

fn together(mut guards: Vec<(usize, Guard)>) -> Guard {
    guards.sort_unstable_by_key(|(place, _)| *place);
    let guards = guards.into_iter().map(|(_, guard)| guard).collect();
    Together::begin(guards).unwrap_or_else(|| unreachable!("there is one lock at least"))
}
