//! Which faults come, drawn from a seed: the same seed draws the same ones.
//!
//! There are three lanes, for servers, clients and locks, and each does one thing at a time; so a
//! client may be frozen while the leader is killed. Each lane deals its kinds like cards: none
//! comes again before all have come. Who leads, and what the threads do meanwhile, is not in the
//! seed's hands.

use std::time::Duration;

use fastrand::Rng;

use crate::fault::{FaultKind, Victims};

/// A fault to make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Draw {
    /// How long to leave everything in peace before.
    pub pause: Duration,
    pub kind: FaultKind,
    /// How long it lasts, each time.
    pub lasts: Duration,
    /// How often it is done in a row.
    pub times: u32,
    /// Which of the possible victims it is: from 0 up to 1.
    pub victim: f64,
    /// Whether clients that hold go on holding meanwhile, and nobody begins to write.
    pub in_silence: bool,
    pub cut: Option<Cut>,
    /// How long after a tick it is done.
    pub after_tick: Duration,
}

/// Links that fall silent when a stalled server has gone on for a moment: what it said in that moment
/// is the last that its clients hear.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cut {
    pub after: Duration,
    pub lasts: Duration,
    pub links: Links,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Those of all clients to that server.
    ToVictim,
    /// All those of every second client, so that the others can take over.
    OfHalf,
}

/// What times are drawn around.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    pub session_timeout: Duration,
    pub sync_limit: Duration,
    pub tick: Duration,
}

/// The faults of one lane, without end.
pub struct Lane {
    rng: Rng,
    kinds: Vec<FaultKind>,
    hand: Vec<FaultKind>,
    timing: Timing,
}

impl Lane {
    /// `kinds`: those to deal; the ones of other victims are left to other lanes.
    pub fn new(seed: u64, victims: Victims, kinds: &[FaultKind], timing: Timing) -> Lane {
        let seed = match victims {
            Victims::Servers => seed,
            Victims::Clients => !seed,
            Victims::Locks => seed.swap_bytes() ^ 1,
        };
        let kinds = kinds.iter().copied().filter(|kind| kind.victims() == victims).collect();
        Lane { rng: Rng::with_seed(seed), kinds, hand: Vec::new(), timing }
    }

    /// The next fault; `None` if there are no kinds to draw from.
    pub fn draw(&mut self) -> Option<Draw> {
        if self.hand.is_empty() {
            self.hand.clone_from(&self.kinds);
            self.rng.shuffle(&mut self.hand);
        }
        let kind = self.hand.pop()?;
        let session = self.timing.session_timeout.as_secs_f64();
        let tick = self.timing.tick.as_secs_f64();
        let lasts = match kind {
            FaultKind::LeaderKilled | FaultKind::FollowerKilled => self.between(0.2, 3.0),
            // From a hiccup to well past the silence after which servers give each other up.
            FaultKind::LeaderFrozen | FaultKind::FollowerFrozen => self.between(0.5, 8.0),
            FaultKind::LeaderStalled | FaultKind::LeaderStutters => self.stall(),
            // Until the sessions of those who were cut off are over.
            FaultKind::FollowerSevered => tick + session * self.between(1.0, 1.3),
            FaultKind::QuorumDown => self.between(0.5, 3.0),
            // How long until it is replaced.
            FaultKind::ClientKilled => self.between(0.0, 1.0),
            // Always beyond its session.
            FaultKind::ClientFrozen => session * self.between(1.15, 1.6),
            // Sometimes within its session, sometimes beyond.
            FaultKind::LinkCut => session * self.between(0.3, 1.6),
            // Just so that contenders make it anew before it is deleted again.
            FaultKind::LockDeleted => self.between(0.005, 0.1),
            // The grace: longer than it takes a holder to be scheduled, shorter and longer than it holds.
            FaultKind::HoldBroken => self.between(0.3, 1.5),
        };
        let times = match kind {
            FaultKind::LeaderStutters => self.rng.u32(2..=4),
            FaultKind::LockDeleted => self.rng.u32(1..=6),
            FaultKind::HoldBroken => self.rng.u32(1..=4),
            _ => 1,
        };
        let pause = match kind.victims() {
            Victims::Servers => self.between(3.0, 9.0),
            Victims::Clients => self.between(0.5, 4.0),
            Victims::Locks => self.between(0.5, 3.0),
        };
        let is_stall = matches!(kind, FaultKind::LeaderStalled | FaultKind::LeaderStutters);
        Some(Draw {
            pause: Duration::from_secs_f64(pause),
            kind,
            lasts: Duration::from_secs_f64(lasts),
            times,
            victim: self.rng.f64(),
            // A leader that waits for its followers to confirm a write answers no sync behind it.
            in_silence: (is_stall || kind == FaultKind::FollowerSevered) && self.rng.u32(..4) > 0,
            cut: if is_stall { self.cut() } else { None },
            // Followers tell of their sessions twice a tick, and a session's time is rounded up to the
            // next tick. The least time is left to one that was told of just before a tick, and was
            // last heard of half a tick after that.
            after_tick: self.timing.tick.mul_f64(self.between(0.41, 0.47)),
        })
    }

