//! When a lock was asked for, and the spans in which that shows.

use std::sync::Arc;
use std::time::Instant;

use tracing::field::{Empty, debug};

use crate::lock::LockError;
use crate::runtime::now;
use crate::spans::Span;
use crate::zookeeper::spec::{LockSpec, Spec};

/// What became of an acquire.
pub(crate) const ACQUIRED: &str = "acquired";
pub(crate) const TAKEN: &str = "taken";
const FAILED: &str = "failed";

/// An acquire under way, as those see it who trace it.
pub(crate) struct Asked {
    pub(crate) at: Instant,
    pub(crate) span: Span,
}

impl Asked {
    pub(crate) fn now(spec: &Arc<Spec>) -> Asked {
        let asked = Arc::clone(spec);
        let span = Span::begin(move |parent| {
            let LockSpec { path, strategy, .. } = &*asked.lock;
            let (path, strategy, label) = (&**path, debug(strategy), &asked.hold.label);
            // Its names stay, wherever this file lies.
            tracing::debug_span!(
                target: "zklock", parent: parent, "acquire", path, strategy, label, outcome = Empty
            )
        });
        Asked { at: now(), span }
    }

    /// Notes how it ended. One that is given up has no outcome.
    pub(crate) fn outcome<T>(
        &self,
        result: Result<T, LockError>,
        outcome: impl FnOnce(&T) -> &'static str,
    ) -> Result<T, LockError> {
        let outcome = result.as_ref().map_or(FAILED, outcome);
        self.span.record(move |span| {
            span.record("outcome", outcome);
        });
        result
    }

    /// The span of what it has acquired.
    pub(crate) fn hold(&self, path: &Arc<str>, token: i64) -> Span {
        let path = Arc::clone(path);
        self.span.beside(move |parent| {
            let path = &*path;
            tracing::debug_span!(target: "zklock", parent: parent, "hold", path, token, end = Empty)
        })
    }
}
