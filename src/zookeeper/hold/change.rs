//! Turns a hold of a read/write lock into one of another kind.
//!
//! A claim's name says what it is, so a hold becomes something else by another claim of its session. An upgradeable
//! reader is a writer while it has a second claim besides its own: see `upgrade.rs`. A downgrade puts a reader's claim in
//! the place of the present one: with its number, so it is before all that are behind it. First the new one is
//! made, then the old one deleted: for others it is a writer's until then, and held throughout. Both are
//! claims like any other, so a lost reply is looked up, and what is abandoned is deleted.

use std::sync::Arc;

use futures_lite::future::or;

use super::deletion_watch::watch_once_old;
use super::{Claims, Tenure};
use crate::error::{Code, Error};
use crate::lock::{Access, IS_BEING_CHANGED, Kind, LockError, LockOp, LostReason, ready};
use crate::runtime::Pending;
use crate::zookeeper::acquire;
use crate::zookeeper::acquire::seen_ahead::SeenAhead;
use crate::zookeeper::claim::node::Node;
use crate::zookeeper::refusal::{NO_PLACE_LEFT, not_released};
use crate::zookeeper::spec::{PresentHold, Spec};

struct Changing(Arc<Tenure>);

impl Drop for Changing {
    fn drop(&mut self) {
        self.0.claims.lock().is_changing = false;
    }
}

/// Changes the hold to that access, which its present access allows.
pub(super) fn change(tenure: &Arc<Tenure>, to: Access) -> Pending<(), LockError> {
    let path = Arc::clone(&tenure.spec.lock.path);
    if std::mem::replace(&mut tenure.claims.lock().is_changing, true) {
        let refused = LockError::unusable(&path, IS_BEING_CHANGED, Code::INVALID_STATE);
        return ready(Err(refused));
    }
    let changing = Changing(Arc::clone(tenure));
    let ahead = Arc::new(SeenAhead::default());
    if to == Access::Write {
        let upgraded = upgrade(changing, Arc::clone(&ahead));
        return LockOp::Upgrade.run(path, upgraded).when_late(ahead);
    }
    LockOp::Downgrade.run(path, async move {
        let tenure = &changing.0;
        let given_up = match to {
            Access::Upgradeable if tenure.kind() == Kind::Upgradeable => {
                tenure.read_again().into_iter().collect()
            }
            Access::Upgradeable => replace(tenure, Kind::Upgradeable, ahead).await?,
            _ => replace(tenure, Kind::Read, ahead).await?,
        };
        // It is done by now, and goes on whether it is waited for or not.
        let confirmed = async {
            for gone in given_up {
                gone.await.map_err(|error| not_confirmed(&tenure.spec.lock.path, error))?;
            }
            Ok(())
        };
        or(lost(tenure), confirmed).await
    })
}

/// Fails when the hold ends.
async fn lost<T>(tenure: &Tenure) -> Result<T, LockError> {
    let reason = tenure.over().await;
    Err(LockError::not_held(&tenure.spec.lock.path, reason))
}

/// The error if the deletion of the replaced claim is not confirmed.
fn not_confirmed(path: &str, error: Error) -> LockError {
    match not_released(path, error) {
        LockError::Lost { reason, .. } => LockError::not_held(path, reason),
        other => other,
    }
}

async fn upgrade(changing: Changing, ahead: Arc<SeenAhead>) -> Result<(), LockError> {
    let tenure = &changing.0;
    let spec = changed_to(tenure, Kind::Upgrade);
    let node = while_held(tenure, spec, ahead).await?;
    let czxid = node.czxid;
    tenure.write_by(node)?;
    watch_once_old(tenure, czxid);
    Ok(())
}

/// Puts a claim of that kind in the place of the present one. Returns the pending deletions of the replaced claims.
async fn replace(
    tenure: &Arc<Tenure>,
    kind: Kind,
    ahead: Arc<SeenAhead>,
) -> Result<Vec<Pending<bool>>, LockError> {
    let spec = changed_to(tenure, kind);
    if spec.hold.changes.as_ref().is_none_or(|present| present.number().is_none()) {
        return Err(NO_PLACE_LEFT.at(&spec.lock.path));
    }
    let node = while_held(tenure, spec, ahead).await?;
    let czxid = node.czxid;
    let replaced = tenure.replace(node, kind)?;
    watch_once_old(tenure, czxid);
    Ok(replaced)
}

