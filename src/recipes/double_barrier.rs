//! A barrier that lets a number of participants in together, and out together.
//!
//! Each participant is an ephemeral child of the barrier's znode. That znode is a container: servers delete it when it
//! stays empty. Its data list the participants of the present round. A listed participant has entered.
//!
//! A round begins when enough participants wait and none of those listed before is left. The first client that sees
//! this writes the new list, unless another client has written meanwhile. So no round takes over the rest of another,
//! and nothing has to be deleted between two rounds.
//!
//! A leaving participant waits for the others of its round. All watch the lowest name, which goes last. The lowest
//! watches the highest of the others. So each departure wakes one participant, and the last departure wakes all.

use std::sync::Arc;

use futures_lite::future::or;
use uuid::Uuid;

use super::ephemeral::Ephemeral;
use super::persistent::{pause, run};
use super::transaction::named;
use crate::client::{Client, TrustedSession, Watched, Znode};
use crate::error::{Code, Error, Result};
use crate::runtime::Pending;
use crate::znode::Acl;

/// A barrier for a number of participants. They enter when all are there, and leave when all are done. Then the next
/// round can enter. Clones are the same barrier.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let zk = zklock::Client::connect("127.0.0.1:2181").wait()?;
/// let start = zk.double_barrier("/barriers/step", 3);
/// let entered = start.enter().wait()?; // when three are there
/// // ... what all three do at the same time ...
/// entered.leave().wait()?; // when all three are done
/// # Ok(()) }
/// ```
///
/// A participant with an ended process or session has left; the others do not wait for it. All participants can see
/// when enough are there, so the last one to come may let the others in and die.
///
/// # Cost
/// To enter takes four requests (create the participant's znode, read the round, list the participants, watch its own
/// znode), and after the notification the read and the listing again. The last participant to come writes the round
/// instead of the watch. To leave takes a listing and a delete, and one notification when the last participant has left.
#[derive(Clone, Debug)]
pub struct DoubleBarrier {
    client: Client,
    path: Arc<str>,
    participants: u16,
    acl: Arc<[Acl]>,
}

impl Client {
    /// A barrier at a path for this number of participants, at least one. All must give the same number. Sends nothing.
    pub fn double_barrier(&self, path: &str, participants: u16) -> DoubleBarrier {
        let acl = Acl::open().into();
        DoubleBarrier { client: self.clone(), path: path.into(), participants, acl }
    }
}

impl DoubleBarrier {
    /// Sets the ACL of the znodes that it creates. By default all clients may do everything.
    #[must_use]
    pub fn acl(mut self, acl: impl Into<Vec<Acl>>) -> DoubleBarrier {
        self.acl = acl.into().into();
        self
    }

    /// Its path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Waits until all participants are there, without a limit or [within](Pending::within) one. If a round is in
    /// progress, it also waits until all of that round have left. Creates missing znodes as containers.
    ///
    /// # Errors
    /// It has not entered, and nothing is left behind.
    /// - `BAD_ARGUMENTS`: the number of participants is 0, or the path is not allowed.
    /// - `NO_AUTH`
    /// - `OPERATION_TIMEOUT`: the limit has passed.
    /// - Why the client is closed, if it is.
    ///
    /// # On connection loss
    /// It continues on the next connection or session.
    ///
    /// # Cancel safety
    /// Dropping it cancels it. If the others have already entered with it, it has then left.
    pub fn enter(&self) -> Pending<Entered> {
        let barrier = self.clone();
        run("enter", &self.path, async move { barrier.entered().await })
    }

    async fn entered(self) -> Result<Entered> {
        if self.participants == 0 {
            let detail = "a barrier is for one participant at least";
            return Err(Error::with_detail("enter", &self.path, Code::BAD_ARGUMENTS, detail));
        }
        let name = Uuid::new_v4().simple().to_string();
        let path = self.path_of(&name).into();
        let (inner, acl) = (self.client.inner(), Arc::clone(&self.acl));
        let mut znode = Ephemeral::new(inner, "enter", path, Arc::default(), acl);
        let mut is_there = false;
        loop {
            let session = self.client.inner().trusted_session().await?;
            let placed = znode.session().map(TrustedSession::id);
            if !is_there || placed != Some(session.id()) {
                znode.place().await?;
                is_there = true;
                continue;
            }
            match self.wait_once(&session, &name).await {
                Ok(Seen::Named(round)) => {
                    return Ok(Entered { barrier: self, znode, name, round });
                }
                Ok(Seen::Changed) => {}
                Ok(Seen::Missing) => is_there = false,
                Err(error) if error.is_no_node() => is_there = false,
                Err(error) if error.is_transient() => pause(&error).await,
                Err(error) => return Err(named("enter", &self.path, &error)),
            }
        }
    }

