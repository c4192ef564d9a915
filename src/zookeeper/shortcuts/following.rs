//! How an attempt watches its own claim and the one before, and holds by their events alone.

use futures_lite::future::or;

use super::announced;
use super::continuity::Connection;
use super::succession::{Behind, OwnWatch};
use crate::client::{TrustedSession, Watch, WatchFor};
use crate::error::Result;
use crate::runtime::{Timer, now};
use crate::zookeeper::acquire::attempt::{Ahead, Attempt, ClaimStatus};
use crate::zookeeper::claim::node::Node;
use crate::zookeeper::name;
use crate::zookeeper::spec::Spec;

impl Spec {
    /// Whether it is enough to know a claim's number to say who follows whom: not where claims are to be told their
    /// place, or where numbers are given twice.
    pub(crate) fn is_told_by_number(&self, own: &Node) -> bool {
        let is_in_turn = name::number_in_turn(&own.path).is_some();
        is_in_turn && self.naming.on_position.is_none() && self.naming.is_by_number_alone()
    }
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Before {
    /// Whether no other is before ours.
    pub(crate) is_only: bool,
    /// Whether ours is in the directory that it is named for.
    pub(crate) is_in_our_directory: bool,
}

impl Attempt {
    /// Watches the nearest claim before ours; `None` if it is somebody's data.
    pub(crate) async fn watch_before(
        &mut self,
        session: &TrustedSession,
        path: &str,
        Before { is_only, is_in_our_directory }: Before,
    ) -> Result<Option<ClaimStatus>> {
        Ok(match self.look_ahead(session, path).await? {
            Ahead::Data => None,
            Ahead::Nobody => Some(ClaimStatus::Again),
            Ahead::Claim { czxid, is_announced, status, .. } => {
                if !self.no_wait {
                    self.spec.lock.memory.set_contended(true);
                }
                // A name of another directory may be that of a hold there, whose release would hit this claim.
                let is_named_so = self.claim.layout().names(name::last(path));
                let is_announced = is_announced && is_in_our_directory && is_named_so;
                let is_trusted = self.spec.lock.client.announces_releases();
                let connection = Connection::of(session);
                let is_announced = is_announced
                    && is_trusted
                    && announced::is_acl_enforced(session, &self.spec.lock.path).await;
                self.behind =
                    Some(Behind { czxid, connection, is_only, is_announced, is_followed: false });
                Some(status)
            }
        })
    }

    /// Whether it may get the lock without a request.
    fn may_follow(&self, session: &TrustedSession) -> bool {
        let is_told = self.claim.node().is_some_and(|own| self.spec.is_told_by_number(own));
        // An adopted handle may lose its connection unheard.
        is_told && !self.no_wait && !session.is_adopted()
    }

    /// Watches our own claim, if it is not watched yet. Where that fails, a listing decides.
    async fn watch_own(&mut self, session: &TrustedSession) {
        let Some(own) = self.claim.node() else { return };
        let (czxid, path) = (own.czxid, own.path.clone());
        let is_watched =
            self.own_watch.as_mut().is_some_and(|watch| watch.is_intact(session, czxid));
        if !is_watched && session.has_room_to_watch(&path, WatchFor::Deletion) {
            self.own_watch = Some(OwnWatch::begin(session, &path, czxid).await);
        }
    }

    /// Whether the watch on our claim says that somebody has deleted it.
    pub(crate) fn is_own_deleted(&mut self) -> bool {
        let own = self.claim.node().map(|node| node.czxid);
        let watch = self.own_watch.as_mut().filter(|watch| own.is_some_and(|own| watch.is_of(own)));
        watch.is_some_and(OwnWatch::is_deleted)
    }

    /// Whether our claim is the first after the event that was waited for.
    pub(crate) fn follows(&mut self, session: &TrustedSession, behind: &Behind) -> bool {
        let is_next = behind.is_followed && behind.connection == Connection::of(session);
        if !is_next || !self.may_follow(session) {
            return false;
        }
        let own = self.claim.node().map(|node| node.czxid);
        let own_watch = self.own_watch.as_mut().zip(own);
        now() < self.claim.young_until()
            || own_watch.is_some_and(|(watch, own)| watch.is_intact(session, own))
    }

    /// Waits for an event of the claim ahead. If that event can make ours the first, ours is watched too once it is 100 ms
    /// old.
    ///
    /// Disconnections are slept through, and trust that ends: the C client sets the watch again, and what was missed
    /// comes then. An error too is a reason to look again: it comes with the end of the session.
    pub(crate) async fn wait_for(&mut self, session: &TrustedSession, watch: Watch) {
        self.attempts += 1;
        let may_be_first =
            self.behind.as_ref().is_some_and(|behind| behind.is_only || behind.is_announced);
        let ended = if may_be_first && self.may_follow(session) {
            let watched_later = async {
                Timer::at(self.claim.young_until()).await;
                // In a box, which goes: there may be many who wait.
                Box::pin(self.watch_own(session)).await;
                std::future::pending().await
            };
            or(watch, watched_later).await
        } else {
            watch.await
        };
        self.behind = match (self.behind.take(), ended) {
            (Some(behind), Ok(event)) => behind.after(event.kind),
            _ => None,
        };
    }
}
