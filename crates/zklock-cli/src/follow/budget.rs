//! How many requests may be sent by now.

use std::time::{Duration, Instant};

/// What has not been used for that long is gone.
const SAVED: Duration = Duration::from_secs(1);

/// So many requests a second, on average. What is sent at once is counted before it is known how much it will be, so
/// there may be a debt, which is paid by waiting.
pub struct Budget {
    rate: f64,
    left: f64,
    at: Instant,
}

impl Budget {
    pub fn new(rate: u32, now: Instant) -> Budget {
        let rate = f64::from(rate);
        Budget { rate, left: rate * SAVED.as_secs_f64(), at: now }
    }

    /// When the next request may be sent: `None` is at once.
    pub fn wait(&mut self, now: Instant) -> Option<Instant> {
        let gained = now.saturating_duration_since(self.at).as_secs_f64() * self.rate;
        self.left = (self.left + gained).min(self.rate * SAVED.as_secs_f64());
        self.at = now;
        (self.left < 1.0).then(|| now + Duration::from_secs_f64((1.0 - self.left) / self.rate))
    }

    pub fn spend(&mut self, requests: usize) {
        #[allow(clippy::cast_precision_loss)] // Of fewer than 2^52.
        let requests = requests as f64;
        self.left -= requests;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_sent_than_the_rate_allows_whatever_is_asked_for() {
        let begin = Instant::now();
        let mut budget = Budget::new(100, begin);
        let mut sent = 0;
        for at in 0..10_000 {
            let now = begin + Duration::from_millis(at);
            while budget.wait(now).is_none() {
                budget.spend(7);
                sent += 7;
            }
        }
        // Ten seconds, what was saved at the beginning, and the last debt.
        assert!((1_000..=1_107).contains(&sent), "{sent}");
    }

    #[test]
    fn a_debt_is_paid_by_waiting() {
        let now = Instant::now();
        let mut budget = Budget::new(10, now);
        budget.spend(30);
        let until = budget.wait(now).expect("a debt");
        assert!(until > now + Duration::from_secs(2));
        assert!(budget.wait(until + Duration::from_millis(1)).is_none());
    }
}
