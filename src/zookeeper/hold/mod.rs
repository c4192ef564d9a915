//! One holding of a ZooKeeper lock.

mod change;
pub(super) mod deletion_watch;
mod guarded;
mod held;

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;

use super::acquire::attempt::Acquired;
use super::claim::node::Node;
use super::contenders::wanted;
use super::refusal::not_released;
use super::shortcuts::succession::OwnWatch;
use super::spec::Spec;
use crate::client::{ClientInner, Hold};
use crate::lock::{
    AcquireTrace, HoldTrace, Kind, LockError, LostReason, Requests, Revocation, StoreRef,
};
use crate::process::Process;
use crate::runtime::{Latest, Pending, Timer};

/// The claims of a hold besides its first.
pub(super) struct Claims {
    pub(super) kind: Kind,
    /// The claim by which an upgradeable reader writes.
    pub(super) write: Option<Box<Node>>,
    pub(super) is_changing: bool,
}

pub(super) struct Tenure {
    pub(super) client: Arc<ClientInner>,
    pub(super) spec: Arc<Spec>,
    /// The claim that it began with. The claim's czxid is the token.
    pub(super) node: Node,
    /// The claims that have replaced it after a write: as an upgradeable reader, and as a reader.
    pub(super) replaced: [OnceLock<Box<Node>>; 2],
    pub(super) claims: Mutex<Claims>,
    pub(super) hold: Arc<Hold>,
    end: Latest<Option<LostReason>>,
    /// The watch on its znode that the claim had while it waited, if it had one.
    watch: Mutex<Option<Box<OwnWatch>>>,
    pub(super) requests: Requests,
    /// Whether its claims are being deleted. A second deletion could hit the claim of a successor with the same name.
    is_deleted: AtomicBool,
    trace: HoldTrace,
    /// The process that holds. In a forked child the hold is lost.
    process: Process,
}

impl Tenure {
    pub(super) fn begin(spec: &Arc<Spec>, acquired: Acquired, trace: &AcquireTrace) -> Arc<Tenure> {
        let Acquired { node, hold, watch } = acquired;
        let held = HoldTrace::default();
        held.begin(trace, &node.path, node.czxid);
        let claims = Claims { kind: spec.naming.kind, write: None, is_changing: false };
        Arc::new(Tenure {
            client: Arc::clone(&spec.lock.client),
            spec: Arc::clone(spec),
            node,
            replaced: Default::default(),
            claims: Mutex::new(claims),
            hold: Arc::new(hold),
            end: Latest::new(None),
            watch: Mutex::new(watch.map(Box::new)),
            requests: Requests::default(),
            is_deleted: AtomicBool::new(false),
            trace: held,
            process: Process::this(),
        })
    }

    /// Ends the tenure, unless it has ended before. Returns the reason of its end.
    pub(super) fn end(&self, reason: LostReason) -> LostReason {
        // The clock before the event: when a process goes on after its session, the first that it
        // reads may be that its znode was deleted.
        let is_trusted = self.node.session.is_trusted();
        let reason = if is_trusted { reason } else { LostReason::Session };
        // First: who knows of the end writes no more.
        self.hold.end();
        let mut is_first = false;
        self.end.update(|end| {
            is_first = end.is_none();
            end.get_or_insert(reason);
            is_first
        });
        if is_first {
            self.trace.end(|| (Arc::clone(&self.node.path), self.node.czxid), reason);
        }
        self.end.get().unwrap_or(reason)
    }

    /// Why the tenure is over, if it is: looks at the clock.
    pub(super) fn ended(&self) -> Option<LostReason> {
        if !self.process.is_this() {
            return Some(LostReason::Session);
        }
        let ended = self.end.get();
        ended.or_else(|| {
            if !self.node.session.is_trusted() {
                return Some(self.end(LostReason::Session));
            }
            let is_gone = self.watch.lock().as_mut().is_some_and(|watch| watch.is_deleted());
            is_gone.then(|| self.end(LostReason::Deleted))
        })
    }

