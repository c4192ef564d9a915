//! A barrier that lets a number of participants in together, and out together.
//!
//! Each participant is an ephemeral child of the barrier's znode. That znode is a container: servers delete it when it
//! stays empty. Its data list the participants of the present round. A listed participant has entered.
//!
//! A round begins when enough participants wait and none of those listed before is left. The first client that sees
//! this writes the new list, unless another client has written meanwhile. So no round takes over the rest of another,
//! and nothing has to be deleted between two rounds.
//!
//! A participant that has lost its znode takes another name: its old one may be in a round that is over for the others.
//!
//! A leaving participant waits for the others of its round. All watch the lowest name, which goes last. The lowest
//! watches the highest of the others. So each departure wakes one participant, and the last departure wakes all. Those
//! who wait for the next round watch the lowest name of this one too.

use std::collections::HashSet;
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

/// So many names fit into a znode with room for all else.
const MOST: u16 = 31_000;

impl Client {
    /// A barrier at a path for this number of participants, from 1 to 31,000. All must give the same number. Sends
    /// nothing.
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
    /// - `BAD_ARGUMENTS`: the number of participants is 0 or more than 31,000, or the path is not allowed.
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
        if self.participants == 0 || self.participants > MOST {
            let detail = "a barrier is for 1 to 31,000 participants";
            return Err(Error::with_detail("enter", &self.path, Code::BAD_ARGUMENTS, detail));
        }
        let mut present = self.participant();
        loop {
            let session = self.client.inner().trusted_session().await?;
            let (name, znode) = &mut present;
            match znode.session() {
                None => {
                    znode.place().await?;
                    continue;
                }
                Some(placed) if placed.id() != session.id() => {
                    // It counts as long as its session lives, which may be ended in the background.
                    match self.client.inner().session_gone(placed.id()).await {
                        Err(error) if error.is_transient() => pause(&error).await,
                        gone => {
                            gone.map_err(|error| named("enter", &self.path, &error))?;
                            present = self.participant();
                        }
                    }
                    continue;
                }
                Some(_) => {}
            }
            let czxid = znode.czxid();
            match self.wait_once(&session, name, czxid).await {
                Ok(Seen::Named(round)) => {
                    let (name, znode) = present;
                    return Ok(Entered { barrier: self, znode, name, round });
                }
                Ok(Seen::Changed) => {}
                Ok(Seen::Missing) => present = self.another(present).await?,
                Err(error) if error.is_no_node() => present = self.another(present).await?,
                Err(error) if error.is_transient() => pause(&error).await,
                Err(error) => return Err(named("enter", &self.path, &error)),
            }
        }
    }

    /// Another one, once the one before is gone for certain.
    async fn another(&self, (_, before): (String, Ephemeral)) -> Result<(String, Ephemeral)> {
        match before.remove().await {
            Err(error) if !error.is_transient() => Err(named("enter", &self.path, &error)),
            _ => Ok(self.participant()),
        }
    }

    /// One that was never there: its name, and its znode.
    fn participant(&self) -> (String, Ephemeral) {
        let name = Uuid::new_v4().simple().to_string();
        let path = self.path_of(&name).into();
        let (inner, acl) = (self.client.inner(), Arc::clone(&self.acl));
        (name, Ephemeral::new(inner, "enter", path, Arc::default(), acl))
    }

    /// Looks at the round, and waits until there may be another if it is not this participant's.
    async fn wait_once(
        &self,
        session: &TrustedSession,
        name: &str,
        czxid: Option<i64>,
    ) -> Result<Seen> {
        // In this order: nobody who is there by the list can have been named before the round that is read.
        let (round, list) = (session.get_and_watch(&*self.path), session.children(&self.path));
        let Watched { value: Znode { data, stat }, watch: changed } = round.await?;
        let mut there = list.await?.names;
        let round = names(&data);
        let is_there = there.iter().any(|one| one == name);
        if round.contains(name) {
            // It may have named an earlier znode of this name, which was gone for the others before this one was made.
            let is_in_it = is_there && czxid < Some(stat.mzxid);
            return Ok(if is_in_it { Seen::Named(round) } else { Seen::Missing });
        }
        if !is_there {
            return Ok(Seen::Missing);
        }
        let changed = async { drop(changed.await) };
        if let Some(last) = there.iter().filter(|one| round.contains(*one)).min() {
            // The round before is not over.
            let last = session.get_and_watch(self.path_of(last)).await;
            let last = some_if_there(last)?;
            if let Some(last) = last {
                or(or(changed, async { drop(last.watch.await) }), session.lost()).await;
            }
            return Ok(Seen::Changed);
        }
        if there.len() < usize::from(self.participants) {
            // Who comes last sees all, unless somebody has deleted this one's znode.
            let own = session.get_and_watch(self.path_of(name)).await;
            let Some(own) = some_if_there(own)? else { return Ok(Seen::Missing) };
            or(or(changed, async { drop(own.watch.await) }), session.lost()).await;
            return Ok(Seen::Changed);
        }
        there.sort_unstable();
        // Itself for certain, so that whoever acts enters.
        there.retain(|one| one != name);
        there.truncate(usize::from(self.participants) - 1);
        there.push(name.to_owned());
        // Whether it was done is seen by the next look, and whether another was faster.
        match session.set(&self.path, there.join("\n").as_bytes(), Some(stat.version)).await {
            Err(error) if error.code() == Code::BAD_VERSION => Ok(Seen::Changed),
            set => set.map(|_| Seen::Named(there.into_iter().collect())),
        }
    }

    fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path.trim_end_matches('/'))
    }
}

/// The state that a waiting participant has seen.
enum Seen {
    /// The round that it has entered.
    Named(HashSet<String>),
    /// There may be something else to be seen now.
    Changed,
    /// Somebody has deleted its znode.
    Missing,
}

fn some_if_there<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Err(error) if error.is_no_node() => Ok(None),
        found => found.map(Some),
    }
}

fn names(round: &[u8]) -> HashSet<String> {
    String::from_utf8_lossy(round).lines().map(str::to_owned).collect()
}

/// A participant that has entered a [`DoubleBarrier`]. Dropping it leaves without waiting for the others.
#[must_use = "dropping it leaves the barrier"]
pub struct Entered {
    barrier: DoubleBarrier,
    znode: Ephemeral,
    name: String,
    /// All who have entered with it.
    round: HashSet<String>,
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
            znode = znode.filter(on_this);
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
        round: &HashSet<String>,
        is_there: bool,
    ) -> Result<Others> {
        let (sync, list) = (session.sync(&self.path), session.children(&self.path));
        sync.await?;
        let there = match list.await {
            Ok(there) => there.names,
            Err(error) if error.is_no_node() => return Ok(Others::Gone),
            Err(error) => return Err(error),
        };
        let others = there.iter().filter(|one| *one != name && round.contains(*one));
        let (Some(lowest), Some(highest)) = (others.clone().min(), others.max()) else {
            return Ok(Others::Gone);
        };
        let is_last = is_there && name < lowest.as_str();
        if is_there && !is_last {
            return Ok(Others::Later);
        }
        let watched = self.path_of(if is_last { highest } else { lowest });
        if let Some(watched) = some_if_there(session.get_and_watch(watched).await)? {
            or(async { drop(watched.watch.await) }, session.lost()).await;
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
