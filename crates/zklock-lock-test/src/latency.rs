//! How long things take: histograms in microseconds.

use std::time::Duration;

use hdrhistogram::Histogram;

const DAY: u64 = 86_400_000_000;

/// Durations, kept to three digits.
pub struct Latency {
    micros: Histogram<u32>,
}

/// The median, and what one in a hundred exceeds, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantiles {
    pub p50: u64,
    pub p99: u64,
}

impl Latency {
    pub fn new() -> Latency {
        let micros = Histogram::new(3).expect("three digits are within a histogram's limits");
        Latency { micros }
    }

    pub fn record(&mut self, time: Duration) {
        // It grows to what it is given; a day is beyond all that is measured.
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX).min(DAY);
        let _ = self.micros.record(micros);
    }

    pub fn add(&mut self, other: &Latency) {
        // It grows by itself, so there is room for whatever the other holds.
        let _ = self.micros.add(&other.micros);
    }

    /// `None` when nothing was recorded.
    pub fn quantiles(&self) -> Option<Quantiles> {
        let at = |quantile| self.micros.value_at_quantile(quantile);
        (!self.micros.is_empty()).then(|| Quantiles { p50: at(0.5), p99: at(0.99) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_all_threads_together() {
        let (mut one, mut other) = (Latency::new(), Latency::new());
        assert_eq!(one.quantiles(), None);
        (1..=50).for_each(|n| one.record(Duration::from_micros(n)));
        (51..=100).for_each(|n| other.record(Duration::from_micros(n)));
        one.add(&other);
        assert_eq!(one.quantiles(), Some(Quantiles { p50: 50, p99: 99 }));
    }

    #[test]
    fn seconds_are_kept_beside_microseconds() {
        let mut latency = Latency::new();
        [1, 300, 5_000, 2_000_000, 3_600_000_000]
            .into_iter()
            .for_each(|micros| latency.record(Duration::from_micros(micros)));
        let Quantiles { p50, p99 } = latency.quantiles().expect("five values");
        assert_eq!(p50 / 10, 500);
        assert!(p99.abs_diff(3_600_000_000) < 3_600_000, "{p99}");
        latency.record(Duration::MAX);
        assert!(latency.quantiles().is_some_and(|q| q.p99 > 86_000_000_000));
    }
}
