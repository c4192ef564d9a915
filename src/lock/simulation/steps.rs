//! What can happen next.

use std::hash::Hash;

use super::client::{Connection, Silence};
use super::server::Life;
use super::world::World;
use crate::error::Code;

/// Something that happens at once. Numbers are those of clients, unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A task (its number) runs until it waits.
    Run(usize),
    /// The server takes up the next request.
    Apply(usize),
    /// The server applies the next transaction.
    CatchUp(usize),
    /// The client hears the next thing that its server sent.
    Deliver(usize),
    /// A timer (its number) goes off.
    Fire(u64),
    /// The client notices that its connection is gone.
    Notice(usize),
    /// It reaches a server that has everything.
    Reconnect(usize),
    /// It reaches a server that has only what the client has seen.
    ReconnectStale(usize),
    /// An attempt to connect fails, and what was submitted meanwhile fails with it.
    FailQueued(usize),
    /// A new session begins.
    Connect(usize),
    /// Trust ends, by the client's clock.
    Distrust(usize),
    /// The server proves that the session lives.
    Prove(usize),
    /// Deletions with an unknown outcome are tried again.
    Retry(usize),
    /// The servers give the session up.
    Condemn(usize),
    /// The znodes of a session (its id) that was given up are deleted.
    Close(i64),
    /// A frozen process goes on.
    Thaw(usize),
    /// What nobody else sees, taken together, in reduced scenarios: the session ends on the
    /// servers, and its znodes go;
    Expire(usize),
    /// trust ends, and the session turns out to have survived;
    ReconnectAnew(usize),
    /// the session has ended, but its znodes are still there when the next one begins;
    NextSession(usize),
    /// A holder (the contender's number) releases.
    Release(usize),
    /// A connection that was silent is well again.
    HearAgain(usize),
    /// Another library's contender goes.
    LeaveForeign,

    /// Fault: the connection breaks.
    Cut(usize),
    /// Fault: the process stands still, with all its threads.
    Freeze(usize),
    /// Fault: no proof came in time, though the connection is up.
    Doubt(usize),
    /// Fault: the same, and the servers have given the session up.
    Expel(usize),
    /// Fault: requests were not answered in time, though the connection is up.
    TimeOut(usize),
    /// Fault: the process is killed.
    Kill(usize),
    /// Fault: an acquire (the contender's number) is given up.
    Cancel(usize),
    /// Fault: an operator deletes a claim (the transaction that made it).
    Rob(i64),
    /// Fault: an operator deletes the lock's directory, with all that is in it.
    Raze,
    /// Fault: an empty directory is reaped (the transaction that made it).
    Reap(i64),
    /// Fault: he deletes it and makes it anew.
    Remake,
    /// Fault: somebody puts something into the lock's directory.
    Litter(u8),
    /// Fault: somebody writes over a claim's data (the transaction that made it).
    Write(i64),
    /// Fault: the connection carries one direction only, or reaches a server that is cut off.
    Silence(usize, Silence),
    /// Fault: another library's contender makes a claim.
    Foreign,
}

impl World {
    /// What can happen without any fault. With `reduced`, what only one client sees happens by
    /// itself, and a pause that can change nothing does not end.
    pub(super) fn regular_steps(&self, reduced: bool, steps: &mut Vec<Step>) {
        for (number, client) in self.clients.iter().enumerate() {
            if client.is_served() {
                steps.push(Step::Apply(number));
            }
            let up = client.connection == Connection::Up;
            let isolated = client.silence == Some(Silence::Isolated);
            if up && !isolated && client.replica.applied < self.leader.log.len() {
                steps.push(Step::CatchUp(number));
            }
            if client.silence.is_some() && !client.dead {
                steps.push(Step::HearAgain(number));
            }
            if client.is_running() && up && !client.unconfirmed.is_empty() {
                steps.push(Step::Retry(number));
            }
            if client.is_running() && !up && !client.over && !client.queued.is_empty() {
                steps.push(Step::FailQueued(number));
            }
            if reduced {
                self.steps_of_session_in_short(number, steps);
            } else {
                self.steps_of_session(number, steps);
            }
        }
        for (session, life) in &self.leader.sessions {
            if *life == Life::Closing {
                steps.push(Step::Close(*session));
            }
        }
        if self.foreign.is_some() {
            steps.push(Step::LeaveForeign);
        }
        for timer in &self.timers {
            let client = &self.clients[timer.client];
            if !timer.fired && client.is_running() && (!reduced || self.is_news(timer.client)) {
                steps.push(Step::Fire(timer.id));
            }
        }
    }

