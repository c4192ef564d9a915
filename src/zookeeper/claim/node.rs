//! The node that a claim has for certain, and how it is deleted.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::client::TrustedSession;
use crate::lock::Strategy;
use crate::runtime::Pending;
use crate::zookeeper::shortcuts::continuity::OwnClaim;
use crate::zookeeper::spec::LockSpec;

#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) session: TrustedSession,
    pub(crate) path: Arc<str>,
    /// The one beside it, of a claim of two: as much the claim as the first.
    pub(crate) second: Option<Arc<str>>,
    pub(crate) czxid: i64,
    /// Whether its name can become another's.
    pub(crate) name_is_reused: bool,
    /// Whether its release is announced to who waits behind it. Then nobody else may write to it.
    pub(crate) is_announced: bool,
    pub(crate) lock: Arc<LockSpec>,
    /// Keeps it known as a claim of this client, and says whether it is gone for certain.
    pub(crate) known: Arc<AtomicBool>,
}

impl Node {
    /// Deletes it: submits that now, and repeats it until it is certain.
    pub(crate) fn guaranteed_delete(&self) -> Pending<bool> {
        self.delete(self.name_is_reused)
    }

    /// As [`guaranteed_delete`](Node::guaranteed_delete), of a node that holds.
    pub(crate) fn release(&self) -> Pending<bool> {
        if !self.is_announced {
            return self.guaranteed_delete();
        }
        let known = Arc::clone(&self.known);
        self.followed_by_the_directory(self.session.announced_delete(&self.path, self.czxid, known))
    }

    /// Until it is gone for certain, it is a claim of this client: nobody else deletes it too.
    pub(crate) fn delete(&self, look: bool) -> Pending<bool> {
        let known = Arc::clone(&self.known);
        let gone = match &self.second {
            None => self.session.guaranteed_delete(&self.path, self.czxid, look, known),
            Some(second) => {
                let both = [&self.path, second];
                self.session.guaranteed_delete_of_both(both, self.czxid, look, known)
            }
        };
        self.followed_by_the_directory(gone)
    }

    fn followed_by_the_directory(&self, gone: Pending<bool>) -> Pending<bool> {
        if self.lock.leaves_nothing && self.lock.strategy == Strategy::Queue {
            // The servers refuse it where somebody is left in it. Should it be lost, they remove the container some
            // time later.
            drop(self.session.delete(&self.lock.path, None));
        }
        gone
    }

    /// The directory, if what others want of the holder is written there, and not into the claim.
    pub(crate) fn requests_at(&self) -> Option<&Arc<str>> {
        self.is_announced.then_some(&self.lock.path)
    }

    pub(crate) fn in_directory(&self, directory: i64) -> OwnClaim<'_> {
        OwnClaim { session: &self.session, path: &self.path, directory, gone: &self.known }
    }
}