    /// In seconds: until about the time at which the followers give their leader up, or its clients
    /// do, or they lose their sessions.
    fn stall(&mut self) -> f64 {
        let session = self.timing.session_timeout.as_secs_f64();
        let limit = self.timing.sync_limit.as_secs_f64();
        match self.rng.u32(..6) {
            0 | 1 => self.between(0.8 * limit, 1.5 * limit),
            2..5 => self.between(0.45 * session, 0.7 * session),
            _ => self.between(0.8 * limit, (1.3 * session).max(limit)),
        }
    }

    fn cut(&mut self) -> Option<Cut> {
        let tick = self.timing.tick.as_secs_f64();
        let session = self.timing.session_timeout.as_secs_f64();
        let links = match self.rng.u32(..3) {
            0 => return None,
            1 => Links::ToVictim,
            _ => Links::OfHalf,
        };
        // A deposed leader looks after its followers once a tick or so. As often within a few
        // milliseconds as within a part of a second: such a range is drawn by its powers.
        let after = 0.01 * (tick / 0.01).max(1.0).powf(self.rng.f64());
        // Until the sessions are over, and others hold what they held.
        let lasts = tick + session * self.between(1.0, 1.4);
        let [after, lasts] = [after, lasts].map(Duration::from_secs_f64);
        Some(Cut { after, lasts, links })
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
    const LIMIT: Duration = Duration::from_secs(1);
    const TIMING: Timing =
        Timing { session_timeout: T, sync_limit: LIMIT, tick: Duration::from_millis(100) };

    fn draws(seed: u64, victims: Victims, count: usize) -> Vec<Draw> {
        let mut lane = Lane::new(seed, victims, &FaultKind::ALL, TIMING);
        (0..count).filter_map(|_| lane.draw()).collect()
    }

    #[test]
    fn a_seed_draws_the_same_faults_again_and_another_seed_draws_others() {
        for victims in [Victims::Servers, Victims::Clients, Victims::Locks] {
            assert_eq!(draws(7, victims, 50), draws(7, victims, 50));
            assert_ne!(draws(7, victims, 50), draws(8, victims, 50));
        }
    }

    #[test]
    fn no_kind_comes_again_before_all_have_come() {
        let lanes = [(Victims::Servers, 8), (Victims::Clients, 3), (Victims::Locks, 2)];
        for (victims, kinds) in lanes {
            for deal in draws(3, victims, 48).chunks(kinds) {
                let mut dealt: Vec<_> = deal.iter().map(|draw| draw.kind).collect();
                dealt.sort();
                dealt.dedup();
                assert_eq!(dealt.len(), kinds);
            }
        }
    }

    #[test]
    fn only_the_kinds_that_are_wanted_come() {
        let wanted = [FaultKind::LinkCut];
        let mut clients = Lane::new(3, Victims::Clients, &wanted, TIMING);
        assert!((0..9).all(|_| clients.draw().is_some_and(|it| it.kind == FaultKind::LinkCut)));
        assert_eq!(Lane::new(3, Victims::Servers, &wanted, TIMING).draw(), None);
    }

    #[test]
    fn a_frozen_client_always_outlives_its_session() {
        let frozen = draws(1, Victims::Clients, 300).into_iter();
        let mut frozen = frozen.filter(|draw| draw.kind == FaultKind::ClientFrozen);
        assert!(frozen.all(|draw| draw.lasts > T));
    }

    #[test]
    fn stalls_end_before_and_after_the_followers_and_the_clients_give_up() {
        let stalled = draws(1, Victims::Servers, 700).into_iter();
        let stalled = stalled.filter(|draw| draw.kind == FaultKind::LeaderStalled);
        let lasts: Vec<Duration> = stalled.map(|draw| draw.lasts).collect();
        assert!(lasts.iter().all(|it| *it >= LIMIT * 4 / 5 && *it <= T * 13 / 10));
        let between = |from, until| lasts.iter().filter(|it| **it >= from && **it < until).count();
        for (from, until) in [(LIMIT * 4 / 5, LIMIT), (LIMIT, T * 2 / 3), (T * 2 / 3, T * 2)] {
            assert!(between(from, until) > 5, "{from:?} to {until:?}");
        }
    }

    #[test]
    fn a_victim_is_one_of_them() {
        for draw in draws(1, Victims::Clients, 100) {
            assert!(draw.victim_of(3) < 3);
            assert_eq!(draw.victim_of(1), 0);
        }
    }
}