    /// What can happen to a client's session and its connection.
    fn steps_of_session(&self, number: usize, steps: &mut Vec<Step>) {
        let client = &self.clients[number];
        let up = client.connection == Connection::Up;
        let life = self.leader.life(client.session);
        if client.frozen && !client.dead {
            steps.push(Step::Thaw(number));
        }
        if life == Life::Alive && (client.lost || client.frozen || client.dead) {
            steps.push(Step::Condemn(number));
        }
        if !client.is_running() {
            return;
        }
        if client.hears() {
            steps.push(Step::Deliver(number));
        }
        let silent = client.silence.is_some();
        if client.connection == Connection::Broken || silent {
            steps.push(Step::Notice(number));
        }
        if client.over {
            steps.push(Step::Connect(number));
        } else if client.connection == Connection::Down {
            steps.push(Step::Reconnect(number));
            let stale = self.lag && life == Life::Alive;
            if stale && self.stalest(number) < self.leader.log.len() {
                steps.push(Step::ReconnectStale(number));
            }
        }
        if (!up || silent) && !client.lost {
            steps.push(Step::Distrust(number));
        }
        let unproven = client.lost || !client.proven;
        if up && !silent && unproven && life == Life::Alive {
            steps.push(Step::Prove(number));
        }
    }

    /// The same where all happens together that one client alone sees: trust ends, and the servers
    /// give a session up, only just before somebody could tell.
    fn steps_of_session_in_short(&self, number: usize, steps: &mut Vec<Step>) {
        let client = &self.clients[number];
        let alive = self.leader.life(client.session) == Life::Alive;
        let down = client.connection == Connection::Down;
        let silent = client.silence.is_some();
        if client.is_running() && silent {
            steps.push(Step::Notice(number));
            if !client.lost {
                steps.push(Step::Distrust(number));
            }
        }
        if alive && (down || silent || client.frozen || client.dead) {
            steps.push(Step::Expire(number));
        }
        if client.frozen && !client.dead {
            steps.push(Step::Thaw(number));
        }
        if client.is_running() && down {
            steps.push(Step::Reconnect(number));
            if alive {
                steps.extend([Step::ReconnectAnew(number), Step::NextSession(number)]);
                if self.lag && self.stalest(number) < self.leader.log.len() {
                    steps.push(Step::ReconnectStale(number));
                }
            }
        }
    }

    /// Whether a pause of this client may end: after a change in the world, or for the first few
    /// times since. What is tried again otherwise gives the same again.
    pub(super) fn is_news(&self, client: usize) -> bool {
        const PAUSES_WITHOUT_NEWS: u32 = 1;
        let client = &self.clients[client];
        let (when, times) = client.last_fired;
        when != self.leader.log.len() + client.changes || times < PAUSES_WITHOUT_NEWS
    }

    /// To which client a step happens, if to one. In a reduced scenario a contender has its
    /// client's number.
    pub(super) fn client_of(&self, step: Step) -> Option<usize> {
        match step {
            Step::Fire(id) => {
                self.timers.iter().find(|timer| timer.id == id).map(|timer| timer.client)
            }
            Step::Apply(client)
            | Step::CatchUp(client)
            | Step::Deliver(client)
            | Step::Notice(client)
            | Step::Reconnect(client)
            | Step::ReconnectStale(client)
            | Step::FailQueued(client)
            | Step::Connect(client)
            | Step::Distrust(client)
            | Step::Prove(client)
            | Step::Retry(client)
            | Step::Condemn(client)
            | Step::Thaw(client)
            | Step::Expire(client)
            | Step::ReconnectAnew(client)
            | Step::NextSession(client)
            | Step::Expel(client)
            | Step::HearAgain(client)
            | Step::Silence(client, _)
            | Step::Release(client)
            | Step::Cut(client)
            | Step::Freeze(client)
            | Step::Doubt(client)
            | Step::TimeOut(client)
            | Step::Kill(client)
            | Step::Cancel(client) => Some(client),
            Step::Run(_)
            | Step::Close(_)
            | Step::Rob(_)
            | Step::Raze
            | Step::Remake
            | Step::Reap(_)
            | Step::Litter(_)
            | Step::Write(_)
            | Step::Foreign
            | Step::LeaveForeign => None,
        }
    }

