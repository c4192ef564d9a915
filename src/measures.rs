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

/// How an acquire ended.
#[derive(Default)]
pub(crate) struct Outcome(OnceLock<&'static str>);

impl Outcome {
    /// Later calls change nothing.
    pub(crate) fn is(&self, outcome: &'static str) {
        let _ = self.0.set(outcome);
    }

    /// A future that was dropped has no outcome of its own.
    pub(crate) fn or_cancelled(&self) -> &'static str {
        self.0.get().unwrap_or(&"cancelled")
    }
}

#[cfg(not(feature = "metrics"))]
mod recorder {
    use super::Duration;

    pub(super) fn add(_: &'static str, _: f64) {}
    pub(crate) fn count(_: &'static str, _: &'static str, _: &'static str) {}
    pub(crate) fn time(
        _: &'static str,
        _: &'static str,
        _: &'static str,
        _: impl FnOnce() -> Duration,
    ) {
    }
}

/// A recorder is code of the program, so a panic of it is caught.
#[cfg(feature = "metrics")]
mod recorder {
    use metrics::{Key, Label, Level, Metadata, with_recorder};

    use super::Duration;
    use crate::panics::catch_panic;

    static METADATA: Metadata<'_> = Metadata::new("zklock", Level::INFO, None);

    /// All labels. A label that is made for each call would allocate memory, even without a recorder.
    static LABELS: [Label; 12] = [
        Label::from_static_parts("outcome", "acquired"),
        Label::from_static_parts("outcome", "taken"),
        Label::from_static_parts("outcome", "failed"),
        Label::from_static_parts("outcome", "cancelled"),
        Label::from_static_parts("end", "released"),
        Label::from_static_parts("end", "session"),
        Label::from_static_parts("end", "deleted"),
        Label::from_static_parts("end", "broken"),
        Label::from_static_parts("state", "connecting"),
        Label::from_static_parts("state", "connected"),
        Label::from_static_parts("state", "suspended"),
        Label::from_static_parts("state", "lost"),
    ];

    fn key(name: &'static str, label: &'static str, value: &'static str) -> Key {
        let at = LABELS.iter().position(|it| (it.key(), it.value()) == (label, value));
        Key::from_static_parts(name, at.map_or(&[], |at| &LABELS[at..=at]))
    }

    pub(super) fn add(gauge: &'static str, change: f64) {
        let key = Key::from_static_name(gauge);
        catch_panic(|| with_recorder(|it| it.register_gauge(&key, &METADATA).increment(change)));
    }

    pub(crate) fn count(counter: &'static str, label: &'static str, value: &'static str) {
        let key = key(counter, label, value);
        catch_panic(|| with_recorder(|it| it.register_counter(&key, &METADATA).increment(1)));
    }

    pub(crate) fn time(
        histogram: &'static str,
        label: &'static str,
        value: &'static str,
        took: impl FnOnce() -> Duration,
    ) {
        let (key, took) = (key(histogram, label, value), took());
        let record = || with_recorder(|it| it.register_histogram(&key, &METADATA).record(took));
        catch_panic(record);
    }
}

use recorder::add;
pub(crate) use recorder::{count, time};
