//! One thread: acquires the lock, does its work inside, releases it, over and over.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use zklock::{Guard, Lock, LockError, LostReason, LostSignal};

use crate::acquire::Acquire;
use crate::args::Args;
use crate::checks::{Checks, Violation};
use crate::counter::Counter;
use crate::history::Process;
use crate::interrupt::Stop;
use crate::latency::Latency;
use crate::output::{say, show};

/// How long to wait, beyond the session timeout, for the word that a release is done.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(15);
/// Of so many losses a thread tells how they came.
const TOLD: usize = 3;

/// What all threads of a run share.
pub struct Arena<'a> {
    pub args: &'a Args,
    pub stop: &'a Stop,
    pub counter: &'a Counter,
    pub checks: Checks<LostSignal>,
    pub gate: Gate,
    /// Acquisitions of all threads so far, for the progress line.
    pub acquisitions: AtomicU64,
    /// When a holder called release last, in nanoseconds since `epoch`.
    last_release: AtomicU64,
    epoch: Instant,
    /// For a picture; empty where none is wanted.
    pub acquires: Mutex<Vec<Acquire>>,
    /// Why the test can't go on.
    pub failure: Mutex<Option<(usize, LockError)>>,
}

/// What one thread has to tell at the end.
pub struct Outcome {
    pub acquisitions: u64,
    pub increments: u64,
    /// How often it lost the lock while it held it.
    pub lost: u64,
    pub losses: Vec<String>,
    /// Why its last acquire ended without the lock when the time was over.
    pub gave_up: Option<String>,
    pub acquire: Latency,
    pub handoff: Latency,
    pub ended: Option<Instant>,
}

impl<'a> Arena<'a> {
    pub fn new(args: &'a Args, stop: &'a Stop, counter: &'a Counter) -> Arena<'a> {
        Arena {
            args,
            stop,
            counter,
            checks: Checks::new(),
            gate: Gate::default(),
            acquisitions: AtomicU64::new(0),
            last_release: AtomicU64::new(0),
            epoch: Instant::now(),
            acquires: Mutex::default(),
            failure: Mutex::new(None),
        }
    }

    fn fail(&self, thread: usize, error: LockError) {
        self.failure.lock().get_or_insert((thread, error));
        self.stop.fail();
    }

    fn note_release(&self) {
        let nanos = u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.last_release.store(nanos, Ordering::SeqCst);
    }

    /// For the picture, if there is to be one: an acquire has ended, or its lock is released next.
    fn note_acquire(&self, thread: usize, asked: Instant, got: Option<Instant>) {
        if self.args.timeline.is_some() {
            let since = |at: Instant| at.saturating_duration_since(self.epoch);
            let (asked, got, ended) = (since(asked), got.map(since), since(Instant::now()));
            self.acquires.lock().push(Acquire { thread, asked, got, ended });
        }
    }

    /// When the holder before called release.
    fn last_release(&self) -> Instant {
        self.epoch + Duration::from_nanos(self.last_release.load(Ordering::SeqCst))
    }
}

/// Lets all threads start at once, or none.
#[derive(Default)]
pub struct Gate {
    state: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    threads: usize,
    /// Whether it was opened, and then whether there is a test.
    opened: Option<Option<Start>>,
}

/// The test has begun.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// When it ends, if it ends by time.
    pub deadline: Option<Instant>,
}

impl Gate {
    /// Waits for the start; `None` when the test was called off.
    fn pass(&self) -> Option<Start> {
        let mut state = self.state.lock();
        state.threads += 1;
        self.changed.notify_all();
        loop {
            if let Some(start) = state.opened {
                return start;
            }
            self.changed.wait(&mut state);
        }
    }

    pub fn wait_for(&self, threads: usize) {
        let mut state = self.state.lock();
        while state.threads < threads {
            self.changed.wait(&mut state);
        }
    }

    pub fn open(&self, start: Option<Start>) {
        self.state.lock().opened = Some(start);
        self.changed.notify_all();
    }
}

