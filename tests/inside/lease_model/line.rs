//! What goes between client and servers, and between servers, and the lines that it takes.

use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Handshake,
    Read,
    Sync,
    Write,
}

#[derive(Clone, Copy)]
pub(super) struct Packet {
    pub(super) request: Request,
    pub(super) submitted: u64,
}

/// What goes both ways between two servers, in order.
#[derive(Clone, Copy)]
pub(super) enum Word {
    Ping,
    /// With whether the session was heard of since the last one.
    Report(bool),
    Ask(Packet),
    Answer(Packet),
}

/// A line on which packets keep their order.
pub(super) struct Line<P> {
    packets: VecDeque<(u64, P)>,
    pub(super) is_cut: bool,
}

impl<P> Line<P> {
    pub(super) fn new() -> Line<P> {
        Line { packets: VecDeque::new(), is_cut: false }
    }

    pub(super) fn send(&mut self, now: u64, delay: u64, packet: P) {
        if !self.is_cut {
            let last = self.packets.back().map_or(0, |(at, _)| *at);
            self.packets.push_back((last.max(now + delay), packet));
        }
    }

    pub(super) fn take(&mut self, now: u64) -> Option<P> {
        let due = !self.is_cut && self.packets.front().is_some_and(|(at, _)| *at <= now);
        due.then(|| self.packets.pop_front().map(|(_, packet)| packet)).flatten()
    }
}
