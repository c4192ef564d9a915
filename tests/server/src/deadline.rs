//! Deadlines that any `Duration` can make: `Duration::MAX` stands for "as long as it takes" and must not overflow.

use std::time::{Duration, Instant};

/// Thirty years: further than any test looks ahead, and every system's clock can count to it.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// The moment so long from now.
pub(crate) fn after(timeout: Duration) -> Instant {
    Instant::now() + timeout.min(FAR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_without_end_is_a_deadline_far_away() {
        assert!(after(Duration::MAX) > after(Duration::from_secs(3600)));
    }
}
