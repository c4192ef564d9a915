//! A queue with at-least-once delivery: a consumer claims an element, and removes it when it is done.
//!
//! It has the elements of `queue/`, and another way to take them. A claim is a lock for the element, next to the queue. It
//! ends with the consumer's session, and then the element is delivered again. The element is removed in a transaction that
//! fails unless the claim is held. So a consumer that has lost its claim can't remove an element that another works on. A
//! lost reply is looked up while the claim is held: no other consumer removes the element then.

use std::future::Future;
use std::sync::Arc;

use futures_lite::future::or;

use super::persistent::{Persistent, pause, run};
use super::priority::{DEFAULT_PRIORITY, in_order, prefix};
use super::queue::{Queue, STEP_ASIDE, check_path};
use super::retry_budget::step_aside;
use crate::client::{Children, Client, Op, TrustedSession, Watch};
use crate::error::{Code, Error, Result};
use crate::lock::{Caller, Guard, LockError, LockOp, LostSignal, Strategy, ready};
use crate::path::own_name;
use crate::runtime::Pending;
use crate::znode::{Acl, Stat};

/// A queue at a path. Each element is delivered at least once, to one consumer at a time. Clones are the same queue.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let zk = zklock::Client::connect("127.0.0.1:2181").wait()?;
/// let jobs = zk.queue("/queues/jobs");
/// jobs.put("job 1").wait()?;
/// let job = jobs.take().wait()?; // or .await; waits for an element
/// println!("{}", String::from_utf8_lossy(job.data()));
/// job.done().wait()?; // removed; dropped without that, it is delivered again
/// # Ok(()) }
/// ```
///
/// Elements of one priority are delivered in the order in which they were put. Claimed elements are skipped, so several
/// consumers work at a time. An element that is delivered again may be overtaken by later ones.
///
/// # On the servers
/// Elements are persistent znodes: `qn-` and a number, as in the C recipe, or with a priority `qp-`, the priority and a
/// number. Programs with the C recipe can put and take elements, but they ignore claims: they may take an element that
/// a consumer works on. Claims are ephemeral znodes in a directory beside the queue (`/queues/zl-claims-jobs`).
///
/// # Cost
/// A put is one request. A take is five: two listings at once, the data, the claim, and a check that it still exists.
/// Removing it is one, and two for the claim in the background. All waiting consumers are notified when an element or a
/// claim comes or goes: with N of them, an element costs 8 N listings and up to N attempts to claim it. Listings grow
/// with the queue, so use it for hundreds of elements, not for a million.
#[derive(Clone, Debug)]
pub struct WorkQueue {
    client: Client,
    path: Arc<str>,
    acl: Arc<[Acl]>,
}

impl Client {
    /// A queue at a path. Sends nothing.
    pub fn queue(&self, path: &str) -> WorkQueue {
        WorkQueue { client: self.clone(), path: path.into(), acl: Acl::open().into() }
    }
}

impl WorkQueue {
    /// Sets the ACL of the znodes that it creates. By default all clients may do everything.
    #[must_use]
    pub fn acl(mut self, acl: impl Into<Vec<Acl>>) -> WorkQueue {
        self.acl = acl.into().into();
        self
    }

    /// Its path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Puts an element at the end. Creates missing parts of the path.
    ///
    /// # Errors
    /// - `CONNECTION_LOSS`: **the outcome is unknown** (see [`Counter`](crate::recipes::Counter#errors)).
    /// - `OPERATION_TIMEOUT`: no connection, and nothing was done. Within a [limit](Pending::within), unknown outcome.
    /// - `BAD_ARGUMENTS`: the path is not allowed, or the element is larger than a request can be.
    /// - Others: nothing was done, and why.
    ///
    /// # On connection loss
    /// It waits for the next connection and looks up there whether it was done. Nothing is put twice.
    ///
    /// # Cancel safety
    /// If it is dropped, the element may or may not be put.
    pub fn put(&self, data: impl Into<Vec<u8>>) -> Pending<()> {
        self.put_with_priority(DEFAULT_PRIORITY, data)
    }

    /// As [`put`](WorkQueue::put), with a priority: 0 is delivered first, and [`put`](WorkQueue::put) uses 128. It goes
    /// behind elements of the same priority.
    ///
    /// # Errors
    /// As [`put`](WorkQueue::put).
    pub fn put_with_priority(&self, priority: u8, data: impl Into<Vec<u8>>) -> Pending<()> {
        let (queue, data): (_, Vec<u8>) = (self.clone(), data.into());
        run("put", &self.path, async move {
            let elements = Queue::new(queue.client.clone(), &queue.path)?;
            let prefix = prefix(priority);
            match elements.add("put", &prefix, &data, &queue.acl).await {
                Err(error) if error.is_no_node() => queue.znode("put").make_parents().await?,
                put => return put,
            }
            elements.add("put", &prefix, &data, &queue.acl).await
        })
    }

