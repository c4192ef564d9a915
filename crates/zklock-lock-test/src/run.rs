//! One strategy's run: connect, let the threads contend, look at what they and the servers say.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use zklock::Store;
use zklock::{Lock, Strategy};

use crate::args::Args;
use crate::checks::{self, Violation};
use crate::counter::Counter;
use crate::history::History;
use crate::interrupt::Stop;
use crate::latency::Latency;
use crate::leftovers::Leftovers;
use crate::progress::Progress;
use crate::report::Report;
use crate::server::{Servers, Traffic};
use crate::trouble::Trouble;
use crate::worker::{Arena, Outcome, Start, work};

/// So many clients connect at the same time.
const CONNECT_AT_ONCE: usize = 32;
/// The threads do little, and there may be hundreds.
const STACK: usize = 256 * 1024;
const REDRAW: Duration = Duration::from_millis(100);
/// How long closing may take, and how much longer than a session nodes may be left.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What every strategy's run needs.
pub struct Bench<'a> {
    pub args: &'a Args,
    pub stop: &'a Stop,
    pub servers: &'a Servers,
    pub counter: &'a Counter,
    pub history: Option<&'a History>,
}

impl Bench<'_> {
    /// Runs the test. What was measured comes also when something ended it early, with what that
    /// was.
    pub fn run(&self, strategy: Strategy) -> Result<(Report, Option<Trouble>), Trouble> {
        let tag = format!("lock_test {:08x} ", fastrand::u32(..));
        let path = self.args.path(strategy);
        let lock_of = |client: &Store, who: &str| {
            client.lock(&path).strategy(strategy).label(format!("{tag}{who}"))
        };
        let control = lock_of(self.servers.control(), "control");
        // Makes the path, so that the test does not measure that, and finds out whether a lock can
        // be there at all.
        if let Some(guard) = self.stop.or(control.try_acquire()).ok_or(Trouble::Interrupted)?? {
            guard.release().wait()?;
        }
        let clients = self.connect()?;
        let locks: Vec<Lock> = (0..self.args.threads())
            .map(|thread| lock_of(&clients[thread % clients.len()], &format!("thread {thread}")))
            .collect();
        let start_value = self.counter.read().map_err(|why| {
            Trouble::Cannot(format!("counter file {}: {why}", self.counter.path().display()))
        })?;

        let arena = Arena::new(self.args, self.stop, self.counter);
        let contest = self.contest(&arena, &locks, strategy)?;
        let increments = contest.outcomes.iter().map(|outcome| outcome.increments).sum();
        if let Err(what) = self.counter.check_growth(start_value, increments) {
            arena.checks.add(Violation::Counter { thread: None, what });
        }

        // Looked for while the sessions live: their end would hide what a release left behind.
        let leftovers = Leftovers {
            store: self.servers.control(),
            lock: &control,
            strategy,
            tag: &tag,
            alone: self.servers.are_ours(),
        };
        let lost = contest.outcomes.iter().any(|outcome| outcome.lost > 0);
        let session = if lost { self.args.session_timeout } else { Duration::ZERO };
        let left = leftovers.after(TIMEOUT + session);
        drop(locks);
        close(clients);
        let left = left.and_then(|before| {
            let after = leftovers.after(TIMEOUT + session)?;
            Ok(if after.len() > before.len() { after } else { before })
        });

        let failure = arena.failure.lock().take();
        let mut trouble = failure
            .map(|(thread, error)| Trouble::of(format_args!("{strategy}: thread {thread}"), error));
        let (left, unknown) = match left {
            Ok(left) => (Some(left), None),
            Err(error) => (None, Some(Trouble::of("look for nodes left on the server", error))),
        };
        trouble = trouble.or(unknown);
        Ok((self.report(strategy, arena, contest, left), trouble))
    }

    fn connect(&self) -> Result<Vec<Store>, Trouble> {
        let mut clients = Vec::new();
        let sessions = self.args.sessions();
        while clients.len() < sessions {
            let some = CONNECT_AT_ONCE.min(sessions - clients.len());
            let pending: Vec<_> = (0..some).map(|_| self.servers.connect(self.args)).collect();
            for client in pending {
                let client = self.stop.or(client).ok_or(Trouble::Interrupted)?;
                clients.push(client.map_err(|error| {
                    let number = clients.len() + 1;
                    Trouble::of(format_args!("client {number} of {sessions}"), error)
                })?);
            }
        }
        Ok(clients)
    }

    fn contest(
        &self,
        arena: &Arena,
        locks: &[Lock],
        strategy: Strategy,
    ) -> Result<Contest, Trouble> {
        thread::scope(|scope| {
            let (done, all_done) = channel();
            let mut threads = Vec::new();
            for (number, lock) in locks.iter().enumerate() {
                let done: Sender<()> = done.clone();
                let path = self.args.path(strategy);
                let history = self.history.map(|history| history.of(number, &path));
                let life = move || {
                    let outcome = work(number, lock, arena, history.as_ref());
                    drop(done);
                    outcome
                };
                let builder = thread::Builder::new().name(number.to_string()).stack_size(STACK);
                match builder.spawn_scoped(scope, life) {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        arena.gate.open(None);
                        let message = format!("start thread {number}: {error}");
                        return Err(Trouble::Cannot(message));
                    }
                }
            }
            drop(done);
            arena.gate.wait_for(threads.len());

            let writes = self.servers.background_writes();
            let counted = self.servers.count();
            let at = Instant::now();
            let deadline = self.args.time().and_then(|time| at.checked_add(time));
            arena.gate.open(Some(Start { deadline }));
            let progress = Progress::start(self.args, strategy);
            while all_done.recv_timeout(REDRAW) == Err(RecvTimeoutError::Timeout) {
                progress.show(arena.acquisitions.load(Ordering::Relaxed));
            }
            drop(progress);
            let traffic = counted.and_then(|counted| self.servers.traffic_since(counted));
            let others = self.servers.background_writes() - writes;

            let outcomes = threads.into_iter().map(ScopedJoinHandle::join);
            let outcomes: Result<Vec<Outcome>, _> = outcomes.collect();
            let outcomes = outcomes.map_err(|_| Trouble::Cannot("a thread panicked".to_owned()))?;
            let ended = outcomes.iter().filter_map(|outcome| outcome.ended).max().unwrap_or(at);
            let traffic =
                traffic.map(|all| Traffic { packets: all.packets.saturating_sub(others), ..all });
            Ok(Contest { outcomes, seconds: (ended - at).as_secs_f64(), traffic })
        })
    }

    fn report(
        &self,
        strategy: Strategy,
        arena: Arena,
        contest: Contest,
        left: Option<Vec<String>>,
    ) -> Report {
        let Contest { outcomes, seconds, traffic } = contest;
        let per_thread: Vec<u64> = outcomes.iter().map(|outcome| outcome.acquisitions).collect();
        let lost: Vec<u64> = outcomes.iter().map(|outcome| outcome.lost).collect();
        let (mut acquire, mut handoff) = (Latency::new(), Latency::new());
        for outcome in &outcomes {
            acquire.add(&outcome.acquire);
            handoff.add(&outcome.handoff);
        }
        let mut acquires = arena.acquires.into_inner();
        acquires.sort_by_key(|acquire| acquire.ended);
        let mut violations = arena.checks.into_violations();
        if strategy == Strategy::Queue && self.args.rounds.is_none() {
            checks::starving(&per_thread, &lost).into_iter().for_each(|it| violations.add(it));
        }
        if per_thread.iter().sum::<u64>() == 0 && !self.stop.is_raised() {
            let why = outcomes.iter().find_map(|outcome| outcome.gave_up.clone());
            let why = why.unwrap_or_else(|| "the time was too short to ask for it".to_owned());
            violations.add(Violation::Idle { why });
        }
        Report {
            strategy,
            threads: self.args.threads(),
            sessions: self.args.sessions(),
            seconds,
            per_thread,
            acquire: acquire.quantiles(),
            handoff: handoff.quantiles(),
            traffic,
            violations,
            left,
            lost: lost.iter().sum(),
            acquires,
            losses: outcomes.into_iter().flat_map(|outcome| outcome.losses).collect(),
        }
    }
}

/// What came out of the threads' contest.
struct Contest {
    outcomes: Vec<Outcome>,
    seconds: f64,
    traffic: Result<Traffic, String>,
}

/// Ends all sessions at the same time.
fn close(clients: Vec<Store>) {
    let deadline = Instant::now() + TIMEOUT;
    let closing: Vec<_> = clients.iter().map(Store::close).collect();
    for pending in closing {
        // A session that can't say farewell expires; its nodes are looked for all the same.
        let _ = pending.within(deadline.saturating_duration_since(Instant::now())).wait();
    }
}