/// The life of thread `number`, from the gate to the end of the test.
pub fn work(number: usize, lock: &Lock, arena: &Arena, history: Option<&Process>) -> Outcome {
    let mut outcome = Outcome {
        acquisitions: 0,
        increments: 0,
        lost: 0,
        losses: Vec::new(),
        gave_up: None,
        acquire: Latency::new(),
        handoff: Latency::new(),
        ended: None,
    };
    let Some(start) = arena.gate.pass() else {
        return outcome;
    };
    let rounds = arena.args.rounds.unwrap_or(u64::MAX);
    while outcome.acquisitions < rounds && !arena.stop.is_raised() {
        let asked = Instant::now();
        if start.deadline.is_some_and(|deadline| asked >= deadline) {
            break;
        }
        if let Some(history) = history {
            history.calls("acquire");
        }
        let acquire = match start.deadline {
            Some(deadline) => lock.acquire().within(deadline - asked),
            None => lock.acquire(),
        };
        // Dropping it, where the stop comes first, gives the claim up.
        match arena.stop.or(acquire) {
            None => break,
            Some(Ok(guard)) => {
                let got = Instant::now();
                Visit { number, arena, asked, got, deadline: start.deadline, history }
                    .make(guard, &mut outcome);
            }
            Some(Err(error)) if start.deadline.is_some() && error.is_timeout() => {
                if let Some(history) = history {
                    history.got_nothing();
                }
                arena.note_acquire(number, asked, None);
                outcome.gave_up = Some(error.to_string());
                break;
            }
            Some(Err(error)) => {
                arena.fail(number, error);
                break;
            }
        }
    }
    outcome.ended = Some(Instant::now());
    outcome
}

/// One stay inside the lock.
struct Visit<'a> {
    number: usize,
    arena: &'a Arena<'a>,
    asked: Instant,
    got: Instant,
    deadline: Option<Instant>,
    history: Option<&'a Process<'a>>,
}

impl Visit<'_> {
    fn make(&self, guard: Guard, outcome: &mut Outcome) {
        let Visit { number, arena, .. } = *self;
        if let Some(history) = self.history {
            history.acquired(guard.fencing_token());
            history.look(&guard);
        }
        let before = arena.last_release();
        let loss = guard.lost();
        arena.checks.enter(number, guard.fencing_token(), loss.clone());
        arena.acquisitions.fetch_add(1, Ordering::Relaxed);
        outcome.acquisitions += 1;
        outcome.acquire.record(self.got - self.asked);
        self.tell(&guard);

        let read = arena.counter.read();
        if let Ok(value) = read {
            // The holder before us was a thread of this program, and we waited already then.
            if arena.counter.is_last_of_ours(value) && self.asked < before {
                outcome.handoff.record(self.got.saturating_duration_since(before));
            }
        }
        // Between reading and writing, where another holder would do the most harm.
        self.stay();
        match read {
            // Whoever knows that the lock is lost writes no more.
            Ok(value) if !guard.is_lost() => {
                self.check(arena.counter.check_read(value));
                self.check(arena.counter.write_next(value));
                outcome.increments += 1;
            }
            Ok(_) => {}
            Err(why) => self.check(Err(why)),
        }

        let token = guard.fencing_token();
        if let Some(history) = self.history {
            history.look(&guard);
            history.calls("release");
        }
        let lost = if guard.is_lost() { loss.get() } else { None };
        arena.checks.leave(number);
        arena.note_release();
        arena.note_acquire(number, self.asked, Some(self.got));
        let limit = arena.args.session_timeout + RELEASE_TIMEOUT;
        let released = guard.release().within(limit).wait();
        if let Some(history) = self.history {
            history.released(&released);
        }
        let what = match (lost, released) {
            (Some(LostReason::Deleted), _) => return self.deleted(token, outcome),
            (None, Err(LockError::Lost { reason: LostReason::Deleted, .. })) => {
                return self.deleted(token, outcome);
            }
            (Some(LostReason::Broken), _) => {
                "while inside: another client broke its hold".to_owned()
            }
            (Some(_), _) => "while inside: its session could not be trusted any more".to_owned(),
            (None, Err(error)) => format!("by the time of its release: {error}"),
            (None, Ok(())) => return,
        };
        outcome.lost += 1;
        if outcome.losses.len() < TOLD {
            let loss = format!("thread {number} lost the lock (token {token:#x}) {what}");
            outcome.losses.push(loss);
        }
    }

    /// Nobody but the holder deletes a lock's node, so this is no bad luck but a fault.
    fn deleted(&self, token: i64, outcome: &mut Outcome) {
        outcome.lost += 1;
        self.arena.checks.add(Violation::Deleted { thread: self.number, token });
    }

    fn stay(&self) {
        let left = self.deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let time = self.arena.args.hold.min(left.unwrap_or(Duration::MAX));
        if !time.is_zero() {
            self.arena.stop.sleep(time);
        }
    }

    fn check(&self, result: Result<(), String>) {
        if let Err(what) = result {
            self.arena.checks.add(Violation::Counter { thread: Some(self.number), what });
        }
    }

    fn tell(&self, guard: &Guard) {
        if self.arena.args.verbose {
            let path = guard.claim_path();
            let line = format!("thread {}: {}: got lock", self.number, path.escape_debug());
            match self.arena.args.json {
                true => say(format_args!("{line}")),
                false => show(format_args!("{line}\n")),
            }
        }
    }
}
