//! One acquire in the spans of `tracing`: when it began, and how it ended.

use std::sync::Arc;
use std::time::Instant;

use tracing::field::{Empty, debug};

use crate::lock::LockError;
use crate::runtime::now;
use crate::spans::Span;
use crate::zookeeper::spec::{LockSpec, Spec};

pub(crate) const ACQUIRED: &str = "acquired";
pub(crate) const TAKEN: &str = "taken";
const FAILED: &str = "failed";

/// An acquire, for its spans and for the time that it waited.
pub(crate) struct AcquireTrace {
    pub(crate) started: Instant,
    pub(crate) span: Span,
}

impl AcquireTrace {
    pub(crate) fn begin(spec: &Arc<Spec>) -> AcquireTrace {
        let traced = Arc::clone(spec);
        let span = Span::begin(move |parent| {
            let LockSpec { path, strategy, .. } = &*traced.lock;
            let (path, strategy, label) = (&**path, debug(strategy), &traced.hold.label);
            // Its names stay, wherever this file lies.
            tracing::debug_span!(
                target: "zklock", parent: parent, "acquire", path, strategy, label, outcome = Empty
            )
        });
        AcquireTrace { started: now(), span }
    }

    /// Records how it ended. A dropped acquire has no outcome.
    pub(crate) fn ended<T>(
        &self,
        result: &Result<T, LockError>,
        outcome: impl FnOnce(&T) -> &'static str,
    ) {
        let outcome = result.as_ref().map_or(FAILED, outcome);
        self.span.record(move |span| {
            span.record("outcome", outcome);
        });
    }

    pub(crate) fn hold(&self, path: &Arc<str>, token: i64) -> Span {
        let path = Arc::clone(path);
        self.span.beside(move |parent| {
            let path = &*path;
            tracing::debug_span!(target: "zklock", parent: parent, "hold", path, token, end = Empty)
        })
    }
}
