//! Spans that block nobody: made, recorded to and closed where lines are handed on.

use std::sync::Arc;

use parking_lot::Mutex;
use tracing::{Dispatch, dispatcher};

use crate::logging::{close_later, queue};
use crate::panics::catch_panic;

/// As [`log!`](macro@crate::logging::log), within a span, if there is one.
macro_rules! log_in {
    ($span:expr, $level:ident, $($line:tt)+) => {
        if $crate::logging::is_wanted(tracing::Level::$level) {
            let span = $span.get();
            $crate::logging::queue(Box::new(move || {
                // Users filter by this name, wherever the file lies that says it.
                let line = || tracing::event!(target: "zklock", tracing::Level::$level, $($line)+);
                $crate::spans::SpanRef::in_scope(span, line);
            }));
        }
    };
}

pub(crate) use log_in;

/// A span of the subscriber on the thread that begins it, inside that thread's current span. `None` if no
/// subscriber wants spans.
pub(crate) struct Span(Option<SpanRef>);

/// A reference to a span, for the lines inside it.
#[derive(Clone)]
pub(crate) struct SpanRef(Arc<Inner>);

struct Inner {
    /// The thread's own, and the span that the thread was in.
    subscriber: Dispatch,
    parent: tracing::Span,
    /// Touched only where lines are handed on, except for moves.
    span: Mutex<tracing::Span>,
}

impl Span {
    /// `make` gets the span around it.
    pub(crate) fn begin(
        make: impl FnOnce(&tracing::Span) -> tracing::Span + Send + 'static,
    ) -> Span {
        // A subscriber asks for spans; `log` knows none.
        if tracing::Level::DEBUG > tracing::level_filters::LevelFilter::current() {
            return Span(None);
        }
        let subscriber = dispatcher::get_default(Dispatch::clone);
        // A subscriber that panics does so elsewhere too.
        let parent = catch_panic(tracing::Span::current).unwrap_or_else(tracing::Span::none);
        Span::made(subscriber, parent, make)
    }

    /// A span beside this one.
    pub(crate) fn beside(
        &self,
        make: impl FnOnce(&tracing::Span) -> tracing::Span + Send + 'static,
    ) -> Span {
        let Some(SpanRef(inner)) = &self.0 else { return Span(None) };
        Span::made(inner.subscriber.clone(), inner.parent.clone(), make)
    }

    fn made(
        subscriber: Dispatch,
        parent: tracing::Span,
        make: impl FnOnce(&tracing::Span) -> tracing::Span + Send + 'static,
    ) -> Span {
        let inner = Arc::new(Inner { subscriber, parent, span: Mutex::new(tracing::Span::none()) });
        let making = Arc::clone(&inner);
        // While lines are dropped there are no new spans, or they would pile up.
        let is_made = queue(Box::new(move || {
            let made = dispatcher::with_default(&making.subscriber, || make(&making.parent));
            *making.span.lock() = made;
        }));
        Span(is_made.then_some(SpanRef(inner)))
    }

    /// For lines that belong into it.
    pub(crate) fn get(&self) -> Option<SpanRef> {
        self.0.clone()
    }

    /// Notes what has become known.
    pub(crate) fn record(&self, record: impl FnOnce(&tracing::Span) + Send + 'static) {
        if let Some(span) = self.get() {
            queue(Box::new(move || span.with(record)));
        }
    }
}

impl SpanRef {
    fn with(&self, body: impl FnOnce(&tracing::Span)) {
        // A copy is another reference at the subscriber's, which may want the lock for itself.
        let span = std::mem::replace(&mut *self.0.span.lock(), tracing::Span::none());
        body(&span);
        *self.0.span.lock() = span;
    }

    /// Says a line within the span, if there is one.
    pub(crate) fn in_scope(span: Option<SpanRef>, line: impl FnOnce()) {
        let Some(span) = span else { return line() };
        dispatcher::with_default(&span.0.subscriber, || span.with(|span| span.in_scope(line)));
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        // Its subscriber hears of the end where it hears of all else.
        if let Some(span) = self.0.take() {
            close_later(Box::new(span));
        }
    }
}
