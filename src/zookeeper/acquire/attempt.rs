//! One caller's attempt at a lock: its claim, where that stands, and what the strategies do alike.

use std::sync::Arc;
use std::time::Duration;

use super::seen_ahead::SeenAhead;
use crate::client::{Hold, TrustedSession, Watch, WatchFor, Watched, Znode};
use crate::error::Result;
use crate::logging::log;
use crate::path;
use crate::retry::WITHOUT_A_WATCH;
use crate::zookeeper::claim::Claim;
use crate::zookeeper::claim::node::Node;
use crate::zookeeper::claim::payload;
use crate::zookeeper::kinds::upgrade::Replaced;
use crate::zookeeper::name;
use crate::zookeeper::refusal::{NO_CHROOT, Obstacle};
use crate::zookeeper::shortcuts::announced;
use crate::zookeeper::shortcuts::succession::{Behind, OwnWatch};
use crate::zookeeper::spec::{LockSpec, Spec};

/// Where a claim stands.
pub(crate) enum ClaimStatus {
    /// It holds the lock, as of requests that were submitted in this session.
    Held,
    /// Somebody is ahead, and the caller would not wait.
    Taken,
    /// Something has changed meanwhile: look again at once.
    Again,
    /// Nothing can change before this watch ends.
    Watching(Watch),
    Pausing(Duration),
    /// No claim can ever hold there.
    Impossible(Obstacle),
}

/// A claim that holds, for the tenure to take over.
pub(crate) struct Acquired {
    pub(crate) node: Node,
    pub(crate) hold: Hold,
    /// The watch on the node, where there is one already.
    pub(crate) watch: Option<OwnWatch>,
}

pub(crate) struct Attempt {
    pub(crate) spec: Arc<Spec>,
    pub(crate) claim: Claim,
    pub(crate) no_wait: bool,
    /// How often the strategy has found the lock taken.
    pub(crate) attempts: u32,
    /// The nearest claim before ours in a queue, which is watched.
    pub(crate) behind: Option<Behind>,
    pub(crate) own_watch: Option<OwnWatch>,
    pub(crate) in_place_of: Option<Replaced>,
    pub(crate) purpose: WatchFor,
    /// The contender ahead, for the error of a deadline.
    pub(crate) ahead: Arc<SeenAhead>,
    /// In which session, and which period of trust, the claim was found to hold.
    pub(crate) held_in: Option<TrustedSession>,
    /// The hold, once the session is proven to be alive.
    hold: Option<Hold>,
}

impl Attempt {
    pub(crate) fn new(spec: &Arc<Spec>, no_wait: bool, ahead: Arc<SeenAhead>) -> Attempt {
        Attempt {
            spec: Arc::clone(spec),
            claim: Claim::new(spec, no_wait),
            no_wait,
            attempts: 0,
            behind: None,
            own_watch: None,
            in_place_of: None,
            purpose: WatchFor::Next,
            ahead,
            held_in: None,
            hold: None,
        }
    }

    /// Whether the claim was found to hold already in this period of trust.
    pub(crate) fn was_found_to_hold(&self, session: &TrustedSession) -> bool {
        let found = self.held_in.as_ref().filter(|_| self.claim.node().is_some());
        found.is_some_and(|found| Arc::ptr_eq(&found.trust, &session.trust))
    }

    /// Abandons the claim if the watch on it reports its deletion.
    pub(crate) fn abandon_if_deleted(&mut self) -> bool {
        let is_deleted = self.is_own_deleted();
        if is_deleted {
            self.claim.abandon();
            self.held_in = None;
        }
        is_deleted
    }

    /// Holds, if the session is proven to be alive.
    pub(crate) fn hold(&mut self, session: &TrustedSession) -> bool {
        self.hold = session.hold();
        self.hold.is_some()
    }

    /// Hands the claim over, if it holds. The attempt then has none.
    pub(crate) fn acquired(&mut self) -> Option<Acquired> {
        let hold = self.hold.take()?;
        let node = self.claim.take()?;
        let watch = self.own_watch.take().filter(|watch| watch.is_of(node.czxid));
        Some(Acquired { node, hold, watch })
    }

