//! Which faults come, drawn from a seed: the same seed draws the same ones.
//!
//! There are two lanes, one for servers and one for clients, and each does one thing at a time; so
//! a client may be frozen while the leader is killed. Each lane deals its kinds like cards: none
//! comes again before all have come. Who leads, and what the threads do meanwhile, is not in the
//! seed's hands.

use std::time::Duration;

use fastrand::Rng;

use crate::fault::FaultKind;

/// A fault to make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Draw {
    /// How long to leave everything in peace before.
    pub pause: Duration,
    pub kind: FaultKind,
    /// How long it lasts.
    pub lasts: Duration,
    /// Which of the possible victims it is: from 0 up to 1.
    pub victim: f64,
}

/// The faults of one lane, without end.
pub struct Lane {
    rng: Rng,
    kinds: Vec<FaultKind>,
    hand: Vec<FaultKind>,
    session_timeout: Duration,
}

impl Lane {
    pub fn of_servers(seed: u64, session_timeout: Duration) -> Lane {
        Lane::new(seed, session_timeout, FaultKind::is_of_servers)
    }

    pub fn of_clients(seed: u64, session_timeout: Duration) -> Lane {
        Lane::new(!seed, session_timeout, |kind| !kind.is_of_servers())
    }

    fn new(seed: u64, session_timeout: Duration, is_mine: impl Fn(FaultKind) -> bool) -> Lane {
        let kinds = FaultKind::ALL.into_iter().filter(|kind| is_mine(*kind)).collect();
        Lane { rng: Rng::with_seed(seed), kinds, hand: Vec::new(), session_timeout }
    }

    pub fn draw(&mut self) -> Draw {
        if self.hand.is_empty() {
            self.hand.clone_from(&self.kinds);
            self.rng.shuffle(&mut self.hand);
        }
        let kind = self.hand.pop().unwrap_or(self.kinds[0]);
        let session = self.session_timeout.as_secs_f64();
        let lasts = match kind {
            FaultKind::LeaderKilled | FaultKind::FollowerKilled => self.between(0.2, 3.0),
            // From a hiccup to well past the silence after which servers give each other up.
            FaultKind::LeaderFrozen | FaultKind::FollowerFrozen => self.between(0.5, 8.0),
            FaultKind::QuorumDown => self.between(0.5, 3.0),
            // How long until it is replaced.
            FaultKind::ClientKilled => self.between(0.0, 1.0),
            // Always beyond its session.
            FaultKind::ClientFrozen => session * self.between(1.15, 1.6),
            // Sometimes within its session, sometimes beyond.
            FaultKind::LinkCut => session * self.between(0.3, 1.6),
        };
        let pause =
            if kind.is_of_servers() { self.between(3.0, 9.0) } else { self.between(0.5, 4.0) };
        Draw {
            pause: Duration::from_secs_f64(pause),
            kind,
            lasts: Duration::from_secs_f64(lasts),
            victim: self.rng.f64(),
        }
    }

    fn between(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.rng.f64()
    }
}

impl Draw {
    /// The victim among so many.
    pub fn victim_of(&self, count: usize) -> usize {
        ((self.victim * count as f64) as usize).min(count.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Duration = Duration::from_secs(4);

    fn draws(mut lane: Lane, count: usize) -> Vec<Draw> {
        (0..count).map(|_| lane.draw()).collect()
    }

    #[test]
    fn a_seed_draws_the_same_faults_again_and_another_seed_draws_others() {
        assert_eq!(draws(Lane::of_servers(7, T), 50), draws(Lane::of_servers(7, T), 50));
        assert_ne!(draws(Lane::of_servers(7, T), 50), draws(Lane::of_servers(8, T), 50));
    }

    #[test]
    fn no_kind_comes_again_before_all_have_come() {
        for (lane, kinds) in [(Lane::of_servers(3, T), 5), (Lane::of_clients(3, T), 3)] {
            for deal in draws(lane, 60).chunks(kinds) {
                let mut dealt: Vec<_> = deal.iter().map(|draw| draw.kind).collect();
                dealt.sort();
                dealt.dedup();
                assert_eq!(dealt.len(), kinds);
            }
        }
    }

    #[test]
    fn a_frozen_client_always_outlives_its_session() {
        let frozen = draws(Lane::of_clients(1, T), 300).into_iter();
        let mut frozen = frozen.filter(|draw| draw.kind == FaultKind::ClientFrozen);
        assert!(frozen.all(|draw| draw.lasts > T));
    }

    #[test]
    fn a_victim_is_one_of_them() {
        for draw in draws(Lane::of_clients(1, T), 100) {
            assert!(draw.victim_of(3) < 3);
            assert_eq!(draw.victim_of(1), 0);
        }
    }
}
