//! Floor 3: locks. No unsafe code, and nothing of the C client: only the client above it.
//!
//! One acquire loop (`acquire.rs`) drives three strategies (`poll.rs`, `watch.rs`, `queue.rs`). A
//! claim (`claim.rs`) is the node that stands for one attempt; when it holds, a tenure
//! (`guard.rs`) takes it over. It runs on [`client`](crate::client) alone. Inside, errors are the client's;
//! callers get a lock's own (`error.rs`), which `refusal.rs` makes of them.

mod acquire;
mod attempt;
mod claim;
mod coalesced;
mod contender;
mod deletion_watch;
mod error;
mod guard;
mod layout;
mod listing;
mod lookup;
mod loss;
mod memory;
mod name;
mod poll;
mod queue;
mod refusal;
mod scan;
mod sent_after;
#[cfg(test)]
mod simulation;
mod spec;
mod strategy;
mod watch;

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use contender::{Contender, HeldSince};
pub use error::LockError;
pub use guard::{Guard, LostSignal};
pub use loss::{GuardState, LostReason};
pub use strategy::Strategy;

use crate::client::{Client, Hold, TrustedSession};
use crate::error::{Code, Error, Result};
use crate::process::inherited;
use crate::runtime::{Pending, now, within};
use crate::znode::Acl;
use claim::Node;
use deletion_watch::DeletionWatch;
use guard::Tenure;
use name::Naming;
use refusal::{NOT_A_LOCK, NOT_A_QUEUE, Obstacle, refused};
use scan::{Claimed, Scan};
use spec::Spec;

/// A lock on a path. Clones are the same lock; every acquire, also by clones, contends for it.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
///
/// let zk = zklock::Client::connect("127.0.0.1:2181").wait()?;
/// let lock = zk.lock("/locks/invoices").label("nightly run");
/// match lock.acquire_within(Duration::from_secs(5)).wait() {
///     Ok(guard) => println!("mine, with token {}", guard.fencing_token()),
///     Err(error) if error.is_timeout() => println!("{error}"),
///     Err(error) => return Err(error.into()),
/// }
/// # Ok(()) }
/// ```
///
/// # Permissions
/// What ZooKeeper's access control has to give to the session of a contender:
///
/// | of | in a queue | with the other strategies |
/// |---|---|---|
/// | the lock's path | `READ`, `CREATE`, `DELETE` | `READ` (of the claim, which is this znode) |
/// | the znode above it | | `CREATE`, `DELETE` |
/// | the claims | `READ` | |
/// | the last znode above it that exists | `CREATE`, where some are missing | the same |
///
/// What a lock makes gets the ACL of [`acl`](Lock::acl), which gives everything to everybody unless it is set.
/// ZooKeeper asks for `DELETE` on the znode above the one that is deleted. Where a session has it not, its
/// claims stay until it ends: [`Guard::release`] fails with [`NotPermitted`](LockError::NotPermitted), a claim that
/// is given up or dropped is logged as a warning, and the client replaces its session as soon as it holds no lock
/// on it. That is an expiry to everything else on the session: acquires that wait go to the end of the queue,
/// ephemeral znodes and watches of the program go, [`Client::states`] says `Lost`. (Not with
/// [`reopen(false)`](crate::ClientOptions::reopen), and not on a handle that a C program owns: there claims stay
/// until that session ends.)
///
/// # On connection loss
/// An acquire goes on: it waits for the next connection, looks up what became of its claim, and
/// keeps its place in the queue if the session survived. It ends by its deadline, if it has one,
/// or when the client is closed.
///
/// # Cancellation
/// Dropping the [`Pending`] of an acquire gives it up. Its claim is deleted in the background,
/// also when the reply to its creation was lost, and [at the end of the process](Guard#at-the-end-of-the-process)
/// as that of a guard that was dropped.
#[derive(Clone)]
pub struct Lock {
    client: Client,
    spec: Arc<Spec>,
    deletion_watch: Arc<DeletionWatch>,
}

impl Client {
    /// A lock on a path, with [`Strategy::Queue`]. What is missing of the path is made when the
    /// lock is acquired.
    pub fn lock(&self, path: &str) -> Lock {
        let spec = Spec {
            client: Arc::clone(self.inner()),
            path: path.into(),
            strategy: Strategy::default(),
            label: String::new(),
            acl: Acl::open().into(),
            naming: Naming::default(),
            memory: self.inner().remember(path),
            on_position: None,
        };
        Lock { client: self.clone(), spec: Arc::new(spec), deletion_watch: Arc::default() }
    }
}

