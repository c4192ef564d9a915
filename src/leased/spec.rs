//! The lock that is contended for, and its kind.

use std::sync::Arc;

use super::claim::Claim;
use super::inner::Inner;
use crate::lock::{AcquireTrace, Kind, Strategy};

#[derive(Clone)]
pub(super) struct Spec {
    pub(super) inner: Arc<Inner>,
    pub(super) path: Arc<str>,
    pub(super) strategy: Strategy,
    pub(super) kind: Kind,
    pub(super) limit: u32,
    pub(super) label: Arc<str>,
    /// Why every operation fails.
    pub(super) refused: Option<&'static str>,
}

impl Spec {
    pub(super) fn new(inner: Arc<Inner>, path: &str) -> Spec {
        let (strategy, kind) = (Strategy::default(), Kind::default());
        Spec {
            inner,
            path: path.into(),
            strategy,
            kind,
            limit: 0,
            label: Arc::default(),
            refused: None,
        }
    }

    pub(super) fn new_claim(&self) -> Arc<Claim> {
        Claim::new(&self.path, self.kind, self.limit, &self.label)
    }

    pub(super) fn trace(&self) -> AcquireTrace {
        AcquireTrace::begin(&self.path, self.strategy, &self.label)
    }

    /// Says why there can be no such lock, if there can't.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        self.refused.map_or(Ok(()), Err)?;
        self.strategy.check_path(&self.path)?;
        if self.kind == Kind::Upgradeable {
            return Err(
                "this store has no upgradeable readers: acquire as a writer, or use ZooKeeper",
            );
        }
        self.kind.check(self.strategy, &self.path, self.limit)
    }
}
