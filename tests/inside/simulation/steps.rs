//! What can happen next.

use std::hash::Hash;
use std::time::Duration;

use super::client::{Connection, Silence};
use super::scenario::A_DELAY;
use super::server::{Life, SESSION_TIMEOUT};
use super::world::World;

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
    /// The client's clock passes, to where somebody on it waits for.
    Pass(usize),
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
    /// A client's server reports to the leader that it has heard of the client.
    Report(usize),
    /// The client's clock passes, until it can't trust its session any more.
    Distrust(usize),
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
    /// Fault: answers are late, though the connection is up.
    TimeOut(usize),
    /// Fault: the process is killed.
    Kill(usize),
    /// Fault: an acquire (the contender's number) is given up.
    Cancel(usize),
    /// Fault: an operator deletes a claim (its number).
    Rob(i64),
    /// Fault: an operator deletes the lock's directory, with all that is in it.
    Raze,
    /// Fault: an empty directory is reaped (the transaction that made it).
    Reap(i64),
    /// Fault: he deletes it and makes it anew.
    Remake,
    /// Fault: somebody puts something into the lock's directory.
    Litter(u8),
    /// Fault: somebody writes over a claim's data (its number).
    Write(i64),
    /// Fault: the connection carries one direction only, or reaches a server that is cut off.
    Silence(usize, Silence),
    /// Fault: another library's contender makes a claim.
    Foreign,
    /// Fault: a semaphore has another number of permits from now on.
    Limit(u32),
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
            if client.silence.is_some() && !client.dead && client.can_recover() {
                steps.push(Step::HearAgain(number));
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
    }

    /// What can happen to a client's session and its connection.
    fn steps_of_session(&self, number: usize, steps: &mut Vec<Step>) {
        let client = &self.clients[number];
        let alive = self.leader.life(client.session) == Life::Alive;
        if client.frozen && !client.dead && client.can_recover() {
            steps.push(Step::Thaw(number));
        }
        if alive && client.is_overdue() {
            steps.push(Step::Condemn(number));
        }
        let is_cut_off = client.silence == Some(Silence::Isolated);
        if alive && !client.unreported.is_empty() && !is_cut_off {
            steps.push(Step::Report(number));
        }
        if !client.is_running() {
            return;
        }
        if client.hears() {
            steps.push(Step::Deliver(number));
        }
        let is_noticed = client.silence.is_some() && client.can_recover();
        if client.connection == Connection::Broken || is_noticed {
            steps.push(Step::Notice(number));
        }
        if client.is_new() {
            steps.push(Step::Connect(number));
        } else if client.connection == Connection::Down && !client.over && client.can_recover() {
            steps.push(Step::Reconnect(number));
            if alive && self.lag && self.stalest(number) < self.leader.log.len() {
                steps.push(Step::ReconnectStale(number));
            }
        }
    }

    /// The same where all happens together that one client alone sees: clocks pass, and the servers
    /// give a session up, only just before somebody could tell.
    fn steps_of_session_in_short(&self, number: usize, steps: &mut Vec<Step>) {
        let client = &self.clients[number];
        let alive = self.leader.life(client.session) == Life::Alive;
        let down = client.connection == Connection::Down && !client.is_new() && !client.over;
        let silent = client.silence.is_some();
        if client.is_running() && silent {
            steps.push(Step::Notice(number));
            if client.clock < self.end_of_trust(number) {
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

    /// How often the clock of this client has passed since something has changed in the world. What is
    /// tried again otherwise gives the same again.
    pub(super) fn passes_without_news(&self, client: usize) -> u32 {
        let (when, times) = self.clients[client].last_passed;
        if when == self.news(client) { times } else { 0 }
    }

    fn news(&self, client: usize) -> usize {
        self.leader.log.len() + self.clients[client].changes
    }

    /// The client's clock shows that from now on.
    pub(super) fn pass(&mut self, client: usize, clock: Duration) {
        let (news, times) = (self.news(client), self.passes_without_news(client));
        let client = &mut self.clients[client];
        client.pass(clock);
        client.clock.hash(&mut client.history);
        client.last_passed = (news, times + 1);
    }

    /// To which client a step happens, if to one. In a reduced scenario a contender has its
    /// client's number.
    pub(super) fn client_of(&self, step: Step) -> Option<usize> {
        match step {
            Step::Pass(client)
            | Step::Apply(client)
            | Step::CatchUp(client)
            | Step::Deliver(client)
            | Step::Notice(client)
            | Step::Reconnect(client)
            | Step::ReconnectStale(client)
            | Step::FailQueued(client)
            | Step::Connect(client)
            | Step::Report(client)
            | Step::Distrust(client)
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
            | Step::Limit(_)
            | Step::LeaveForeign => None,
        }
    }

    /// To where a client's clock passes by a step, if it does.
    pub(super) fn clock_after(&self, step: Step, reduced: bool) -> Option<(usize, Duration)> {
        Some(match step {
            Step::Distrust(client) | Step::ReconnectAnew(client) | Step::Doubt(client) => {
                (client, self.end_of_trust(client))
            }
            Step::Expire(client) | Step::NextSession(client) | Step::Expel(client) => {
                (client, self.end_of_session(client))
            }
            // A freeze that costs nothing is a slow process, no more.
            Step::Thaw(client) if reduced => (client, self.end_of_session(client)),
            Step::TimeOut(client) => (client, self.clients[client].clock + A_DELAY),
            Step::Pass(client) if self.clients[client].frozen => {
                (client, self.clients[client].clock + SESSION_TIMEOUT / 4)
            }
            _ => return None,
        })
    }

    /// Makes a step happen that is the world's alone; clocks have passed by now.
    pub(super) fn perform(&mut self, step: Step, reduced: bool, lock: (&str, bool)) {
        let (lock, in_queue) = lock;
        match step {
            Step::Expire(client) => {
                self.condemn(client);
                self.close_session(self.clients[client].session);
            }
            Step::ReconnectAnew(client) | Step::Reconnect(client) => self.reconnect(client, false),
            Step::NextSession(client) => {
                self.condemn(client);
                self.reconnect(client, false);
            }
            Step::Expel(client) => self.condemn(client),
            Step::Thaw(client) => {
                if reduced && self.leader.life(self.clients[client].session) == Life::Alive {
                    self.condemn(client);
                }
                self.clients[client].frozen = false;
            }
            // Not the world's: who holds the tasks and the contenders does these.
            Step::Run(_) | Step::Release(_) | Step::Cancel(_) => {}
            // They are over with the clock.
            Step::Pass(_) | Step::Distrust(_) => {}
            Step::Doubt(client) | Step::TimeOut(client) => self.clients[client].changes += 1,
            Step::Apply(client) => self.apply(client, reduced),
            Step::CatchUp(client) => self.catch_up(client, 1),
            Step::Deliver(client) => self.deliver(client),
            Step::Notice(client) => self.notice(client, reduced),
            Step::ReconnectStale(client) => self.reconnect(client, true),
            Step::FailQueued(client) => self.fail_queued(client),
            Step::Connect(client) => self.connect(client),
            Step::Report(client) => self.clients[client].report(),
            Step::HearAgain(client) => self.hear_again(client),
            Step::Silence(client, kind) => self.fall_silent(client, kind, reduced),
            Step::Write(czxid) => self.write(czxid),
            Step::Foreign => self.enter_foreign(lock, in_queue),
            Step::Limit(number) => self.set_limit(number, lock),
            Step::LeaveForeign => self.leave_foreign(),
            Step::Remake => self.remake(lock),
            Step::Condemn(client) => self.condemn(client),
            Step::Close(session) => self.close_session(session),
            Step::Cut(client) => self.cut(client, reduced),
            Step::Freeze(client) => {
                self.clients[client].frozen = true;
                self.clients[client].fails(reduced);
            }
            Step::Kill(client) => self.kill(client),
            Step::Rob(czxid) => self.rob(czxid),
            Step::Raze => self.raze(lock),
            Step::Reap(czxid) => self.delete_numbered(czxid),
            Step::Litter(number) => self.litter(number, lock),
        }
    }
}