impl Lock {
    /// Contends in another way. Everyone on one path has to use the same strategy.
    #[must_use]
    pub fn strategy(mut self, strategy: Strategy) -> Lock {
        Arc::make_mut(&mut self.spec).strategy = strategy;
        self
    }

    /// What the owner calls itself, for people who look at who holds the lock: one line of up to
    /// 256 characters. Host, process and thread are written anyway.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Lock {
        Arc::make_mut(&mut self.spec).label = label.into();
        self
    }

    /// Who may do what with the znodes that are made for the lock: its claims, and what is missing
    /// of the path above them. Everyone may do everything unless this is set. Contenders have to be
    /// able to read and create; an empty list makes it [`Unusable`](LockError::Unusable).
    #[must_use]
    pub fn acl(mut self, acl: impl Into<Vec<Acl>>) -> Lock {
        Arc::make_mut(&mut self.spec).acl = acl.into().into();
        self
    }

    /// Names its claims otherwise, and tells of their place in the queue whenever that was listed.
    #[cfg(feature = "capi")]
    pub(crate) fn like_the_recipe(mut self, on_position: spec::OnPosition) -> Lock {
        let spec = Arc::make_mut(&mut self.spec);
        spec.naming = Naming::Recipe;
        spec.on_position = Some(on_position);
        self
    }

    /// The lock's path.
    pub fn path(&self) -> &str {
        &self.spec.path
    }

    /// Acquires the lock, however long that takes. It begins when it is awaited or waited for.
    ///
    /// # Errors
    /// [`Unusable`](LockError::Unusable) for a path that ZooKeeper does not allow or that is too long, for `/`
    /// with another strategy than [`Strategy::Queue`], a path that is something else than a lock of this
    /// strategy, a chroot that does not exist, or an empty ACL; [`NotPermitted`](LockError::NotPermitted);
    /// [`Closed`](LockError::Closed) when the client is closed and no session will follow;
    /// [`Store`](LockError::Store) for what else the servers refuse (a quota, say). Nothing is left behind. See
    /// [on connection loss](Lock#on-connection-loss) and [cancellation](Lock#cancellation).
    pub fn acquire(&self) -> Pending<Guard, LockError> {
        self.acquire_by(false, None)
    }

    /// As [`acquire`](Lock::acquire), within a deadline for all of it; zero looks once.
    ///
    /// # Errors
    /// As [`acquire`](Lock::acquire), and [`TimedOut`](LockError::TimedOut), which says who was ahead. No
    /// claim is left then.
    pub fn acquire_within(&self, timeout: Duration) -> Pending<Guard, LockError> {
        if timeout.is_zero() {
            return self.acquire_by(true, self.client.inner().operation_deadline());
        }
        // A time too far to name is no deadline.
        self.acquire_by(false, now().checked_add(timeout))
    }

    fn acquire_by(&self, once: bool, deadline: Option<Instant>) -> Pending<Guard, LockError> {
        let acquired = acquire::acquire_in_time(Arc::clone(&self.spec), once, deadline);
        let lock = self.clone();
        self.run("acquire", async move { Ok(lock.guard(acquired.await?)) })
    }

    /// Acquires the lock if nobody is ahead: neither a holder nor, in a queue, a waiter.
    ///
    /// # Errors
    /// As [`acquire`](Lock::acquire), and [`TimedOut`](LockError::TimedOut) when no server answers within the
    /// client's operation timeout.
    pub fn try_acquire(&self) -> Pending<Option<Guard>, LockError> {
        let deadline = self.client.inner().operation_deadline();
        let acquired = acquire::acquire(Arc::clone(&self.spec), true, deadline);
        let lock = self.clone();
        self.run("acquire", async move { Ok(acquired.await?.map(|held| lock.guard(held))) })
    }

    fn guard(self, (node, hold): (Node, Hold)) -> Guard {
        let tenure = Tenure::begin(Arc::clone(&self.spec.client), node, hold);
        self.deletion_watch.add(&tenure);
        Guard::new(tenure, self.client)
    }

    /// Runs an operation, unless there can be no such lock.
    fn run<T>(
        &self,
        op: &'static str,
        work: impl Future<Output = Result<T, LockError>> + Send + 'static,
    ) -> Pending<T, LockError> {
        let path = &self.spec.path;
        let refused = if self.client.is_inherited() {
            LockError::closed(path, inherited(op, ""))
        } else if let Err(why) = self.spec.strategy.check_path(path) {
            Obstacle::bad_path(why).at(path)
        } else {
            return Pending::run_as(op, Arc::clone(path), LockError::of_pending, work);
        };
        Pending::ready_as(LockError::of_pending, Err(refused))
    }

    /// Whether anybody holds the lock. In a queue, waiters alone count too: the first of them holds
    /// it the moment it looks.
    ///
    /// # Errors
    /// As [`contenders`](Lock::contenders).
    pub fn exists(&self) -> Pending<bool, LockError> {
        self.first_contenders(1).map(|first| Ok(!first?.is_empty()))
    }

    /// Who holds the lock.
    ///
    /// # Errors
    /// As [`contenders`](Lock::contenders).
    pub fn holder(&self) -> Pending<Option<Contender>, LockError> {
        self.first_contenders(1).map(|first| Ok(first?.into_iter().next()))
    }

    /// Who holds the lock, and who waits for it, in their order. Waiters are known only in a
    /// queue: those of the other strategies leave no node.
    ///
    /// # Errors
    /// As [`acquire`](Lock::acquire); [`Store`](LockError::Store) with the client's error also when no server
    /// answers within its operation timeout ([`is_timeout`](LockError::is_timeout)), or the connection is lost.
    pub fn contenders(&self) -> Pending<Vec<Contender>, LockError> {
        self.first_contenders(usize::MAX)
    }

    /// The first of them, up to that number.
    pub(crate) fn first_contenders(&self, number: usize) -> Pending<Vec<Contender>, LockError> {
        let lock = self.clone();
        let deadline = self.client.inner().operation_deadline();
        self.run("contenders", async move {
            let spec = &lock.spec;
            let look = async {
                let session = spec.client.trusted_session().await;
                let session = session.map_err(|error| LockError::closed(&spec.path, error))?;
                match spec.strategy {
                    Strategy::Queue => queued(spec, &session, number).await,
                    Strategy::Poll | Strategy::Watch => alone(&session, &spec.path).await,
                }
            };
            let late = || {
                let (op, detail) = ("contenders", "no word from the servers");
                let error = Error::with_detail(op, "", Code::OPERATION_TIMEOUT, detail);
                Err(LockError::store(&spec.path, error))
            };
            within(deadline, look, late).await
        })
    }
}