    /// Reads what is ahead, and watches it unless the caller would not wait, or there is no room for a
    /// watch. The read sets the watch: if there is nothing any more, none is left behind.
    pub(crate) async fn look_ahead(
        &mut self,
        session: &TrustedSession,
        path: &str,
    ) -> Result<Ahead> {
        let watches = !self.no_wait && session.has_room_to_watch(path, self.purpose);
        let (znode, watch) = if watches {
            let Watched { value, watch } = session.get_and_watch(path).await?;
            (value, Some(watch))
        } else {
            (session.get(path).await?, None)
        };
        let stat = &znode.stat;
        if !stat.is_ephemeral() {
            return Ok(Ahead::Data);
        }
        // At its end a counter gives a number again: this name was that of a claim ahead, and is now that of one behind.
        let is_given_again = name::sequence(name::last(path)).is_some_and(name::is_out_of_turn);
        if is_given_again && self.claim.node().is_some_and(|own| own.czxid < stat.czxid) {
            return Ok(Ahead::Nobody);
        }
        if clear_orphan(&self.spec.lock, session, path, &znode).await {
            return Ok(Ahead::Nobody);
        }
        let (czxid, version) = (stat.czxid, stat.version);
        let is_announced = announced::will_be(&znode.data, stat);
        self.ahead.note(path.to_owned(), znode);
        let status = match watch {
            Some(watch) => ClaimStatus::Watching(watch),
            None if self.no_wait => ClaimStatus::Taken,
            None if self.purpose == WatchFor::Later => ClaimStatus::Pausing(4 * WITHOUT_A_WATCH),
            None => ClaimStatus::Pausing(WITHOUT_A_WATCH),
        };
        Ok(Ahead::Claim { czxid, version, is_announced, status })
    }

    /// Where the claim stands, when its node is the lock's path itself, and creates it if there is none.
    /// `None` if the path is taken.
    pub(crate) async fn create_own(
        &mut self,
        session: &TrustedSession,
    ) -> Result<Option<ClaimStatus>> {
        if let Some(status) = self.look_at_own(session).await? {
            return Ok(Some(status));
        }
        self.claim.send(session);
        match self.claim.confirm().await {
            Ok(_) => Ok(Some(ClaimStatus::Held)),
            Err(error) if error.is_no_node() => {
                create_parents(session, &self.spec.lock, &self.spec.lock.path).await.map(Some)
            }
            Err(error) if error.is_node_exists() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Where a claim stands that was made before: it holds if the node is still there. `None` if there is
    /// no claim.
    async fn look_at_own(&mut self, session: &TrustedSession) -> Result<Option<ClaimStatus>> {
        let Some(czxid) = self.claim.node().map(|node| node.czxid) else { return Ok(None) };
        match session.get(&self.spec.lock.path).await {
            Ok(found) if found.stat.czxid == czxid => Ok(Some(ClaimStatus::Held)),
            Err(error) if !error.is_no_node() => Err(error),
            // Somebody has deleted it, and it may be another's by now.
            _ => {
                self.claim.abandon();
                Ok(Some(ClaimStatus::Again))
            }
        }
    }
}

/// The znode at a place where a claim may be.
pub(crate) enum Ahead {
    /// A claim, by the transaction that made it; how often its data was set; whether its release will be announced;
    /// and so that is where ours stands.
    Claim { czxid: i64, version: i32, is_announced: bool, status: ClaimStatus },
    /// A claim that is not ahead: it was unowned and is deleted, or it was made after ours.
    Nobody,
    /// Somebody's data: no claim lives longer than its session.
    Data,
}

/// Deletes a claim of our session that was made by another client, before we took the session up:
/// nobody will ever release it. Gives whether it was one, and is gone.
pub(crate) async fn clear_orphan(
    lock: &LockSpec,
    session: &TrustedSession,
    path: &str,
    Znode { data, stat }: &Znode,
) -> bool {
    let of_another = |uuid| !payload::is_of_client(uuid, lock.client.id());
    let mut is_orphan = session.was_taken_up()
        && stat.ephemeral_owner == session.id()
        && payload::uuid(data).is_some_and(of_another);
    // One deletion is enough: a second could hit the next claim, where that has the same name.
    if is_orphan && lock.memory.is_claim(stat.czxid) != Some(true) {
        let kept = lock.memory.made(stat.czxid);
        let gone = session.guaranteed_delete(&path.into(), stat.czxid, true, kept).await;
        // If it may not be deleted, it stays ahead until the session ends.
        is_orphan = gone.is_ok();
        let path = path.to_owned();
        log!(INFO, path, ?gone, "deleted a claim that an earlier client of the session left");
    }
    is_orphan
}

/// Makes the znodes that are missing above `claim`, which the server refused for want of them.
///
/// One that was just made may be gone before the next is made under it: empty containers are
/// reaped, and operators tidy up. Then it is made again. But when there is no room at the very
/// top, there will never be any.
pub(crate) async fn create_parents(
    session: &TrustedSession,
    lock: &LockSpec,
    claim: &str,
) -> Result<ClaimStatus> {
    let refused = match session.create_parents(claim, &lock.acl).await {
        Ok(Some(directory)) if path::parent(claim) == Some(&*lock.path) => {
            lock.memory.made_directory(directory.czxid);
            return Ok(ClaimStatus::Again);
        }
        Ok(_) => claim.to_owned(),
        Err(error) if error.is_no_node() => error.path().to_owned(),
        Err(error) => return Err(error),
    };
    if refused.rfind('/') != Some(0) {
        return Ok(ClaimStatus::Again);
    }
    Ok(ClaimStatus::Impossible(NO_CHROOT))
}