    /// The data of the first element, claimed or not, without taking it. `None` means that the queue was empty when the
    /// connected server, which may lag behind, had it. Cancel safety: it changes nothing.
    ///
    /// # Errors
    /// `NO_AUTH`, `BAD_ARGUMENTS` (no path of a queue), or why the client is closed. Otherwise it waits for a server to answer; within a
    /// [limit](Pending::within) `OPERATION_TIMEOUT`.
    pub fn peek(&self) -> Pending<Option<Vec<u8>>> {
        let queue = self.clone();
        run("peek", &self.path, async move {
            let refuse = |why| Error::with_detail("peek", &queue.path, Code::BAD_ARGUMENTS, why);
            check_path(&queue.path).map_err(refuse)?;
            loop {
                let session = queue.client.inner().trusted_session().await?;
                match queue.first(&session).await {
                    Err(error) if error.is_transient() => pause(&error).await,
                    first => return first,
                }
            }
        })
    }

    /// Takes the first unclaimed element. It waits for one without a limit, or [within](Pending::within) one.
    ///
    /// # Errors
    /// Nothing was taken. As [`Lock::acquire`](crate::Lock::acquire), and [`Store`](LockError::Store) if the servers
    /// refuse to show the queue. Within a limit, [`Store`](LockError::Store) with `OPERATION_TIMEOUT`.
    ///
    /// # On connection loss
    /// It continues on the next connection or session.
    ///
    /// # Cancel safety
    /// Dropping it takes nothing. A claim made meanwhile is deleted.
    pub fn take(&self) -> Pending<Delivery, LockError> {
        let (queue, caller) = (self.clone(), Caller::present());
        self.taking(async move {
            loop {
                if let Some(delivery) = queue.next(true, &caller).await? {
                    return Ok(delivery);
                }
            }
        })
    }

    /// As [`take`](WorkQueue::take), but gives `None` if there is no unclaimed element.
    ///
    /// # Errors
    /// As [`take`](WorkQueue::take).
    pub fn try_take(&self) -> Pending<Option<Delivery>, LockError> {
        let (queue, caller) = (self.clone(), Caller::present());
        self.taking(async move { queue.next(false, &caller).await })
    }

