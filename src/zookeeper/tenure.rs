//! One holding of a ZooKeeper lock.

use std::any::Any;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_lite::future::Boxed;
use parking_lot::Mutex;

use super::asked::Asked;
use super::claim::Node;
use super::claim_data;
use super::refusal::not_released;
use crate::client::{ClientInner, Hold};
use crate::lock::{GuardState, LockError, LostReason, Requests, Revocation, StoreRef, tenure};
use crate::process::Process;
use crate::runtime::{Latest, Pending, now, wake};
use crate::spans::{Span, log_in};

/// One holding of a lock, from the acquire on.
pub(super) struct Tenure {
    pub(super) client: Arc<ClientInner>,
    pub(super) node: Node,
    pub(super) since: Instant,
    pub(super) hold: Arc<Hold>,
    end: Latest<Option<LostReason>>,
    /// Why somebody wants it to end.
    requests: Requests,
    /// Whether the znode of a broken hold is being deleted. Once: under its name there may be a successor's then.
    is_broken_off: AtomicBool,
    /// Ends with it.
    span: Mutex<Span>,
    /// Where it is held: in a child of that it is lost.
    process: Process,
}

impl Tenure {
    pub(super) fn begin(
        client: Arc<ClientInner>,
        node: Node,
        hold: Hold,
        asked: &Asked,
    ) -> Arc<Tenure> {
        let since = now();
        let (path, token) = (Arc::clone(&node.path), node.czxid);
        let waited = since.saturating_duration_since(asked.at);
        let span = Mutex::new(asked.hold(&path, token));
        log_in!(asked.span, DEBUG, path = &*path, token, ?waited, "acquired");
        let (hold, end, process) = (Arc::new(hold), Latest::new(None), Process::this());
        let (requests, is_broken_off) = (Requests::default(), AtomicBool::new(false));
        Arc::new(Tenure { client, node, since, hold, end, requests, is_broken_off, span, process })
    }

    /// Ends the tenure, unless it has ended before. Gives why it has.
    pub(super) fn end(&self, reason: LostReason) -> LostReason {
        // The clock before the event: when a process goes on after its session, the first that it
        // reads may be that its znode was deleted.
        let is_trusted = self.node.session.is_trusted();
        let reason = if is_trusted { reason } else { LostReason::Session };
        let mut is_first = false;
        self.end.update(|end| {
            is_first = end.is_none();
            end.get_or_insert(reason);
            is_first
        });
        if is_first {
            let (path, token) = (Arc::clone(&self.node.path), self.node.czxid);
            let held = now().saturating_duration_since(self.since);
            let span = std::mem::replace(&mut *self.span.lock(), Span::none());
            match reason {
                LostReason::Released => {
                    log_in!(span, DEBUG, path = &*path, token, ?held, "released")
                }
                _ => log_in!(span, WARN, path = &*path, token, ?reason, ?held, "lost"),
            }
            span.record(move |span| {
                span.record("end", tracing::field::debug(reason));
            });
        }
        self.hold.end();
        self.end.get().unwrap_or(reason)
    }

    /// Why the tenure is over, if it is: looks at the clock.
    pub(super) fn ended(&self) -> Option<LostReason> {
        if !self.process.is_this() {
            return Some(LostReason::Session);
        }
        let ended = self.end.get();
        ended.or_else(|| {
            let lost = !self.node.session.is_trusted();
            lost.then(|| self.end(LostReason::Session))
        })
    }

    /// Reads what somebody has written for the holder. Where that breaks the hold, it has ended by now, and the znode is
    /// to be deleted after a grace at the latest: gives that.
    pub(super) fn heed(&self, data: &[u8]) -> Option<Duration> {
        match claim_data::revocation(data, self.node.czxid)? {
            Revocation::Ask { reason } => {
                self.requests.add(&reason);
                None
            }
            Revocation::Break { grace, .. } => {
                (self.end(LostReason::Broken) == LostReason::Broken).then_some(grace)
            }
        }
    }

    /// Lets the next one hold after this hold was broken, unless that has begun before.
    pub(super) fn delete_broken(&self) -> Option<Pending<bool>> {
        let is_first = !self.is_broken_off.swap(true, Ordering::AcqRel);
        is_first.then(|| self.node.guaranteed_delete())
    }

    /// Ends the tenure by its holder's will. The deletion of the znode is submitted now, and
    /// repeated until it is certain; the future only waits for that, and not once it is lost.
    fn submit_release(
        self: &Arc<Self>,
    ) -> impl Future<Output = Result<(), LockError>> + Send + use<> {
        let lost = self.ended().or_else(|| {
            let reason = self.end(LostReason::Released);
            (reason != LostReason::Released).then_some(reason)
        });
        let gone = match lost {
            // It is gone, or on its way by an earlier release: under its name there may be a successor's.
            Some(LostReason::Deleted | LostReason::Released) => None,
            Some(LostReason::Broken) => self.delete_broken(),
            Some(LostReason::Session) | None => Some(self.node.guaranteed_delete()),
        };
        let tenure = Arc::clone(self);
        async move {
            let path = &tenure.node.path;
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
            futures_lite::future::or(confirmed, session_lost).await
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

impl tenure::Tenure for Tenure {
    fn path(&self) -> &str {
        &self.node.path
    }

    fn token(&self) -> i64 {
        self.node.czxid
    }

    fn state(&self) -> GuardState {
        match Tenure::ended(self) {
            Some(_) => GuardState::Lost,
            None if self.client.is_connected() => GuardState::Held,
            None => GuardState::Suspended,
        }
    }

    fn ended(&self) -> Option<LostReason> {
        Tenure::ended(self)
    }

    fn remaining(&self) -> Duration {
        match Tenure::ended(self) {
            Some(_) => Duration::ZERO,
            None => self.hold.remaining(),
        }
    }

    fn changed(self: Arc<Self>) -> Boxed<()> {
        let listener = self.client.listen();
        Box::pin(async move {
            let over = async {
                Tenure::over(&self).await;
            };
            futures_lite::future::or(over, wake::DeferredWake(listener)).await;
        })
    }

    fn over(self: Arc<Self>) -> Boxed<LostReason> {
        Box::pin(async move { Tenure::over(&self).await })
    }

    fn request_other_than(self: Arc<Self>, seen: Option<Arc<str>>) -> Boxed<Option<Arc<str>>> {
        Box::pin(async move { self.requests.other_than(seen, Tenure::over(&self)).await })
    }

    fn release(self: Arc<Self>, store: Option<StoreRef>) -> Pending<(), LockError> {
        let released = self.submit_release();
        let path = Arc::clone(&self.node.path);
        Pending::run_as("release", path, LockError::of_pending, async move {
            let released = released.await;
            drop(store);
            released
        })
    }

    fn let_go(self: Arc<Self>) {
        drop(self.submit_release());
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
