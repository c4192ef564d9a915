//! What the ensemble of a run is like: drawn from the seed, where nobody wishes for anything.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;

use crate::cluster::MEMBERS;

/// A machine that is busy with all of this makes servers silent for a while.
const PATIENT: Duration = Duration::from_secs(5);
const HASTY: Duration = Duration::from_millis(500);
const SHORT_TICK: Duration = Duration::from_millis(100);
/// The last member has the id 255 then: the sessions that it makes begin with 0xff.
pub const HIGHEST_FIRST_ID: u8 = u8::MAX - (MEMBERS as u8 - 1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The other members count on from there.
    pub first_id: u8,
    /// The servers' unit of time.
    pub tick: Duration,
    /// After how long a silence leader and followers give each other up.
    pub sync_limit: Duration,
}

/// What is not left to the seed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wishes {
    pub first_id: Option<u8>,
    pub tick: Option<Duration>,
    pub sync_limit: Option<Duration>,
}

impl Shape {
    /// A wish changes nothing else that the seed draws.
    pub fn draw(seed: u64, session_timeout: Duration, wishes: Wishes) -> Shape {
        // Another sequence than the faults'.
        let mut rng = Rng::with_seed(seed.rotate_left(32));
        let first_id = if rng.bool() { 1 } else { HIGHEST_FIRST_ID };
        let tick = if rng.bool() { SHORT_TICK } else { session_timeout / 2 };
        // So short that a leader is deposed before its clients leave it, which they do after two
        // thirds of their timeout.
        let sync_limit = if rng.bool() { PATIENT } else { HASTY.max(session_timeout / 8) };
        let tick = wishes.tick.unwrap_or(tick);
        Shape {
            first_id: wishes.first_id.unwrap_or(first_id),
            tick,
            sync_limit: whole_ticks(wishes.sync_limit.unwrap_or(sync_limit), tick),
        }
    }

    pub fn last_id(&self) -> usize {
        usize::from(self.first_id) + MEMBERS - 1
    }
}

/// Servers count this limit in ticks.
fn whole_ticks(limit: Duration, tick: Duration) -> Duration {
    let ticks = limit.as_millis().div_ceil(tick.as_millis().max(1)).max(1);
    tick * u32::try_from(ticks).unwrap_or(u32::MAX)
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tick, limit) = (self.tick.as_secs_f64(), self.sync_limit.as_secs_f64());
        let (first, last) = (self.first_id, self.last_id());
        write!(f, "servers {first} to {last}, tick {tick:.1} s, sync limit {limit:.1} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Duration = Duration::from_secs(4);

    #[test]
    fn a_seed_draws_the_same_shape_again_and_seeds_draw_all_of_them() {
        let draw = |seed| Shape::draw(seed, T, Wishes::default());
        let mut shapes: Vec<String> = (0..200).map(|seed| draw(seed).to_string()).collect();
        assert_eq!(shapes[7], draw(7).to_string());
        shapes.sort();
        shapes.dedup();
        assert_eq!(shapes.len(), 8, "{shapes:?}");
    }

    #[test]
    fn a_wish_is_granted_and_changes_nothing_else() {
        let wishes = Wishes { first_id: Some(9), ..Wishes::default() };
        for seed in 0..20 {
            let drawn = Shape::draw(seed, T, Wishes::default());
            assert_eq!(Shape::draw(seed, T, wishes), Shape { first_id: 9, ..drawn });
        }
    }

    #[test]
    fn a_sync_limit_is_counted_in_ticks() {
        let second = Duration::from_secs(1);
        assert_eq!(whole_ticks(second, 2 * second), 2 * second);
        assert_eq!(whole_ticks(5 * second, 2 * second), 6 * second);
        assert_eq!(whole_ticks(second, second / 10), second);
    }
}