    /// Reads what somebody has written for the holder. Where that breaks the hold, it has ended by now, and the znode is
    /// to be deleted after a grace at the latest: gives that.
    pub(super) fn read_requests(&self, data: &[u8]) -> Option<Duration> {
        match wanted::of(data, self.node.czxid)? {
            Revocation::Ask { reason } => {
                self.requests.add(&reason);
                None
            }
            Revocation::Break { grace, .. } => {
                (self.end(LostReason::Broken) == LostReason::Broken).then_some(grace)
            }
        }
    }

    /// Deletes all claims of a lost hold, once.
    pub(super) fn delete_claims(&self) -> Option<Pending<bool>> {
        self.delete_by(Node::guaranteed_delete)
    }

    /// Deletes all claims if trust in the session was lost: the session may live on, and they would block everybody for as
    /// long as the program keeps its guard. The holder has as long to end its work as if the
    /// session ended.
    async fn delete_lost_claims(&self) {
        if self.ended() == Some(LostReason::Session) {
            Timer::after(self.hold.notice()).await;
            drop(self.delete_claims());
        }
    }

    /// Deletes all claims once. The hold is over, so no claim is added.
    fn delete_by(&self, delete: impl Fn(&Node) -> Pending<bool>) -> Option<Pending<bool>> {
        if self.is_deleted.swap(true, Ordering::AcqRel) {
            return None;
        }
        let write = self.claims.lock().write.clone();
        let write = write.map(|node| delete(&node));
        let present = delete(self.present());
        Some(match write {
            None => present,
            Some(write) => write.then(|write| async {
                let present = present.await;
                Ok(write? & present?)
            }),
        })
    }

    /// Ends the tenure by its holder's will. The deletion of the znode is submitted now, and
    /// repeated until it is certain; the future only waits for that, and not once it is lost. It keeps the store until
    /// then.
    pub(super) fn submit_release(
        self: &Arc<Self>,
        store: Option<StoreRef>,
    ) -> impl Future<Output = Result<(), LockError>> + Send + use<> {
        // A session may be replaced when nothing is held on it and nothing is left to do: there is no moment between.
        let duty = self.client.duties().begin();
        let lost = self.ended().or_else(|| {
            let reason = self.end(LostReason::Released);
            (reason != LostReason::Released).then_some(reason)
        });
        let gone = match lost {
            // It is gone, or an earlier release deletes it: its name may be a successor's by now.
            Some(LostReason::Deleted | LostReason::Released) => None,
            Some(LostReason::Broken | LostReason::Session) => self.delete_claims(),
            None => self.delete_by(Node::release),
        };
        drop(duty);
        let tenure = Arc::clone(self);
        async move {
            let path = &tenure.spec.lock.path;
            let was_lost = |reason| Err(LockError::lost(path, reason));
            let gone = match (lost, gone) {
                (None, Some(gone)) => gone,
                // Nothing was submitted for what is known to be gone.
                (lost, _) => return was_lost(lost.unwrap_or(LostReason::Deleted)),
            };
            let confirmed = async {
                match gone.await {
                    Ok(true) => Ok(()),
                    Ok(false) => was_lost(LostReason::Deleted),
                    Err(error) => Err(not_released(path, error)),
                }
            };
            let session_lost = async {
                tenure.node.session.lost().await;
                was_lost(LostReason::Session)
            };
            let released = futures_lite::future::or(confirmed, session_lost).await;
            drop(store);
            released
        }
    }

    pub(super) async fn over(&self) -> LostReason {
        if !self.process.is_this() {
            return LostReason::Session;
        }
        let session = async {
            self.node.session.lost().await;
            self.end(LostReason::Session)
        };
        futures_lite::future::or(self.end.wait_for(|end| *end), session).await
    }
}