    /// Looks at the round, and waits until there may be another if it is not this participant's.
    async fn wait_once(&self, session: &TrustedSession, name: &str) -> Result<Seen> {
        // In this order: nobody who is there by the list can have been named before the round that is read.
        let (round, list) = (session.get_and_watch(&*self.path), session.children(&self.path));
        let Watched { value: Znode { data, stat }, watch: changed } = round.await?;
        let mut there = list.await?.names;
        let round = names(&data);
        if round.iter().any(|one| one == name) {
            return Ok(Seen::Named(round));
        }
        if !there.iter().any(|one| one == name) {
            return Ok(Seen::Missing);
        }
        let changed = async { drop(changed.await) };
        if round.iter().any(|one| there.contains(one)) {
            // The round before is not over.
            let now = session.children_and_watch(&self.path).await?;
            if round.iter().any(|one| now.value.names.contains(one)) {
                or(or(changed, async { drop(now.watch.await) }), session.lost()).await;
            }
            return Ok(Seen::Changed);
        }
        if there.len() < usize::from(self.participants) {
            // Who comes last sees all, unless somebody has deleted this one's znode.
            let own = session.exists_and_watch(&self.path_of(name)).await?;
            if own.value.is_none() {
                return Ok(Seen::Missing);
            }
            or(or(changed, async { drop(own.watch.await) }), session.lost()).await;
            return Ok(Seen::Changed);
        }
        there.sort_unstable();
        // Itself for certain, so that whoever acts enters.
        there.retain(|one| one != name);
        there.truncate(usize::from(self.participants) - 1);
        there.push(name.to_owned());
        let named = there.join("\n");
        // Whether it was done is seen by the next look, and whether another was faster.
        match session.set(&self.path, named.as_bytes(), Some(stat.version)).await {
            Err(error) if error.code() == Code::BAD_VERSION => Ok(Seen::Changed),
            set => set.map(|_| Seen::Named(there)),
        }
    }

    fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path.trim_end_matches('/'))
    }
}

/// The state that a waiting participant has seen.
enum Seen {
    /// The round that it has entered.
    Named(Vec<String>),
    /// There may be something else to be seen now.
    Changed,
    /// Somebody has deleted its znode.
    Missing,
}

fn names(round: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(round).lines().map(str::to_owned).collect()
}

/// A participant that has entered a [`DoubleBarrier`]. Dropping it leaves without waiting for the others.
#[must_use = "dropping it leaves the barrier"]
pub struct Entered {
    barrier: DoubleBarrier,
    znode: Ephemeral,
    name: String,
    /// All who have entered with it.
    round: Vec<String>,
}

impl Entered {
    /// Leaves, and waits until all of its round have left, without a limit or [within](Pending::within) one.
    ///
    /// # Errors
    /// Its znode goes with its session at the latest.
    /// - `NO_AUTH`
    /// - `OPERATION_TIMEOUT`: the limit has passed.
    /// - Why the client is closed, if it is.
    ///
    /// # On connection loss
    /// It continues on the next connection or session.
    ///
    /// # Cancel safety
    /// If it is dropped, it still leaves.
    pub fn leave(self) -> Pending<()> {
        let path = Arc::clone(&self.barrier.path);
        run("leave", &path, self.left())
    }

    async fn left(self) -> Result<()> {
        let Entered { barrier, znode, name, round } = self;
        let inner = Arc::clone(barrier.client.inner());
        let mut znode = Some(znode);
        loop {
            let session = inner.trusted_session().await?;
            // Of a session that is over it is gone.
            let on_this = |znode: &Ephemeral| {
                znode.session().is_some_and(|placed| placed.id() == session.id())
            };
            if !znode.as_ref().is_some_and(on_this) {
                znode = None;
            }
            match barrier.wait_for_others(&session, &name, &round, znode.is_some()).await {
                Ok(Others::Gone) => {
                    return match znode {
                        Some(znode) => znode
                            .remove()
                            .await
                            .map_err(|error| named("leave", &barrier.path, &error)),
                        None => Ok(()),
                    };
                }
                Ok(Others::Later) => {
                    if let Some(znode) = znode.take() {
                        let left = znode.remove().await;
                        left.map_err(|error| named("leave", &barrier.path, &error))?;
                    }
                }
                Ok(Others::Changed) => {}
                Err(error) if error.is_transient() => pause(&error).await,
                Err(error) => return Err(named("leave", &barrier.path, &error)),
            }
        }
    }
}

/// The other participants of a round, as far as known.
enum Others {
    /// All have left.
    Gone,
    /// One of them leaves last: this one leaves at once.
    Later,
    /// One that was waited for has left.
    Changed,
}

impl DoubleBarrier {
    async fn wait_for_others(
        &self,
        session: &TrustedSession,
        name: &str,
        round: &[String],
        is_there: bool,
    ) -> Result<Others> {
        let (sync, list) = (session.sync(&self.path), session.children(&self.path));
        sync.await?;
        let there = match list.await {
            Ok(there) => there.names,
            Err(error) if error.is_no_node() => return Ok(Others::Gone),
            Err(error) => return Err(error),
        };
        let others = there.iter().filter(|one| *one != name && round.contains(one));
        let (Some(lowest), Some(highest)) = (others.clone().min(), others.max()) else {
            return Ok(Others::Gone);
        };
        let is_last = is_there && name < lowest.as_str();
        if is_there && !is_last {
            return Ok(Others::Later);
        }
        let watched = self.path_of(if is_last { highest } else { lowest });
        match session.get_and_watch(watched).await {
            Ok(there) => or(async { drop(there.watch.await) }, session.lost()).await,
            Err(error) if error.is_no_node() => {}
            Err(error) => return Err(error),
        }
        Ok(Others::Changed)
    }
}

impl std::fmt::Debug for Entered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.barrier.path();
        f.debug_struct("Entered").field("path", &path).field("name", &self.name).finish()
    }
}
