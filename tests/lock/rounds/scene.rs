//! What a fault can act on, and what it can wait for.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use zklock::Client;
use zklock_testing::{Ensemble, Ops, Proxy, Rule, Server};

use super::{Ending, MEMBERS, NAP, Pace, Void};

/// What a fault can act on.
pub struct Scene<'a> {
    pub ensemble: &'a Ensemble,
    /// Before each member stands a proxy; the holder comes through these, nobody else does.
    pub doors: &'a [Proxy],
    pub pace: Pace,
    /// Counts up, void rounds included: for what is to vary.
    pub round: usize,
    pub leader: usize,
    /// The member that the holder is connected to.
    pub seat: usize,
    pub holder: &'a Client,
    pub(super) successor: &'a JoinHandle<Ending>,
}

impl Scene<'_> {
    pub fn leader(&self) -> &Server {
        self.ensemble.member(self.leader)
    }

    pub fn door(&self) -> &Proxy {
        &self.doors[self.seat]
    }

    /// Waits for an answer to the holder that comes from now on. Pings are none.
    pub fn wait_answer(&self, within: Duration) -> Result<Instant, Void> {
        self.door().clear_seen();
        let answer = Rule::reply(Ops::any());
        self.door().wait_for(&answer, 1, within).map_err(|_| "the holder got no answer")?;
        Ok(Instant::now())
    }

    /// From now on the holder finds no member but the one that it is connected to.
    pub fn bar_the_ways_out(&self) {
        let others = self.doors.iter().enumerate().filter(|(index, _)| *index != self.seat);
        others.for_each(|(_, door)| door.cut());
    }

    /// Waits until another member leads than the one that did.
    pub fn wait_deposed(&self, until: Instant) -> Result<(), Void> {
        let leads = |index: usize| self.ensemble.member(index).mode().as_deref() == Some("leader");
        while !(0..MEMBERS).any(|index| index != self.leader && leads(index)) {
            if Instant::now() > until {
                return Err("nobody else was elected in time");
            }
            thread::sleep(NAP);
        }
        Ok(())
    }

    /// Lets the leader's loop, which goes round every half tick and pings the followers, begin anew so long before one
    /// of the moments at which sessions expire: the multiples of a tick by the clock that Java goes by. A leader that
    /// was stopped when its turn came makes it when it goes on. Returns the moment of the ping.
    pub fn set_the_beat(&self, before: Duration) -> Instant {
        let tick = self.pace.tick();
        // Longer than a half, so that a turn falls into it.
        let stop = tick * 11 / 20;
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let now = Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32);
        let past = Duration::from_nanos((now.as_nanos() % tick.as_nanos()) as u64);
        // Far enough from now for the stop.
        let beat = Instant::now() + 2 * tick - past - before;
        sleep_until(beat - stop);
        self.leader().freeze().unwrap();
        sleep_until(beat);
        self.leader().thaw().unwrap();
        beat
    }

    pub fn has_successor(&self) -> bool {
        self.successor.is_finished()
    }
}

pub fn sleep_until(moment: Instant) {
    thread::sleep(moment.saturating_duration_since(Instant::now()));
}
