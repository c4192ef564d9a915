//! The life of handles, connections and sessions, as the C client and the servers have it.

use std::sync::Arc;
use std::time::Duration;

use super::client::{Connection, Message, Silence};
use super::request::Request;
use super::server::{Life, Replica, SESSION_TIMEOUT};
use super::trust::Heard;
use super::world::{World, session_event};
use crate::error::Code;
use crate::raw::Event;

impl World {
    /// A client opens its next handle; gives its number.
    pub(super) fn open_handle(
        &mut self,
        client: usize,
        listener: Arc<dyn Fn(Event) + Send + Sync>,
    ) -> usize {
        let to = &mut self.clients[client];
        to.link += 1;
        to.listener = Some(listener);
        (to.session, to.over, to.seen) = (0, false, 0);
        to.heard = Heard::default();
        to.unreported.clear();
        (to.connection, to.silence) = (Connection::Down, None);
        to.changed();
        to.link
    }

    /// A client closes a handle. That ends its session, if the server hears of it.
    pub(super) fn close_handle(&mut self, client: usize, link: usize) {
        let from = &mut self.clients[client];
        if from.dead || from.link != link || from.listener.is_none() {
            return;
        }
        let (session, hears) = (from.session, from.is_well_connected());
        let listener = from.listener.take();
        self.calls.push(Box::new(move || drop(listener)));
        self.give_up(client, Code::CLOSING, |_| true);
        let from = &mut self.clients[client];
        (from.connection, from.silence) = (Connection::Down, None);
        from.watches.clear();
        from.child_watches.clear();
        from.uplink.clear();
        from.queued.clear();
        from.downlink.clear();
        from.changed();
        match self.leader.life(session) {
            Life::Alive if hears => self.close_session(session),
            Life::Alive => drop(self.leader.sessions.insert(session, Life::Closing)),
            Life::Closing | Life::Closed => {}
        }
    }

    /// The connection breaks. What the server has got it may still execute; it answers nobody.
    pub(super) fn cut(&mut self, client: usize, reduced: bool) {
        self.clients[client].connection = Connection::Broken;
        self.clients[client].silence = None;
        self.clients[client].fails(reduced);
    }

    /// Something is wrong with the connection, and nobody has noticed.
    pub(super) fn fall_silent(&mut self, client: usize, silence: Silence, reduced: bool) {
        self.clients[client].silence = Some(silence);
        self.clients[client].fails(reduced);
    }

    /// It is well again: what was held up comes late. If the servers have given the session up
    /// meanwhile, the connection is closed.
    pub(super) fn hear_again(&mut self, client: usize) {
        self.clients[client].silence = None;
        self.clients[client].changes += 1;
        if self.leader.life(self.clients[client].session) == Life::Alive {
            self.spread();
        } else {
            self.turn_away(client);
        }
    }

    /// The client reaches a server; with `stale`, one that has applied no more than what the client
    /// has seen. Or it hears that its session is over.
    pub(super) fn reconnect(&mut self, client: usize, stale: bool) {
        if self.leader.life(self.clients[client].session) != Life::Alive {
            return self.hear_of_expiry(client);
        }
        let applied = if stale { self.stalest(client) } else { self.leader.log.len() };
        let to = &mut self.clients[client];
        to.connection = Connection::Up;
        to.silence = None;
        to.report();
        to.heard.connected(to.clock);
        to.replica = Replica::up_to(&self.leader, applied);
        // What the old server had not taken up by now, the session has moved away from.
        to.uplink.clear();
        for path in to.watches.keys() {
            let event = to.replica.watch_again(path, to.seen);
            to.downlink.extend(event.map(Message::Event));
        }
        for path in &to.child_watches {
            let event = to.replica.watch_children_again(path, to.seen);
            to.downlink.extend(event.map(Message::Event));
        }
        to.uplink.extend(to.queued.drain(..));
        to.changed();
        self.tell(client, session_event());
    }

    /// How much of the log a server may have applied that takes this client.
    pub(super) fn stalest(&self, client: usize) -> usize {
        let seen = self.clients[client].seen;
        self.leader.log.iter().take_while(|transaction| transaction.zxid <= seen).count()
    }

    /// The client hears that its session is over.
    fn hear_of_expiry(&mut self, client: usize) {
        self.clients[client].over = true;
        self.clients[client].changed();
        self.give_up(client, Code::SESSION_EXPIRED, |_| true);
        self.clients[client].queued.clear();
        self.tell(client, session_event());
    }

    /// A handle gets its session. Its server has applied all that went before that.
    pub(super) fn connect(&mut self, client: usize) {
        let session = self.leader.open_session();
        let to = &mut self.clients[client];
        to.session = session;
        to.replica = Replica::up_to(&self.leader, self.leader.log.len());
        to.connection = Connection::Up;
        to.report();
        to.heard.connected(to.clock);
        to.uplink.clear();
        to.uplink.extend(to.queued.drain(..));
        to.changed();
        self.tell(client, session_event());
    }

    /// The servers give a session up: they take no more from it, and soon delete its znodes.
    pub(super) fn condemn(&mut self, client: usize) {
        self.leader.sessions.insert(self.clients[client].session, Life::Closing);
        self.clients[client].changes += 1;
        if self.clients[client].silence.is_none() {
            self.turn_away(client);
        }
    }

    /// A session that was given up is refused, and its connection closed.
    fn turn_away(&mut self, client: usize) {
        let from = &mut self.clients[client];
        let refused = std::mem::take(&mut from.uplink);
        if from.connection == Connection::Up {
            from.connection = Connection::Broken;
            let zxid = from.replica.zxid(&self.leader);
            for request in refused {
                let answer = Err(Code::SESSION_EXPIRED);
                from.downlink.push_back(Message::Answer { request, answer, zxid });
            }
        } else {
            from.unheard.extend(refused.into_iter().filter(Request::is_awaited));
        }
    }

    /// The znodes of a session that was given up go.
    pub(super) fn close_session(&mut self, session: i64) {
        self.leader.close_session(session);
        self.spread();
    }

    /// When the client can't trust its session any more, but the leader has not given it up.
    pub(super) fn end_of_trust(&self, client: usize) -> Duration {
        self.clients[client].counted + SESSION_TIMEOUT - Duration::from_millis(1)
    }

    /// When the leader may give the session up.
    pub(super) fn end_of_session(&self, client: usize) -> Duration {
        self.clients[client].counted + SESSION_TIMEOUT
    }

    /// The process is killed.
    pub(super) fn kill(&mut self, client: usize) {
        let from = &mut self.clients[client];
        from.dead = true;
        from.connection = Connection::Broken;
        from.silence = None;
        from.watches.clear();
        from.child_watches.clear();
        // What the server has got it may still execute.
        let waiting = from.uplink.iter_mut().map(|request| request.reply.take());
        let dropped = (
            waiting.collect::<Vec<_>>(),
            std::mem::take(&mut from.downlink),
            std::mem::take(&mut from.queued),
            std::mem::take(&mut from.unheard),
            from.listener.take(),
        );
        self.calls.push(Box::new(move || drop(dropped)));
    }
}
