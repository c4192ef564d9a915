//! The life of sessions and connections: reconnection, trust and its end, expiry.

use std::collections::BTreeSet;

use super::client::{Client, Connection, Message, Silence};
use super::request::{Reply, Request};
use super::server::{Life, Replica};
use super::world::World;
use crate::error::{Code, Error};

impl World {
    /// The connection breaks. What the server has got it may still execute; it answers nobody.
    pub(super) fn cut(&mut self, client: usize) {
        self.clients[client].connection = Connection::Broken;
        self.clients[client].silence = None;
        self.clients[client].changes += 1;
    }

    /// Something is wrong with the connection, and nobody has noticed.
    pub(super) fn fall_silent(&mut self, client: usize, silence: Silence) {
        self.clients[client].silence = Some(silence);
        self.clients[client].changes += 1;
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
        to.replica = Replica::up_to(&self.leader, applied);
        // What the old server had not taken up by now, the session has moved away from.
        to.uplink.clear();
        let watched: BTreeSet<&String> = to.watches.iter().map(|it| &it.path).collect();
        for path in watched {
            let event = to.replica.watch_again(path, to.seen);
            to.downlink.extend(event.map(Message::Event));
        }
        to.uplink.extend(to.queued.drain(..));
        self.prove(client);
    }

    /// How much of the log a server may have applied that takes this client.
    pub(super) fn stalest(&self, client: usize) -> usize {
        let seen = self.clients[client].seen;
        self.leader.log.iter().take_while(|transaction| transaction.zxid <= seen).count()
    }

    /// The leader has answered: the session is trusted, anew if trust had ended.
    pub(super) fn prove(&mut self, client: usize) {
        let proves_late = self.proves_late;
        let client = &mut self.clients[client];
        if client.lost {
            client.lost = false;
            client.proven = !proves_late;
            client.period += 1;
        }
        client.changed();
    }

    /// The client hears that its session is over. There is no other yet.
    fn hear_of_expiry(&mut self, client: usize) {
        self.clients[client].over = true;
        self.clients[client].lose();
        let watches = std::mem::take(&mut self.clients[client].watches);
        for watched in watches {
            let error = Error::new("watch", &watched.path, Code::SESSION_EXPIRED);
            let _ = watched.fire.send(Err(error));
        }
        self.give_up_requests(client, Code::SESSION_EXPIRED);
        self.end_deletes(client);
    }

    /// The client opens its next session. Its server has applied all that went before that.
    pub(super) fn connect(&mut self, client: usize) {
        let fresh = Client::new(&mut self.leader);
        let client = &mut self.clients[client];
        client.session = fresh.session;
        client.replica = fresh.replica;
        client.seen = 0;
        client.link += 1;
        client.over = false;
        client.lost = false;
        client.proven = !self.proves_late;
        client.period += 1;
        client.connection = Connection::Up;
        client.uplink.clear();
        client.changed();
    }

    /// The servers give a session up: they take no more from it, and soon delete its znodes.
    pub(super) fn condemn(&mut self, client: usize) {
        let session = self.clients[client].session;
        self.leader.sessions.insert(session, Life::Closing);
        let from = &mut self.clients[client];
        // By the clock its trust is over, also if its process is frozen and can't look.
        from.lost = true;
        from.changed();
        if from.silence.is_none() {
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
            for Request { op, path, reply } in refused {
                let answer = Err(Code::SESSION_EXPIRED);
                from.downlink.push_back(Message::Answer { op, path, reply, answer, zxid });
            }
        } else {
            let heard = |request: &Request| !matches!(request.reply, Reply::Nobody);
            from.unheard.extend(refused.into_iter().filter(heard));
        }
    }

    /// The znodes of a session that was given up go.
    pub(super) fn close_session(&mut self, session: i64) {
        self.leader.close_session(session);
        self.spread();
    }

    /// The process is killed.
    pub(super) fn kill(&mut self, client: usize) {
        let client = &mut self.clients[client];
        client.dead = true;
        client.connection = Connection::Broken;
        client.silence = None;
        client.lost = true;
        client.downlink.clear();
        client.queued.clear();
        client.unheard.clear();
        client.unconfirmed.clear();
        client.watches.clear();
    }
}