    fn taking<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, LockError>> + Send + 'static,
    ) -> Pending<T, LockError> {
        match check_path(&self.path) {
            Ok(()) => LockOp::Take.run(Arc::clone(&self.path), work),
            Err(why) => {
                let refused = LockError::unusable(&self.path, why, Code::BAD_ARGUMENTS);
                ready(Err(refused))
            }
        }
    }

    async fn first(&self, session: &TrustedSession) -> Result<Option<Vec<u8>>> {
        let listed = present(session.children(&self.path).await)?;
        for name in in_order(&listed.names) {
            match session.get(&self.path_of(name)).await {
                Err(error) if error.is_no_node() => {}
                read => return read.map(|znode| Some(znode.data)),
            }
        }
        Ok(None)
    }

    /// Looks for an element until an answer is there; `None`: there was none, and if it was to be waited for, there may be
    /// one now.
    async fn next(&self, wait: bool, caller: &Caller) -> Result<Option<Delivery>, LockError> {
        let mut losses = 0;
        loop {
            let session = self.client.inner().trusted_session().await;
            let session = session.map_err(|error| LockError::closed(&self.path, error))?;
            let found = match self.free(&session).await {
                Ok((free, _)) if free.is_empty() && wait => self.wait(&session).await,
                found => found,
            };
            let trouble = match found {
                Ok((free, _)) if free.is_empty() => return Ok(None),
                Ok((free, queue)) => match self.claim(&session, &free[0], queue, caller).await? {
                    Ok(Some(delivery)) => return Ok(Some(delivery)),
                    // Another was faster.
                    Ok(None) => {
                        losses += 1;
                        step_aside(losses, STEP_ASIDE).await;
                        continue;
                    }
                    Err(error) => error,
                },
                Err(error) => error,
            };
            if !trouble.is_transient() {
                return Err(LockError::store(&self.path, trouble));
            }
            pause(&trouble).await;
        }
    }

    /// The elements that nobody has claimed, the first of them first, and the version of the queue's znode.
    async fn free(&self, session: &TrustedSession) -> Result<(Vec<String>, i32)> {
        let claims = self.claims();
        // Claims before elements: an element that was removed between the two is not in the second. Both at once.
        let (claimed, listed) = (session.children(&claims), session.children(&self.path));
        let (claimed, listed) = (present(claimed.await)?, present(listed.await)?);
        Ok((free(&claimed, &listed), listed.stat.version))
    }

    /// As [`free`](WorkQueue::free), but waits until there is one. None at all: the session is lost.
    async fn wait(&self, session: &TrustedSession) -> Result<(Vec<String>, i32)> {
        let claims = self.claims();
        while session.is_trusted() {
            let (claimed, no_claims) = watch(session, &claims).await?;
            let (listed, no_elements) = watch(session, &self.path).await?;
            let free = free(&claimed, &listed);
            if !free.is_empty() {
                return Ok((free, listed.stat.version));
            }
            let changed = or(async { drop(no_claims.await) }, async { drop(no_elements.await) });
            or(changed, session.lost()).await;
        }
        Ok((Vec::new(), 0))
    }

    /// Claims an element; `None`: another has, or it is gone.
    async fn claim(
        &self,
        session: &TrustedSession,
        name: &str,
        queue_version: i32,
        caller: &Caller,
    ) -> Result<Result<Option<Delivery>>, LockError> {
        let path = self.path_of(name);
        let read = match session.get(&path).await {
            Ok(read) => read,
            Err(error) if error.is_no_node() => return Ok(Ok(None)),
            Err(error) => return Ok(Err(error)),
        };
        let (data, stat) = (read.data, read.stat);
        // An element of the same name in a queue that was recreated has another claim.
        let claim = format!("{}/{name}-{:x}", self.claims(), stat.czxid);
        let lock = self.client.lock(&claim).strategy(Strategy::Watch).acl(&*self.acl);
        let guard = match caller.acts(|| lock.try_acquire()).await {
            Ok(Some(guard)) => Arc::new(guard),
            Ok(None) => return Ok(Ok(None)),
            Err(LockError::Store { source, .. }) => return Ok(Err(source)),
            Err(error) if error.is_timeout() => {
                return Ok(Err(Error::new("take", &self.path, Code::OPERATION_TIMEOUT)));
            }
            Err(error) => return Err(error),
        };
        // The consumer before may have removed the element after this one read it, but not after this claim. The claim
        // stays until the servers answer: without it, the next element would go first. The claim may be of a later
        // session than the read.
        Ok(match look("take", &self.client, &guard, &path, false).await {
            Ok(Some(now)) if (now.czxid, now.version) == (stat.czxid, stat.version) => {
                let (queue, client) = (Arc::clone(&self.path), self.client.clone());
                Ok(Some(Delivery { client, queue, queue_version, guard, path, data, stat }))
            }
            Ok(_) => Ok(None),
            Err(error) => Err(error),
        })
    }

    fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    fn claims(&self) -> String {
        let (above, name) = self.path.rsplit_once('/').unwrap_or_default();
        format!(concat!("{}/", own_name!("claims-"), "{}"), above, name)
    }

    fn znode(&self, op: &'static str) -> Persistent<'_> {
        Persistent { client: &self.client, op, path: &self.path, acl: &self.acl }
    }
}

/// A znode's children: of one that is not there none.
fn present(listed: Result<Children>) -> Result<Children> {
    match listed {
        Err(error) if error.is_no_node() => Ok(Children::default()),
        listed => listed,
    }
}

/// As [`present`], and a watch that ends when there may be others.
async fn watch(session: &TrustedSession, path: &str) -> Result<(Children, Watch)> {
    loop {
        match session.children_and_watch(path).await {
            Ok(listed) => return Ok((listed.value, listed.watch)),
            Err(error) if !error.is_no_node() => return Err(error),
            Err(_) => {}
        }
        let looked = session.exists_and_watch(path).await?;
        if looked.value.is_none() {
            return Ok((Children::default(), looked.watch));
        }
    }
}

/// The elements without a claim, the first first. If the queue was recreated, a claim on an element of the old queue also
/// counts for the new element of that name, until it ends.
fn free(claimed: &Children, listed: &Children) -> Vec<String> {
    let claimed = claimed.names.iter().filter_map(|claim| Some(claim.rsplit_once('-')?.0));
    let claimed: std::collections::HashSet<&str> = claimed.collect();
    let free = in_order(&listed.names).into_iter().filter(|name| !claimed.contains(name));
    free.map(str::to_owned).collect()
}

