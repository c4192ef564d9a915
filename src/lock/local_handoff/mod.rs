//! Local hand-off: threads and tasks of one process take turns with one claim.

mod line;

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::line::{Line, Round, Turn};
use super::Lock;
use super::ahead::Ahead;
use super::caller::Caller;
use super::contender::Contender;
use super::error::LockError;
use super::guard::Guard;
use super::shared_tenure::SharedTenure;
use super::store::{Change, LockView, StoredLock};
use super::strategy::Strategy;
use crate::lock::op::{LockOp, ready};
use crate::process::Process;
use crate::runtime::{Pending, now};

/// How long a process may pass a lock around before it checks whether another client waits.
///
/// ```
/// use std::time::Duration;
/// use zklock::LocalHandoff;
///
/// let handoff = LocalHandoff::new().turns(100).time(Duration::from_millis(20));
/// # let _ = handoff;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LocalHandoff {
    turns: u32,
    time: Duration,
}

impl LocalHandoff {
    /// A thousand turns, or 50 ms, whichever comes first.
    pub const fn new() -> LocalHandoff {
        LocalHandoff { turns: 1000, time: Duration::from_millis(50) }
    }

    /// Sets the number of turns.
    #[must_use]
    pub const fn turns(self, turns: u32) -> LocalHandoff {
        LocalHandoff { turns, ..self }
    }

    /// Sets the time.
    #[must_use]
    pub const fn time(self, time: Duration) -> LocalHandoff {
        LocalHandoff { time, ..self }
    }
}

impl Default for LocalHandoff {
    fn default() -> LocalHandoff {
        LocalHandoff::new()
    }
}

impl Lock {
    /// The same lock, with clones that take turns with one claim. A release hands the lock to the clone that has waited
    /// longest in this process, without a request. Use it for threads and tasks that contend for one lock and share a
    /// client: a hand-off takes microseconds, and the store sees one contender.
    ///
    /// After the turns or the time of `handoff`, it checks whether another client waits for the lock. If so, it
    /// releases the lock, and the next clone joins the end of the store's queue. So other clients wait for one round at
    /// most, and for the turn in which its time ends. With a strategy that is no queue, waiters are invisible, so the
    /// lock is released anyway.
    ///
    /// The turns of one round share one claim and so one [`fencing_token`](Guard::fencing_token); [`turn`](Guard::turn)
    /// counts them. To reject late writes of the same process, a store must compare both. If the claim is lost, the
    /// clone that holds it loses the lock, and the next one acquires it again. [`contenders`](Lock::contenders) does
    /// not show waiters within the process.
    ///
    /// Only clones of the returned lock take turns, with any [label](Lock::label). A claim has the label of the clone
    /// that made it. A lock that several may hold (of readers, or a semaphore) is held by one clone at a time.
    ///
    /// # Cancel safety
    /// Dropping an acquire loses its place in the line of this process. If that acquire was making the claim, the next
    /// one takes the claim over and keeps its place in the store's queue.
    #[must_use]
    pub fn local_handoff(self, handoff: LocalHandoff) -> Lock {
        let (stored, line, process) = (self.shared(), Arc::default(), Process::this());
        Lock::new(Arc::new(Handed { stored, handoff, line, process }))
    }
}

#[derive(Clone)]
struct Handed {
    stored: Arc<dyn StoredLock>,
    handoff: LocalHandoff,
    line: Arc<Line>,
    process: Process,
}

fn in_round(turn: Turn, round: Round, asked: Instant) -> Guard {
    let (guard, tenure) = SharedTenure::beside(&round.guard, asked);
    tenure.give(turn.holds(round));
    guard
}

impl Handed {
    /// Whether the lock has gone round within the process for long enough.
    fn is_due(&self, round: &Round) -> bool {
        let is_due =
            round.unlooked >= self.handoff.turns || now() - round.looked >= self.handoff.time;
        // One that was just acquired is held once in any case.
        is_due && round.turns > 0
    }

    /// Whether anybody outside of the process waits for the lock, as far as can be known.
    async fn is_wanted(&self) -> bool {
        let stored = Arc::clone(&self.stored);
        self.stored.strategy() != Strategy::Queue
            || stored.view().contenders(2).await.map_or(true, |first| first.len() > 1)
    }

    async fn acquire_in(
        &self,
        mut turn: Turn,
        ahead: &Ahead,
        caller: &Caller,
        asked: Instant,
    ) -> Result<Guard, LockError> {
        loop {
            let Some(round) = turn.has.round.take() else {
                let acquiring = turn.has.acquiring.take();
                let acquire = || Box::new(Arc::clone(&self.stored).acquire());
                let acquiring = acquiring.unwrap_or_else(|| caller.acts(acquire));
                ahead.is_of(acquiring.late().or_else(|| Some(Arc::clone(&self.line) as _)));
                // Awaited in place: if this future is dropped, the next goes on with it.
                let acquired = turn.has.acquiring.insert(acquiring).await;
                turn.has.acquiring = None;
                turn.has.round = Some(Round::new(acquired?));
                continue;
            };
            let round = if self.is_due(&round) {
                // Kept where it passes on, should this future be dropped.
                turn.has.round = Some(round);
                let is_wanted = self.is_wanted().await;
                // If so, its release is submitted here, before the next claim.
                turn.has.round.take().filter(|_| !is_wanted).map(Round::looked_after)
            } else {
                Some(round)
            };
            // It may have been lost since it was passed on.
            if let Some(round) = round.filter(|round| !round.guard.is_lost()) {
                return Ok(caller.acts(|| in_round(turn, round, asked)));
            }
        }
    }
}

impl StoredLock for Handed {
    fn path(&self) -> &str {
        self.stored.path()
    }

    fn strategy(&self) -> Strategy {
        self.stored.strategy()
    }

    fn with(&self, change: Change) -> Arc<dyn StoredLock> {
        let mut changed = self.clone();
        if !matches!(change, Change::Label(_)) {
            // It is contended for otherwise, so what is held is of no use.
            changed.line = Arc::default();
        }
        changed.stored = self.stored.with(change);
        Arc::new(changed)
    }

    fn acquire(self: Arc<Self>) -> Pending<Guard, LockError> {
        if !self.process.is_this() {
            // Somebody may have been changing the line.
            return Arc::clone(&self.stored).acquire();
        }
        let path: Arc<str> = self.path().into();
        let ahead = Arc::new(Ahead::default());
        ahead.is_of(Some(Arc::clone(&self.line) as _));
        let (asked, caller) = (now(), Caller::present());
        let (seat, late) = (self.line.enter(), Arc::clone(&ahead));
        LockOp::Acquire
            .run(path, async move {
                let turn = match seat {
                    Ok(turn) => turn,
                    Err(waiting) => waiting.await,
                };
                self.acquire_in(turn, &late, &caller, asked).await
            })
            .when_late(ahead)
    }

    fn try_acquire(self: Arc<Self>) -> Pending<Result<Guard, Option<Contender>>, LockError> {
        if !self.process.is_this() {
            return Arc::clone(&self.stored).try_acquire();
        }
        let Some(turn) = self.line.try_enter() else {
            let ahead = Ok(Err(self.line.holder()));
            return ready(ahead);
        };
        let (asked, caller) = (now(), Caller::present());
        Arc::clone(&self.stored).try_acquire().map(move |tried| {
            Ok(tried?.map(|guard| caller.acts(|| in_round(turn, Round::new(guard), asked))))
        })
    }

    fn view(self: Arc<Self>) -> Arc<dyn LockView> {
        Arc::clone(&self.stored).view()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