fn changed_to(tenure: &Tenure, kind: Kind) -> Spec {
    let present =
        PresentHold { claim: Arc::clone(&tenure.present().path), token: tenure.node.czxid };
    let mut spec = Spec::clone(&tenure.spec);
    spec.naming.kind = kind;
    spec.hold.changes = Some(Arc::new(present));
    spec
}

/// Acquires that claim, unless the hold ends first.
async fn while_held(tenure: &Tenure, spec: Spec, ahead: Arc<SeenAhead>) -> Result<Node, LockError> {
    let spec = Arc::new(spec);
    match or(lost(tenure), acquire::acquire(&spec, &ahead)).await {
        Ok(acquired) => Ok(acquired.node),
        Err(LockError::Unusable { code: Code::NO_NODE, .. }) => {
            Err(LockError::not_held(&spec.lock.path, tenure.end_deleted()))
        }
        Err(error) => Err(error),
    }
}

impl Tenure {
    /// The kind of its present claim, apart from the claim for an upgrade.
    pub(super) fn kind(&self) -> Kind {
        self.claims.lock().kind
    }

    /// The present claim, without the one of an upgrade.
    pub(crate) fn present(&self) -> &Node {
        let replaced = self.replaced.iter().rev().find_map(|replaced| replaced.get());
        replaced.map_or(&self.node, |node| node)
    }

    /// All present claims, the one of an upgrade first.
    pub(crate) fn nodes(&self) -> Vec<Node> {
        let write = self.claims.lock().write.clone();
        write.map(|node| *node).into_iter().chain([self.present().clone()]).collect()
    }

    pub(super) fn has(&self, node: &Node) -> bool {
        self.nodes().iter().any(|own| own.czxid == node.czxid)
    }

    /// Makes it a writer's hold by that claim.
    fn write_by(&self, node: Node) -> Result<(), LockError> {
        self.take(node, |claims, node| {
            claims.write = Some(Box::new(node));
        })
    }

    /// Makes it a reader's hold again. Returns the pending deletion of the upgrade's claim. After the end of the hold it does
    /// nothing, as the end deletes all claims.
    fn read_again(&self) -> Option<Pending<bool>> {
        // Outside the lock, as it may wake somebody. An end that comes later finds the claim here.
        self.ended();
        let mut claims = self.claims.lock();
        let write = if self.end.get().is_none() { claims.write.take() } else { None };
        drop(claims);
        write.map(|node| node.guaranteed_delete())
    }

    /// Replaces the present claims with that one. Returns the pending deletions of the replaced ones.
    fn replace(&self, node: Node, kind: Kind) -> Result<Vec<Pending<bool>>, LockError> {
        let had = self.nodes();
        self.take(node, |claims, node| {
            (claims.kind, claims.write) = (kind, None);
            let place = usize::from(kind == Kind::Read);
            // A hold becomes upgradeable once at most, and then a reader's.
            let _ = self.replaced[place].set(Box::new(node));
        })?;
        Ok(had.into_iter().map(|node| node.guaranteed_delete()).collect())
    }

    /// Adds a claim. After the end of the hold it deletes the claim instead.
    fn take(&self, node: Node, take: impl FnOnce(&mut Claims, Node)) -> Result<(), LockError> {
        // Outside the lock, as it may wake somebody. An end that comes later finds the claim here.
        self.ended();
        let mut claims = self.claims.lock();
        let lost = self.end.get();
        if lost.is_none() {
            take(&mut claims, node);
            return Ok(());
        }
        drop(claims);
        drop(node.guaranteed_delete());
        Err(LockError::not_held(&self.spec.lock.path, lost.unwrap_or(LostReason::Session)))
    }

    /// Ends the hold because another client has deleted one of its claims. Its other claims would block everybody.
    pub(super) fn end_deleted(&self) -> LostReason {
        let reason = self.end(LostReason::Deleted);
        if reason == LostReason::Deleted && self.has_several_znodes() {
            drop(self.delete_claims());
        }
        reason
    }

    /// Whether znodes may be left when one of them is gone.
    fn has_several_znodes(&self) -> bool {
        let (nodes, is_replaced) = (self.nodes(), !self.has(&self.node));
        is_replaced || nodes.len() > 1 || nodes.iter().any(|node| node.second.is_some())
    }
}
