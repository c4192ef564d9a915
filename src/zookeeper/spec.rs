//! The settings that all acquires of a lock share.

use std::sync::Arc;

use super::name::{self, Naming};
use super::shortcuts::memory::PathMemory;
use crate::client::{ClientInner, TrustedSession};
use crate::lock::{AcquireTrace, Interop, Kind, LockError, Strategy};
use crate::znode::Acl;

#[derive(Clone)]
pub(super) struct Spec {
    pub(super) lock: Arc<LockSpec>,
    pub(super) naming: NamingSpec,
    pub(super) hold: HoldSpec,
}

#[derive(Clone)]
pub(super) struct LockSpec {
    pub(super) client: Arc<ClientInner>,
    pub(super) path: Arc<str>,
    pub(super) memory: Arc<PathMemory>,
    pub(super) strategy: Strategy,
    pub(super) acl: Arc<[Acl]>,
    /// The permits of a semaphore, unless its directory says otherwise.
    pub(super) limit: u32,
    /// Whether the directory is deleted when nobody holds the lock or waits for it.
    pub(super) leaves_nothing: bool,
}

/// How claims are named. Their names tell other clients which claims exclude each other.
#[derive(Clone, Default)]
pub(super) struct NamingSpec {
    pub(super) kind: Kind,
    pub(super) interop: Interop,
    /// Is told where a claim stands in its queue. Such claims have the names of the C recipe.
    pub(super) on_position: Option<OnPosition>,
}

#[derive(Clone, Default)]
pub(super) struct HoldSpec {
    pub(super) label: Arc<str>,
    /// The hold that the claim changes, if there is one already.
    pub(super) changes: Option<Arc<PresentHold>>,
}

impl Spec {
    pub(super) fn trace(&self) -> AcquireTrace {
        AcquireTrace::begin(&self.lock.path, self.lock.strategy, &self.hold.label)
    }
}

impl LockSpec {
    pub(super) async fn session(&self) -> Result<TrustedSession, LockError> {
        let session = self.client.trusted_session().await;
        session.map_err(|error| LockError::closed(&self.path, error))
    }
}

impl NamingSpec {
    pub(super) fn naming(&self) -> Naming {
        match (self.kind, self.interop) {
            _ if self.on_position.is_some() => Naming::Recipe,
            (Kind::Exclusive, Interop::All) => Naming::Pair,
            (kind, _) => Naming::Of(kind),
        }
    }

    /// Whether every earlier claim blocks, and is named as ours is. Then numbers alone tell which claim is next.
    pub(super) fn is_by_number_alone(&self) -> bool {
        self.kind == Kind::Exclusive && self.interop == Interop::Most
    }

    /// Those of the earlier claims that have to go before one of ours holds.
    pub(super) fn blockers<'a>(
        &self,
        earlier: impl Iterator<Item = &'a str>,
    ) -> impl Iterator<Item = &'a str> {
        let kind = self.kind;
        earlier.filter(move |claim| kind.waits_for(name::kind(claim)))
    }
}

/// A hold that is being upgraded or downgraded.
pub(super) struct PresentHold {
    pub(super) claim: Arc<str>,
    pub(super) token: i64,
}

impl PresentHold {
    /// The number of its claim, unless that may have been given out of turn.
    pub(super) fn number(&self) -> Option<i32> {
        name::number_in_turn(&self.claim)
    }
}

pub(crate) type OnPosition = Arc<dyn Fn(&str, &str) + Send + Sync>;
