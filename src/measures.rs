//! Metrics: for the recorder that the program has installed, with the feature `metrics`. Otherwise nothing is counted.

use std::sync::OnceLock;
use std::time::Duration;

/// Counts one in a gauge while it lives.
pub(crate) struct Counted(&'static str);

impl Counted {
    pub(crate) fn begin(gauge: &'static str) -> Counted {
        add(gauge, 1.0);
        Counted(gauge)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        add(self.0, -1.0);
    }
}

/// What an acquire, or the like, has come to.
#[derive(Default)]
pub(crate) struct Outcome(OnceLock<&'static str>);

impl Outcome {
    /// The first one counts.
    pub(crate) fn is(&self, outcome: &'static str) {
        let _ = self.0.set(outcome);
    }

    /// A future that was dropped has come to nothing.
    pub(crate) fn or_cancelled(&self) -> &'static str {
        self.0.get().unwrap_or(&"cancelled")
    }
}

#[cfg(not(feature = "metrics"))]
mod recorder {
    use super::Duration;

    pub(super) fn add(_: &'static str, _: f64) {}
    pub(crate) fn count(_: &'static str, _: &'static str, _: &'static str) {}
    pub(crate) fn time(_: &'static str, _: &'static str, _: &'static str, _: Duration) {}
}

/// A recorder is foreign code, which may panic. That it may not block is said in the docs.
#[cfg(feature = "metrics")]
mod recorder {
    use super::Duration;
    use crate::panics::catch_panic;

    pub(super) fn add(gauge: &'static str, change: f64) {
        catch_panic(|| metrics::gauge!(gauge).increment(change));
    }

    pub(crate) fn count(counter: &'static str, label: &'static str, value: &'static str) {
        catch_panic(|| metrics::counter!(counter, label => value).increment(1));
    }

    pub(crate) fn time(
        histogram: &'static str,
        label: &'static str,
        value: &'static str,
        took: Duration,
    ) {
        catch_panic(|| metrics::histogram!(histogram, label => value).record(took));
    }
}

use recorder::add;
pub(crate) use recorder::{count, time};
