//! What is counted while locks are followed.

use prometheus::{Histogram, HistogramOpts, IntCounter, Opts, Registry};

/// In seconds: a look a second sees no more than that, and jobs run for days.
const BUCKETS: [f64; 14] =
    [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 86_400.0];

pub struct Meters {
    pub registry: Registry,
    pub claims: IntCounter,
    pub hold_seconds: Histogram,
    pub wait_seconds: Histogram,
    pub gave_up: IntCounter,
    pub sessions_ended: IntCounter,
    pub connection_losses: IntCounter,
    pub own_sessions_lost: IntCounter,
    pub errors: IntCounter,
    pub requests: IntCounter,
}

impl Meters {
    /// # Errors
    /// Two have one name.
    pub fn new() -> prometheus::Result<Meters> {
        let registry = Registry::new();
        let counter = |name: &str, help: &str| {
            let counter = IntCounter::with_opts(Opts::new(name, help))?;
            registry.register(Box::new(counter.clone()))?;
            prometheus::Result::Ok(counter)
        };
        let histogram = |name: &str, help: &str| {
            let options = HistogramOpts::new(name, help).buckets(BUCKETS.to_vec());
            let histogram = Histogram::with_opts(options)?;
            registry.register(Box::new(histogram.clone()))?;
            prometheus::Result::Ok(histogram)
        };
        Ok(Meters {
            claims: counter(
                "zklock_claims_total",
                "Claims made on locks of numbered children, each counted",
            )?,
            hold_seconds: histogram(
                "zklock_hold_seconds",
                "How long locks were held, of holds that were seen to begin and to end",
            )?,
            wait_seconds: histogram(
                "zklock_wait_seconds",
                "How long holders had waited, of holds that were seen to begin",
            )?,
            gave_up: counter(
                "zklock_waits_given_up_total",
                "Waiters that went without having held",
            )?,
            sessions_ended: counter(
                "zklock_sessions_ended_total",
                "Sessions that ended while they held or waited for two locks or more: their claims went in one transaction",
            )?,
            connection_losses: counter(
                "zklock_connection_losses_total",
                "How often this program lost its connection",
            )?,
            own_sessions_lost: counter(
                "zklock_sessions_lost_total",
                "How often this program lost its session",
            )?,
            errors: counter(
                "zklock_errors_total",
                "Requests of this program that failed, and are tried again",
            )?,
            requests: counter("zklock_requests_total", "Requests of this program to the servers")?,
            registry,
        })
    }
}
