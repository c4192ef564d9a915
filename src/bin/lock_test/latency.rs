//! How long things take: histograms in microseconds.

use std::time::Duration;

use hdrhistogram::Histogram;

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
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.micros.saturating_record(micros);
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
        one.record(Duration::from_secs(3_600));
        assert_eq!(one.quantiles(), Some(Quantiles { p50: 51, p99: 100 }));
    }
}