/// The first of a queue, up to that number; no others are read but the last, which dates the hold.
async fn queued(
    spec: &Spec,
    session: &TrustedSession,
    number: usize,
) -> Result<Vec<Contender>, LockError> {
    let refused = |error| refused(&spec.path, error);
    let listing = match spec.memory.list(session, &spec.path).await {
        Ok(listing) => listing,
        Err(error) if error.is_no_node() => return Ok(Vec::new()),
        Err(error) => return Err(refused(error)),
    };
    if listing.directory.is_ephemeral() {
        return Err(NOT_A_QUEUE.at(&spec.path));
    }
    let read = |Claimed { name, data, stat }: Claimed<'_>| {
        contender::read(name::join(&spec.path, name), &data, &stat)
    };
    let directory = listing.directory.czxid;
    let mut contenders = Vec::new();
    let mut claims = Scan::new(spec, session, directory, listing.in_order());
    // Where numbers say nothing of the order, only all of them do.
    let needed = if listing.is_out_of_turn { usize::MAX } else { number };
    if needed > 1 {
        claims = claims.wide();
    }
    while contenders.len() < needed {
        let Some(claim) = claims.next().await.map_err(refused)? else { break };
        contenders.push(read(claim));
    }
    if contenders.len() == needed {
        let last = listing.in_order().last().into_iter();
        let last = Scan::new(spec, session, directory, last).next().await;
        contenders.extend(last.map_err(refused)?.map(read));
    }
    if listing.is_out_of_turn {
        contenders.sort_by_key(|contender| contender.czxid);
    }
    contender::date_the_hold(&mut contenders, &listing.directory);
    contenders.truncate(number);
    Ok(contenders)
}

/// The holder of a lock whose znode is its claim.
async fn alone(session: &TrustedSession, path: &str) -> Result<Vec<Contender>, LockError> {
    match session.get(path).await {
        Ok((data, stat)) if stat.is_ephemeral() => {
            let mut holder = contender::read(path.to_owned(), &data, &stat);
            contender::date_the_only_hold(&mut holder);
            Ok(vec![holder])
        }
        Ok(_) => Err(NOT_A_LOCK.at(path)),
        Err(error) if error.is_no_node() => Ok(Vec::new()),
        Err(error) => Err(refused(path, error)),
    }
}

impl std::fmt::Debug for Lock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lock")
            .field("path", &self.spec.path)
            .field("strategy", &self.spec.strategy)
            .finish_non_exhaustive()
    }
}
