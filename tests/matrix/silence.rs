//! A link that carries one direction only.

use zklock::zookeeper::SessionState;
use zklock_testing::wire::{Op, Ops};
use zklock_testing::{Gate, Rule};

use crate::scenario::{Outcome, Scenario};
use crate::step::Side;

/// For how long frames are held back, on all connections. Then they come, those of connections that
/// are there yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// Until the client takes its session for lost, by its own clock, or has been closed: what comes
    /// then comes late.
    UntilDoubted,
    /// Until the session has timed out, or, where the servers hear the client and so it can't, until
    /// the client has given its connection up.
    UntilOver,
}

impl Scenario {
    /// Holds the frames of one side back. The release of a guard that is on its way meanwhile must
    /// have its end before they come: it waits no longer than the session can be trusted.
    pub fn silence(&self, side: Side, lasting: Lasting) -> Outcome {
        let connects = Rule::request(Op::Connect);
        let before = self.proxy.count(&connects);
        let gates: Vec<_> =
            everything(side).into_iter().map(|rule| self.proxy.hold(rule)).collect();
        let is_closed = || self.client.state() == SessionState::Closed;
        let is_doubted = || self.client.state() == SessionState::Lost || is_closed();
        let mut ended = match (lasting, side) {
            (Lasting::UntilDoubted, _) => self.until("the session is doubted", is_doubted),
            (Lasting::UntilOver, Side::Request) => self.wait_until_session_ends(),
            (Lasting::UntilOver, Side::Reply) => self.until("the client connects anew", || {
                is_closed() || is_doubted() && self.proxy.count(&connects) > before
            }),
        };
        if self.releasing.is_up() {
            self.released_in_silence.raise();
            let released = self.until("the release ends in silence", || self.released.is_up());
            ended = ended.and(released);
        }
        gates.iter().for_each(Gate::release);
        ended
    }
}

fn everything(side: Side) -> Vec<Rule> {
    let nobody_asked: Ops = [Op::Ping, Op::Connect].into();
    match side {
        Side::Request => vec![Rule::request(Ops::any()), Rule::request(nobody_asked)],
        Side::Reply => {
            vec![Rule::reply(Ops::any()), Rule::reply(nobody_asked), Rule::event()]
        }
    }
}