/// An element that was taken. It stays claimed as long as this exists.
///
/// Dropping it gives the element back, and another consumer takes it. The same happens when the session is lost or the
/// process ends. So the work on an element may be done twice, one after the other.
/// [`fencing_token`](Delivery::fencing_token) tells the deliveries apart.
#[derive(Debug)]
#[must_use = "dropping it gives the element back"]
pub struct Delivery {
    client: Client,
    queue: Arc<str>,
    queue_version: i32,
    /// The guard of its claim.
    pub(crate) guard: Arc<Guard>,
    path: String,
    data: Vec<u8>,
    stat: Stat,
}

impl Delivery {
    /// The data of the element.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// The path of the element.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// A number that grows with each delivery of this element: see [`Guard::fencing_token`].
    pub fn fencing_token(&self) -> i64 {
        self.guard.fencing_token()
    }

    /// Whether the element may already be delivered to another consumer, by the local clock. Costs no request.
    pub fn is_lost(&self) -> bool {
        self.guard.is_lost()
    }

    /// A signal of the loss of the session. It comes before the element is delivered to another consumer.
    pub fn lost(&self) -> LostSignal {
        self.guard.lost()
    }

    /// Removes the element: it is done and will not be delivered again.
    ///
    /// # Errors
    /// - [`NotHeld`](LockError::NotHeld): the claim was lost. The element is delivered again.
    /// - [`Store`](LockError::Store): another program has removed it (`NO_NODE`) or changed it (`BAD_VERSION`).
    /// - [`OutcomeUnknown`](LockError::OutcomeUnknown): the session was lost, or the client closed, before the outcome
    ///   could be looked up. The element may be delivered again.
    ///
    /// # On connection loss
    /// It waits for the next connection and looks up there whether the element was removed.
    ///
    /// # Cancel safety
    /// If it is dropped, the element may be removed, or delivered again.
    pub fn done(self) -> Pending<(), LockError> {
        let path = self.path.clone();
        LockOp::Multi.run(path, async move { self.remove().await })
    }

    async fn remove(self) -> Result<(), LockError> {
        let remove = [
            Op::Check { path: self.queue.to_string(), version: Some(self.queue_version) },
            Op::Delete { path: self.path.clone(), version: Some(self.stat.version) },
        ];
        let mut in_doubt = None;
        loop {
            let error = match self.guard.multi(&remove).await {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            match (error, in_doubt.take()) {
                (LockError::OutcomeUnknown { source: Some(source), .. }, _) => {
                    // Nobody else removes it while it is claimed.
                    if self.is_gone().await? {
                        return Ok(());
                    }
                    in_doubt = Some(source);
                }
                // The one before was executed after it was looked for.
                (LockError::Store { source, .. }, Some(_)) if source.is_no_node() => return Ok(()),
                (LockError::NotHeld { .. }, Some(source)) => {
                    return Err(LockError::outcome_unknown(&self.path, source));
                }
                (LockError::Store { source, .. }, doubt) if source.code().is_retryable() => {
                    in_doubt = doubt;
                    pause(&source).await;
                }
                (error, _) => return Err(error),
            }
        }
    }

    /// Whether the element is gone, while it is claimed.
    async fn is_gone(&self) -> Result<bool, LockError> {
        let looked = look("multi", &self.client, &self.guard, &self.path, true).await;
        let stat = looked.map_err(|error| LockError::outcome_unknown(&self.path, error))?;
        Ok(stat.is_none_or(|stat| stat.czxid != self.stat.czxid))
    }
}

/// Looks at a claimed element until an answer is there or the claim is lost.
async fn look(
    op: &'static str,
    client: &Client,
    guard: &Guard,
    path: &str,
    syncs: bool,
) -> Result<Option<Stat>> {
    loop {
        let lost = async {
            guard.lost().await;
            let detail = "the claim was lost before it could be found out";
            Err(Error::with_detail(op, path, Code::SESSION_EXPIRED, detail))
        };
        let look = async {
            let session = client.inner().trusted_session().await?;
            let (sync, look) = (syncs.then(|| session.sync(path)), session.exists(path));
            if let Some(sync) = sync {
                sync.await?;
            }
            look.await
        };
        match or(lost, look).await {
            Err(error) if error.is_transient() && !guard.is_lost() => pause(&error).await,
            answer => return answer,
        }
    }
}
