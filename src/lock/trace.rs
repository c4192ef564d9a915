//! One acquire, and the hold that it leads to: in the log and the spans of `tracing`, and in metrics. All names and
//! fields are stable.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tracing::field::{Empty, debug};

use super::error::LockError;
use super::loss::LostReason;
use super::strategy::Strategy;
use crate::measures::{self, Counted, Outcome};
use crate::runtime::now;
use crate::spans::{Span, log_in};

pub(crate) const ACQUIRED: &str = "acquired";
pub(crate) const TAKEN: &str = "taken";
const FAILED: &str = "failed";

/// An acquire, for its span and for the time that it waited.
pub(crate) struct AcquireTrace {
    pub(crate) started: Instant,
    span: Span,
    outcome: Outcome,
    _waiting: Counted,
}

/// A hold, until it ends.
#[derive(Default)]
pub(crate) struct HoldTrace(Mutex<Option<Held>>);

struct Held {
    since: Instant,
    span: Span,
    _held: Counted,
}

impl AcquireTrace {
    pub(crate) fn begin(path: &Arc<str>, strategy: Strategy, label: &Arc<str>) -> AcquireTrace {
        let (path, label) = (Arc::clone(path), Arc::clone(label));
        let span = Span::begin(move |parent| {
            let (path, strategy, label) = (&*path, debug(strategy), &*label);
            tracing::debug_span!(
                target: "zklock", parent: parent, "acquire", path, strategy, label, outcome = Empty
            )
        });
        let waiting = Counted::begin("zklock_waiting");
        AcquireTrace { started: now(), span, outcome: Outcome::default(), _waiting: waiting }
    }

    /// Records how it ended. A dropped acquire has no outcome.
    pub(crate) fn ended<T>(
        &self,
        result: &Result<T, LockError>,
        outcome: impl FnOnce(&T) -> &'static str,
    ) {
        let outcome = result.as_ref().map_or(FAILED, outcome);
        self.outcome.is(outcome);
        self.span.record(move |span| {
            span.record("outcome", outcome);
        });
    }
}

impl Drop for AcquireTrace {
    fn drop(&mut self) {
        let waited = || now().saturating_duration_since(self.started);
        measures::time("zklock_acquire_seconds", "outcome", self.outcome.or_cancelled(), waited);
    }
}

impl HoldTrace {
    /// A hold of the claim at that path begins.
    pub(crate) fn begin(&self, acquire: &AcquireTrace, path: &Arc<str>, token: i64) {
        let since = now();
        let waited = since.saturating_duration_since(acquire.started);
        let claim = Arc::clone(path);
        let span = acquire.span.beside(move |parent| {
            let path = &*claim;
            tracing::debug_span!(target: "zklock", parent: parent, "hold", path, token, end = Empty)
        });
        let path = Arc::clone(path);
        log_in!(acquire.span, DEBUG, path = &*path, token, ?waited, "acquired");
        *self.0.lock() = Some(Held { since, span, _held: Counted::begin("zklock_held") });
    }

    /// The hold of that claim, its path and token, is over. A second call does nothing.
    pub(crate) fn end(&self, claim: impl FnOnce() -> (Arc<str>, i64), reason: LostReason) {
        let Some(Held { since, span, .. }) = self.0.lock().take() else { return };
        let ((path, token), held) = (claim(), now().saturating_duration_since(since));
        let end = match reason {
            LostReason::Released => "released",
            LostReason::Session => "session",
            LostReason::Deleted => "deleted",
            LostReason::Broken => "broken",
        };
        measures::time("zklock_hold_seconds", "end", end, || held);
        match reason {
            LostReason::Released => log_in!(span, DEBUG, path = &*path, token, ?held, "released"),
            _ => log_in!(span, WARN, path = &*path, token, ?reason, ?held, "lost"),
        }
        span.record(move |span| {
            span.record("end", debug(reason));
        });
    }
}
