//! `/metrics`: the text format of Prometheus.

use std::cmp::Reverse;
use std::sync::Arc;

use prometheus::{Gauge, GaugeVec, Opts, Registry, TextEncoder};

use crate::follow::meters::Meters;
use crate::follow::shared::{Picture, View};
use crate::text::since;

/// So many locks have lines of their own, those that most wait for.
const NAMED: usize = 500;

/// # Errors
/// Two metrics have one name.
pub fn of(picture: &Picture, meters: &Meters) -> prometheus::Result<String> {
    // What is so at the moment is written anew each time, so no lock that went leaves a line behind.
    let now = Registry::new();
    let gauge = |name: &str, help: &str, value: f64| {
        let gauge = Gauge::with_opts(Opts::new(name, help))?;
        gauge.set(value);
        now.register(Box::new(gauge))
    };
    gauge(
        "zklock_connected",
        "1 while there is a connection to ZooKeeper; what is shown is old else",
        f64::from(u8::from(picture.is_connected())),
    )?;
    gauge(
        "zklock_complete",
        "1 once all was read that is below the path",
        f64::from(u8::from(picture.is_complete)),
    )?;
    gauge("zklock_locks_held", "Locks that somebody holds", count(picture.held()))?;
    gauge("zklock_waiters", "Claims that wait, on all locks together", count(picture.waiting()))?;
    gauge(
        "zklock_locks_contended",
        "Locks that somebody waits for",
        count(picture.locks.iter().filter(|lock| lock.waiters() > 0).count()),
    )?;
    gauge(
        "zklock_znodes_left_out",
        "Znodes that are not followed, for there are too many",
        count(picture.left_out),
    )?;
    let of_locks = |name: &str, help: &str| {
        let gauges = GaugeVec::new(Opts::new(name, help), &["path"])?;
        now.register(Box::new(gauges.clone()))?;
        prometheus::Result::Ok(gauges)
    };
    let waiters =
        of_locks("zklock_lock_waiters", "Claims that wait, of the 500 locks that most wait for")?;
    let held = of_locks(
        "zklock_lock_held_seconds",
        "For how long a lock is held, of the same locks; 0 where nobody does",
    )?;
    let mut locks: Vec<&Arc<View>> = picture.locks.iter().collect();
    locks.sort_by_key(|lock| Reverse(lock.waiters()));
    for lock in locks.into_iter().take(NAMED) {
        let path = [lock.found.path.escape_debug().to_string()];
        waiters.with_label_values(&path).set(count(lock.waiters()));
        held.with_label_values(&path)
            .set(lock.since().map_or(0.0, |began| since(began).as_secs_f64()));
    }
    TextEncoder::new().encode_to_string(&[now.gather(), meters.registry.gather()].concat())
}

fn count(number: usize) -> f64 {
    u32::try_from(number).unwrap_or(u32::MAX).into()
}