    /// Makes a step happen that is the world's alone.
    pub(super) fn perform(&mut self, step: Step, reduced: bool, lock: (&str, bool)) {
        let (lock, in_queue) = lock;
        match step {
            Step::Expire(client) => {
                self.condemn(client);
                self.close_session(self.clients[client].session);
            }
            Step::ReconnectAnew(client) => {
                self.clients[client].lose();
                self.reconnect(client, false);
            }
            Step::NextSession(client) => {
                self.condemn(client);
                self.reconnect(client, false);
                self.connect(client);
            }
            Step::Expel(client) => {
                self.clients[client].lose();
                self.condemn(client);
            }
            Step::Reconnect(client) if reduced => {
                self.reconnect(client, false);
                if self.clients[client].over {
                    self.connect(client);
                }
            }
            Step::Doubt(client) if reduced => {
                self.clients[client].lose();
                self.prove(client);
            }
            Step::Thaw(client) if reduced => {
                // A freeze that costs nothing is a slow process, no more.
                if self.leader.life(self.clients[client].session) == Life::Alive {
                    self.condemn(client);
                }
                self.clients[client].frozen = false;
            }
            // Not the world's: who holds the tasks and the contenders does these.
            Step::Run(_) | Step::Release(_) | Step::Cancel(_) => {}
            Step::Apply(client) => self.apply(client),
            Step::CatchUp(client) => self.catch_up(client, 1),
            Step::Deliver(client) => self.deliver(client),
            Step::Fire(id) => self.fire(id),
            Step::Notice(client) => self.notice(client),
            Step::Reconnect(client) => self.reconnect(client, false),
            Step::ReconnectStale(client) => self.reconnect(client, true),
            Step::FailQueued(client) => self.give_up_requests(client, Code::CONNECTION_LOSS),
            Step::Connect(client) => self.connect(client),
            Step::Distrust(client) | Step::Doubt(client) => self.clients[client].lose(),
            Step::Prove(client) => {
                // Trusted again, it may have to be proven yet.
                self.clients[client].proven |= !self.clients[client].lost;
                self.prove(client);
            }
            Step::HearAgain(client) => {
                self.hear_again(client);
                let alive = self.leader.life(self.clients[client].session) == Life::Alive;
                if reduced && alive && self.clients[client].lost {
                    self.prove(client);
                }
            }
            Step::Silence(client, kind) => self.fall_silent(client, kind),
            Step::Write(czxid) => self.write(czxid),
            Step::Foreign => self.enter_foreign(lock, in_queue),
            Step::LeaveForeign => self.leave_foreign(),
            Step::Remake => self.remake(lock),
            Step::Retry(client) => self.retry_deletes(client),
            Step::Condemn(client) => self.condemn(client),
            Step::Close(session) => self.close_session(session),
            Step::Thaw(client) => self.clients[client].frozen = false,
            Step::Cut(client) => self.cut(client),
            Step::Freeze(client) => self.clients[client].frozen = true,
            Step::TimeOut(client) => {
                self.clients[client].changes += 1;
                self.give_up_requests(client, Code::OPERATION_TIMEOUT);
            }
            Step::Kill(client) => self.kill(client),
            Step::Rob(czxid) => self.rob(czxid),
            Step::Raze => self.raze(lock),
            Step::Reap(czxid) => self.delete_made_by(czxid),
            Step::Litter(number) => self.litter(number, lock),
        }
    }

    fn fire(&mut self, id: u64) {
        let Some(timer) = self.timers.iter_mut().find(|timer| timer.id == id) else { return };
        timer.fired = true;
        timer.waker.wake_by_ref();
        self.now = self.now.max(timer.at);
        let number = timer.client;
        let mut of_client = self.timers.iter().filter(|timer| timer.client == number);
        let place = of_client.position(|timer| timer.id == id);
        let client = &mut self.clients[number];
        place.hash(&mut client.history);
        let when = self.leader.log.len() + client.changes;
        let times = if client.last_fired.0 == when { client.last_fired.1 + 1 } else { 1 };
        client.last_fired = (when, times);
    }
}
