//! The command while the lock is held.

use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use zklock::{Guard, GuardState, LostReason};

use super::events::{Event, Events};
use super::signals::Caught;
use super::supervised::Supervised;
use crate::boot_clock;
use crate::output::say;
use crate::supervise::orders::{Order, Report, Start, Status};

/// How a command has ended.
pub enum Outcome {
    /// By itself.
    Ended(Status),
    /// Because the lock was lost, or was about to be.
    Lost,
    /// Because somebody has asked for the lock, which is held yet.
    GaveWay,
    /// The supervisor was killed, and the command with it.
    Orphaned,
}

/// Times that follow from the session timeout.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub grace: Duration,
    /// How long before the loss all is killed.
    pub margin: Duration,
    /// What a connection that works proves at the least.
    pub usual: Duration,
    /// How often what is proven is handed on.
    pub tick: Duration,
}

/// How long a supervisor may take to answer an order to kill.
const ANSWER: Duration = Duration::from_millis(250);
/// How long what a killed supervisor has said may take to be heard.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long a command may take to stop, on a terminal.
const STOPPING: Duration = Duration::from_millis(200);

pub struct Hold<'a> {
    pub path: &'a str,
    /// What keeps the lock, for people.
    pub store: &'a str,
    pub guard: &'a Guard,
    pub events: &'a Events,
    pub supervised: &'a Supervised,
    pub times: Times,
    /// From a SIGTERM that is handed on to SIGKILL.
    pub kill_after: Option<Duration>,
    pub quiet: bool,
    pub state: State,
}

/// What is known of the command.
#[derive(Default)]
pub struct State {
    /// What the supervisor was told last.
    until: Duration,
    /// When it was told to kill.
    kill_ordered: Option<Duration>,
    is_started: bool,
    is_ending: bool,
    is_left_behind: bool,
    is_giving_way: bool,
    is_killed: bool,
    /// The supervisor did not act in time, or has died: there is none for another command.
    pub is_taken_over: bool,
    resumed: u32,
    /// When this process has to be stopped.
    stop_at: Option<Duration>,
    /// A signal was handed on that asks programs to end.
    pub asked_to_end: Option<i32>,
}

