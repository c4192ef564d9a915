//! The lease against simulated servers: in every run, at every moment, a session that the lease calls
//! proven must not have been ended by any leader.
//!
//! Time goes in steps of T/600. Modelled are three servers, one of which leads; its pings and the
//! reports of the others; a leader that stands still, is deposed, wakes and goes on answering syncs
//! for a while; a leader that stutters; servers cut off from each other; a client whose link falls
//! silent in one direction or both, and which reconnects; delays of every packet. Leaders end a
//! session as early as they may. Every order that is left open is drawn from a seed.

mod line;
mod tests;

use std::time::Duration;

use fastrand::Rng;
use line::{Line, Packet, Request, Word};

use super::{Lease, Proof};
use crate::runtime::BootInstant;

/// Steps in a session timeout.
const T: u64 = 600;
/// How late a running leader may be with a ping.
const LATENESS: u64 = T / 50;
const END: u64 = 8 * T;
const STEP: Duration = Duration::from_millis(10);

/// A lease that is kept wrongly: each has to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    SyncsCountAsWrites,
    ReadsCountAsWrites,
    AnswersCountFromTheirArrival,
    TheTickIsTakenForLess,
    ConnectionsCountFromTheirArrival,
    NoMargin,
}

/// A leader as the client's server knows it.
struct Leader {
    /// When it last counted the session.
    counted: u64,
    still_until: u64,
    next_ping: u64,
    /// From when on a quorum follows another.
    deposed_at: u64,
}

struct Run {
    rng: Rng,
    now: u64,
    tick: u64,
    leader: Leader,
    /// When the successor of a deposed leader has started, and has last counted the session.
    successor: Option<u64>,
    /// Whether the client is connected to the leader itself, or to one of the others.
    at_leader: bool,
    /// The other server has heard of the session since its last report.
    heard: bool,
    to_leader: Line<Word>,
    from_leader: Line<Word>,
    up: Line<Packet>,
    down: Line<Packet>,
    connected: bool,
    /// The client's server will be cut off just after a write, before it can report.
    cut_after_write: bool,
    /// Until when the client's process stands still.
    frozen_until: u64,
    /// When the client tries to connect next, and had not sent a handshake yet.
    connects_at: u64,
    before_handshake: u64,
    /// When the session was ended by a leader.
    ended: Option<u64>,
    lease: Lease,
    flaw: Option<Flaw>,
    last_sync: u64,
    last_write: u64,
    proven_for: u64,
    /// No fault, and no packet that is late.
    is_calm: bool,
}

fn at(step: u64) -> BootInstant {
    // Not 0, which is no moment.
    BootInstant::from_nanos((step + 100 * T) * STEP.as_nanos() as u64)
}

impl Run {
    fn new(seed: u64, flaw: Option<Flaw>) -> Run {
        let mut rng = Rng::with_seed(seed);
        let tick = T / [2, 2, 3, 5, 10][rng.usize(0..5)];
        let lease = Lease::default();
        let told = match (flaw, rng.bool()) {
            (Some(Flaw::TheTickIsTakenForLess), _) => Some(STEP * (tick / 3) as u32),
            (_, true) => Some(STEP * tick as u32),
            (_, false) => None,
        };
        lease.set_terms(STEP * T as u32, told);
        lease.wanted();
        let at_leader = rng.u8(0..3) == 0;
        let leader =
            Leader { counted: 0, still_until: 0, next_ping: rng.u64(0..tick / 2), deposed_at: END };
        Run {
            rng,
            now: 0,
            tick,
            leader,
            successor: None,
            at_leader,
            heard: false,
            to_leader: Line::new(),
            from_leader: Line::new(),
            up: Line::new(),
            down: Line::new(),
            connected: false,
            cut_after_write: false,
            frozen_until: 0,
            connects_at: 0,
            before_handshake: 0,
            ended: None,
            lease,
            flaw,
            last_sync: 0,
            last_write: 0,
            proven_for: 0,
            is_calm: false,
        }
    }

    fn delay(&mut self) -> u64 {
        match self.rng.u8(0..16) {
            0 if !self.is_calm => self.rng.u64(0..T / 4),
            _ => self.rng.u64(0..3),
        }
    }

    /// Runs to the end; gives when the lease called a session proven that had been ended.
    fn run(mut self) -> Result<u64, u64> {
        let fault_at = self.rng.u64(T / 2..4 * T);
        let fault = self.rng.u8(0..12);
        while self.now < END {
            if self.now == fault_at {
                self.fault(fault);
            }
            if self.now > fault_at && self.rng.u64(0..T) == 0 {
                let fault = self.rng.u8(0..12);
                self.fault(fault);
            }
            self.step();
            if self.lease.is_proven_at(at(self.now)) {
                self.proven_for += 1;
                if self.ended.is_some_and(|ended| ended <= self.now) {
                    return Err(self.now);
                }
            }
            if self.ended.is_some_and(|ended| self.now > ended + T) {
                break;
            }
            self.now += 1;
        }
        Ok(self.proven_for)
    }

    fn fault(&mut self, fault: u8) {
        match fault {
            // The leader stands still for a while; perhaps its followers leave it meanwhile.
            0..=2 => {
                let lasts = self.rng.u64(T / 10..T + T / 3);
                self.leader.still_until = self.now + lasts;
                if self.rng.bool() {
                    self.depose(lasts);
                }
            }
            // It is cut off from a quorum, and does not know.
            3 => {
                let lasts = self.rng.u64(1..self.tick);
                self.depose(lasts);
            }
            // The client's server is cut off from the leader.
            4 => self.cut_off(),
            5 | 9 | 10 => self.cut_after_write = true,
            6 => self.up.is_cut = true,
            7 => self.down.is_cut = true,
            8 => self.frozen_until = self.now + self.rng.u64(T / 10..T),
            _ => self.disconnect(),
        }
    }

    fn cut_off(&mut self) {
        self.to_leader.is_cut = true;
        self.from_leader.is_cut = true;
    }

    fn depose(&mut self, within: u64) {
        if self.leader.deposed_at == END {
            self.leader.deposed_at = self.now + self.rng.u64(0..within.max(1));
        }
    }

    fn disconnect(&mut self) {
        if self.connected {
            self.connected = false;
            self.up = Line::new();
            self.down = Line::new();
            self.connects_at = self.now + self.rng.u64(0..T / 3);
        }
    }

    fn step(&mut self) {
        // A successor counts from its start, in full.
        if self.now == self.leader.deposed_at {
            self.successor = Some(self.now);
        }
        let runs = self.now >= self.leader.still_until;
        // What a leader does at one moment it may do in any order.
        if runs && self.rng.bool() {
            self.end_sessions();
        }
        if runs {
            self.lead();
        }
        self.end_sessions_of_the_present();
        self.follow();
        if self.now >= self.frozen_until {
            self.hear();
            self.ask();
        }
    }

    /// The latest moment that a leader gives a session which it counted then.
    fn expires(&self, counted: u64) -> u64 {
        (counted + T) / self.tick * self.tick + self.tick.min(1)
    }

    fn end_sessions(&mut self) {
        let is_legal = self.successor.is_none();
        if is_legal
            && self.ended.is_none()
            && self.now >= self.expires(self.leader.counted).max(self.leader.counted + T)
        {
            self.ended = Some(self.now);
        }
    }

    fn end_sessions_of_the_present(&mut self) {
        if let Some(counted) = self.successor {
            if self.ended.is_none() && self.now >= counted + T {
                self.ended = Some(self.now);
            }
        } else if self.now >= self.leader.still_until {
            self.end_sessions();
        }
    }

    fn count(&mut self) {
        if self.ended.is_none() {
            self.leader.counted = self.now;
        }
    }

    /// What the leader does with what has reached it.
    fn lead(&mut self) {
        let is_late = self.now >= self.leader.next_ping + LATENESS
            || self.now > self.leader.still_until + LATENESS;
        if self.now >= self.leader.next_ping && (is_late || self.rng.u8(0..4) == 0) {
            self.leader.next_ping =
                self.leader.next_ping.max(self.now - LATENESS.min(self.now)) + self.tick / 2;
            let delay = self.rng.u64(0..2);
            self.from_leader.send(self.now, delay, Word::Ping);
        }
        while let Some(word) = self.to_leader.take(self.now) {
            match word {
                Word::Report(true) => self.count(),
                Word::Ask(packet) => self.execute(packet),
                _ => {}
            }
        }
    }

    /// A leader executes a request, and answers it if it can.
    fn execute(&mut self, packet: Packet) {
        let is_legal = self.successor.is_none();
        let lives = self.ended.is_none();
        let answers = match packet.request {
            Request::Handshake => {
                self.count();
                lives
            }
            Request::Read | Request::Sync => true,
            Request::Write => is_legal && lives,
        };
        if answers {
            let delay = self.rng.u64(0..2);
            if self.at_leader {
                let delay = delay + self.delay();
                self.down.send(self.now, delay, packet);
            } else {
                self.from_leader.send(self.now, delay, Word::Answer(packet));
            }
        }
    }