impl Hold<'_> {
    /// Starts the command, and stays until nothing of it is left. Whoever releases the lock before that breaks it.
    pub fn run(&mut self, session: i64) -> Outcome {
        self.state.until = boot_clock::now() + self.guard.remaining();
        let start = Start {
            until: self.state.until,
            grace: self.times.grace,
            margin: self.times.margin,
            token: self.guard.fencing_token(),
            session,
        };
        if let Err(error) = self.supervised.run(start) {
            say(format_args!("{}: the supervisor got no order to start: {error}", self.path));
        }
        let lost = self.guard.lost();
        // Without it, the loss is seen a tick later.
        self.listen("loss", move || {
            lost.wait();
            Some(Event::Lost)
        });
        let (token, mut requests) = (self.guard.fencing_token(), self.guard.release_requests());
        // Without it, nobody can ask.
        self.listen("requests", move || Some(Event::Asked { token, reason: requests.wait()? }));
        loop {
            let mut wait = self.times.tick;
            while let Some(event) = self.events.next(wait) {
                if let Some(outcome) = self.hear(event) {
                    return outcome;
                }
                wait = Duration::ZERO;
            }
            if let Some(outcome) = self.renew() {
                return outcome;
            }
            self.supervised.look_after_others();
            // The command does not stop.
            if self.state.stop_at.is_some_and(|at| boot_clock::now() >= at) && self.is_to_stop() {
                let _ = kill_process(getpid(), Signal::STOP);
            }
        }
    }

    /// Waits for an event on a thread of its own, which ends with the guard.
    fn listen(&self, name: &str, wait: impl FnOnce() -> Option<Event> + Send + 'static) {
        let tell = self.events.sender();
        let _ = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            if let Some(event) = wait() {
                let _ = tell.send(event);
            }
        });
    }

    fn hear(&mut self, event: Event) -> Option<Outcome> {
        let state = &mut self.state;
        match event {
            Event::Report(Report::Gone(status)) => {
                // One that ended by itself did so while the lock was held, also where it is lost by now.
                let is_lost = state.is_ending || state.kill_ordered.is_some();
                return Some(match is_lost {
                    true => Outcome::Lost,
                    false if state.is_giving_way => Outcome::GaveWay,
                    false => Outcome::Ended(status),
                });
            }
            Event::Report(Report::Terminated) => {
                state.is_ending = true;
                self.tell(format_args!(
                    "lost contact with {}: stopping the command before the lock can pass to another",
                    self.store
                ));
            }
            Event::Report(Report::Started) => state.is_started = true,
            Event::Report(Report::NotStarted) => state.is_started = false,
            Event::Report(Report::Killed { for_loss }) => {
                state.is_killed = true;
                state.is_ending |= for_loss && !state.is_left_behind;
            }
            Event::Report(Report::LeftBehind(who)) => {
                state.is_left_behind = true;
                if !self.quiet && !who.is_empty() {
                    self.tell(format_args!(
                        "the command has ended; ending what it left behind: {who}"
                    ));
                }
            }
            Event::Report(Report::Unkillable(who)) => self.tell_of_unkillable(&who),
            Event::Report(Report::Stopped { resumed, signal }) => {
                // One that was stopped by hand, and not from its terminal, says nothing of us.
                let job_control = [Signal::TSTP, Signal::TTIN, Signal::TTOU];
                if resumed == state.resumed
                    && job_control.iter().any(|s| s.as_raw() == signal)
                    && self.is_to_stop()
                {
                    self.supervised.order(&Order::Stop);
                }
            }
            Event::NoSupervisor => {
                // Nothing comes after that.
                let is_started = std::mem::replace(&mut self.state.is_started, true);
                self.take_over();
                self.state.is_started = is_started;
                self.state.is_taken_over = true;
                return Some(self.orphaned());
            }
            Event::Signal(caught) => self.hand_on(caught),
            // An earlier turn's comes too late.
            Event::Asked { token, .. } if token != self.guard.fencing_token() => {}
            Event::Asked { reason, .. } => {
                state.is_giving_way = true;
                match reason.as_str() {
                    "" => self.tell(format_args!("asked to give way: stopping the command")),
                    why => {
                        self.tell(format_args!("asked to give way ({why}): stopping the command"))
                    }
                }
                self.supervised.order(&Order::End);
            }
            Event::Lost | Event::Done | Event::Tick => {}
        }
        None
    }

    /// Tells the supervisor until when the lock is held. Where it does not act in time, acts itself.
    fn renew(&mut self) -> Option<Outcome> {
        let before = boot_clock::now();
        let remaining = self.guard.remaining();
        let state = &mut self.state;
        if remaining.is_zero() {
            if state.kill_ordered.is_none() {
                state.kill_ordered = Some(before);
                self.supervised.order(&Order::Kill);
            }
        } else if before + remaining > state.until {
            state.until = before + remaining;
            self.supervised.order(&Order::Until(state.until));
        }
        let is_answering = state.kill_ordered.is_some_and(|at| before < at + ANSWER);
        if remaining < self.times.margin / 2 && !state.is_killed && !is_answering {
            self.take_over();
            self.state.is_taken_over = true;
            return Some(Outcome::Lost);
        }
        None
    }

    fn hand_on(&mut self, Caught { signal, is_of_terminal }: Caught) {
        let is = |other: Signal| signal == other.as_raw();
        if is(Signal::CONT) {
            return self.resume();
        }
        if [Signal::TSTP, Signal::TTIN, Signal::TTOU].into_iter().any(is) {
            self.state.stop_at = Some(boot_clock::now() + STOPPING);
        }
        if [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT].into_iter().any(is) {
            self.state.asked_to_end = Some(signal);
        }
        // Or the command has it already.
        if !is_of_terminal || !self.supervised.shares_group {
            self.supervised.order(&Order::Signal(signal));
        }
        if let Some(after) = self.kill_after.filter(|_| is(Signal::TERM)) {
            self.supervised.order(&Order::KillAt(boot_clock::now() + after));
        }
    }

    /// This process is to be stopped as its command was, so that a shell sees it; `false` if it can't be. The supervisor
    /// continues to keep the time. The next SIGCONT continues both.
    fn is_to_stop(&mut self) -> bool {
        self.state.stop_at = None;
        // A report that the command was stopped is of this stop, also if it comes later.
        self.state.resumed += 1;
        if getpid().is_init() {
            // The first process of a container cannot be stopped: nothing would continue the command.
            self.resume();
            return false;
        }
        true
    }

    fn resume(&mut self) {
        self.state.stop_at = None;
        self.state.resumed += 1;
        self.supervised.order(&Order::Resume { time: self.state.resumed });
    }

    fn take_over(&mut self) {
        let path = self.path;
        self.supervised.take_over(|who| say(format_args!("{path}: can't kill {who}")));
        // The supervisor's last reports come before the event of its end.
        while !self.state.is_started {
            match self.events.next(LAST_WORDS) {
                Some(Event::Report(Report::Started)) => self.state.is_started = true,
                Some(Event::NoSupervisor) => {
                    let _ = self.events.sender().send(Event::NoSupervisor);
                    return;
                }
                None => return,
                Some(_) => {}
            }
        }
    }

    pub fn is_started(&self) -> bool {
        self.state.is_started
    }

    /// Says whether the command was ended or never started.
    pub fn fate(&self) -> &'static str {
        match self.state.is_started {
            true => "the command was ended",
            false => "the command was not started",
        }
    }

    fn orphaned(&self) -> Outcome {
        if self.guard.is_lost() {
            return Outcome::Lost;
        }
        self.tell(format_args!("the supervisor was killed, and so was the command"));
        Outcome::Orphaned
    }

    fn tell(&self, what: std::fmt::Arguments) {
        say(format_args!("{}: {what}", self.path));
    }

    fn tell_of_unkillable(&self, who: &str) {
        match self.guard.state() {
            GuardState::Lost => self.tell(format_args!(
                "can't kill {who}, and the lock is lost: another may have it while they are alive"
            )),
            _ => self.tell(format_args!("can't kill {who}: the lock is kept until they are gone")),
        }
    }

    /// Why the lock was lost, for people.
    pub fn loss(&self) -> &'static str {
        match self.guard.lost().get() {
            Some(LostReason::Deleted) => "somebody has deleted the lock's znode",
            Some(LostReason::Broken) => "somebody has broken the hold",
            _ => "its session could not be proven to be alive",
        }
    }
}