    /// What the client's server does; that is the leader itself, or one that follows it.
    fn follow(&mut self) {
        if self.at_leader {
            if self.now < self.leader.still_until {
                return;
            }
            while let Some(packet) = self.up.take(self.now) {
                self.count();
                self.execute(packet);
            }
            return;
        }
        while let Some(word) = self.from_leader.take(self.now) {
            match word {
                Word::Ping => {
                    let heard = std::mem::take(&mut self.heard);
                    let delay = self.rng.u64(0..2);
                    self.to_leader.send(self.now, delay, Word::Report(heard));
                }
                Word::Answer(packet) => {
                    let delay = self.delay();
                    self.down.send(self.now, delay, packet);
                }
                _ => {}
            }
        }
        while let Some(packet) = self.up.take(self.now) {
            self.heard = true;
            let delay = self.rng.u64(0..2);
            match packet.request {
                Request::Read => self.down.send(self.now, delay, packet),
                _ => self.to_leader.send(self.now, delay, Word::Ask(packet)),
            }
        }
        // It leaves a leader that is none any more, and its clients with it.
        if self.successor.is_some() && self.rng.u8(0..20) == 0 {
            self.disconnect();
        }
    }

    /// The client reads what has reached it.
    fn hear(&mut self) {
        while let Some(packet) = self.down.take(self.now) {
            let now = at(self.now);
            let submitted = match self.flaw {
                Some(Flaw::AnswersCountFromTheirArrival) => now,
                _ => at(packet.submitted),
            };
            match packet.request {
                Request::Handshake => {
                    self.connected = true;
                    let before = match self.flaw {
                        Some(Flaw::ConnectionsCountFromTheirArrival) => now,
                        _ => at(self.before_handshake),
                    };
                    self.lease.connected(before, now);
                }
                Request::Read => {
                    if self.flaw == Some(Flaw::ReadsCountAsWrites) {
                        self.lease.answered(submitted, now, Proof::Write);
                    }
                }
                Request::Sync => {
                    let proof = match self.flaw {
                        Some(Flaw::SyncsCountAsWrites) => Proof::Write,
                        _ => Proof::Sync,
                    };
                    self.lease.answered(submitted, now, proof);
                }
                Request::Write => {
                    if self.flaw == Some(Flaw::NoMargin) {
                        self.lease.connected(submitted, submitted);
                    }
                    self.lease.answered(submitted, now, Proof::Write);
                    if self.cut_after_write {
                        self.cut_off();
                    }
                }
            }
        }
    }

    fn send(&mut self, request: Request) {
        let delay = self.delay();
        self.up.send(self.now, delay, Packet { request, submitted: self.now });
    }

    /// The client sends what is due.
    fn ask(&mut self) {
        let now = at(self.now);
        if !self.connected {
            if self.now >= self.connects_at && self.ended.is_none() {
                self.connects_at = END;
                // To where a leader still is, or its successor, which answers at once.
                self.before_handshake = self.now;
                match self.successor {
                    None => {
                        self.at_leader = self.rng.u8(0..3) == 0;
                        self.to_leader = Line::new();
                        self.from_leader = Line::new();
                        self.heard = false;
                        self.send(Request::Handshake);
                    }
                    Some(_) => self.move_to_successor(),
                }
            }
            return;
        }
        // As often as a client's driver looks.
        let often = self.lease.is_short_at(now) && self.now % (T / 100) == 0;
        if often || self.now % (T / 30) == 0 {
            let asked = at(self.last_sync.max(self.last_write));
            if self.lease.is_write_due(at(self.last_write), now) {
                self.last_write = self.now;
                self.send(Request::Write);
            } else if self.lease.is_sync_due(asked, now) {
                self.last_sync = self.now;
                self.send(Request::Sync);
            }
        }
        match self.rng.u8(0..60) {
            _ if self.is_calm => {}
            0 => self.send(Request::Write),
            1 => self.send(Request::Read),
            _ => {}
        }
    }

    /// The successor leads from now on, and its clock for the session is what counts.
    fn move_to_successor(&mut self) {
        let Some(counted) = self.successor.take() else { return };
        self.leader = Leader {
            counted,
            still_until: 0,
            next_ping: self.now + self.rng.u64(0..self.tick / 2),
            deposed_at: END,
        };
        self.at_leader = self.rng.u8(0..3) == 0;
        self.to_leader = Line::new();
        self.from_leader = Line::new();
        self.heard = false;
        self.send(Request::Handshake);
    }
}
