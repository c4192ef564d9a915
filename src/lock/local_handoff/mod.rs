//! Local hand-off: threads and tasks of one process take turns with one claim.

mod line;

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use self::line::{Line, Round, Turn};
use super::Lock;
use super::caller::Caller;
use super::contender::Contender;
use super::error::LockError;
use super::guard::Guard;
use super::part::PartTenure;
use super::requests::Revocation;
use super::store::{Change, StoredLock};
use super::strategy::Strategy;
use crate::process::Process;
use crate::runtime::{Late, Pending, now};

/// How long a lock may go round within the process before it is looked whether anybody else waits for it.
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
    /// A thousand turns, or 50 ms.
    pub const fn new() -> LocalHandoff {
        LocalHandoff { turns: 1000, time: Duration::from_millis(50) }
    }

    /// After so many turns.
    #[must_use]
    pub const fn turns(self, turns: u32) -> LocalHandoff {
        LocalHandoff { turns, ..self }
    }

    /// After that time.
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
    /// The same lock, with clones that take turns with one claim: who lets go hands the lock over to the clone that has
    /// waited longest in this process, without a request to the store. For threads and tasks that contend for one
    /// lock and share a client: a hand-off among them takes microseconds, and the store sees one contender, however
    /// many they are.
    ///
    /// After as many turns or as long as `handoff` says, it is looked whether others wait for the lock. If so, it is
    /// released, and whoever of this process is next joins the end of the store's queue. So others wait for one
    /// round at most, and for the turn during which its time is over. With a strategy that is no queue, where nobody
    /// sees who waits, it is released in any case.
    ///
    /// Turns of one round have one claim, and so one [`fencing_token`](Guard::fencing_token);
    /// [`turn`](Guard::turn) counts them. A store that has to refuse late writes of the same process compares both.
    /// What is lost is lost by whoever has its turn; the next acquires anew. Of who waits within the process,
    /// [`contenders`](Lock::contenders) knows nothing.
    ///
    /// Only clones of the lock that this gives take turns, of whatever [label](Lock::label); a claim has the label of
    /// the one who made it. A lock that several may hold (of readers, or a semaphore) one at a time holds of them.
    ///
    /// # Cancellation
    /// Who gives up leaves its place in the line within the process. If it was its turn to acquire, the claim goes on
    /// to the next, and keeps its place in the store's queue.
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

/// Who was ahead of an acquire that has not ended in time: as the store says, or within the process.
#[derive(Default)]
struct Ahead {
    line: Arc<Line>,
    of_store: Mutex<Option<Arc<dyn Late<LockError>>>>,
}

impl Late<LockError> for Ahead {
    fn error(&self, path: &str) -> LockError {
        let of_store = self.of_store.lock().clone();
        match of_store {
            Some(of_store) => of_store.error(path),
            None => LockError::timed_out(path, self.line.holder()),
        }
    }
}

/// A guard for that turn in the round.
fn in_round(turn: Turn, round: Round, asked: Instant) -> Guard {
    let (guard, tenure) = PartTenure::beside(&round.guard, asked);
    tenure.give(turn.holds(round));
    guard
}

impl Handed {
    /// Whether the lock has gone round within the process for long enough.
    fn is_due(&self, round: &Round) -> bool {
        round.unlooked >= self.handoff.turns || now() - round.looked >= self.handoff.time
    }

    /// Whether anybody outside of the process waits for the lock, as far as can be known.
    async fn is_wanted(&self) -> bool {
        let stored = Arc::clone(&self.stored);
        self.stored.strategy() != Strategy::Queue
            || stored.contenders(2).await.map_or(true, |first| first.len() > 1)
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
                *ahead.of_store.lock() = acquiring.late();
                // Awaited in place: if this future is dropped, the next goes on with it.
                let acquired = turn.has.acquiring.insert(acquiring).await;
                turn.has.acquiring = None;
                turn.has.round = Some(Round::new(acquired?));
                continue;
            };
            if !self.is_due(&round) {
                return Ok(caller.acts(|| in_round(turn, round, asked)));
            }
            turn.has.round = Some(round);
            let is_wanted = self.is_wanted().await;
            // If so, its release is submitted here, before the next claim.
            turn.has.round = turn.has.round.take().filter(|_| !is_wanted).map(Round::looked_after);
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
        let ahead = Arc::new(Ahead { line: Arc::clone(&self.line), of_store: Mutex::default() });
        let (asked, caller) = (now(), Caller::present());
        let (seat, late) = (self.line.enter(), Arc::clone(&ahead));
        Pending::run_as("acquire", path, LockError::of_pending, async move {
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
            return Pending::ready_as(LockError::of_pending, ahead);
        };
        let (asked, caller) = (now(), Caller::present());
        Arc::clone(&self.stored).try_acquire().map(move |tried| {
            Ok(tried?.map(|guard| caller.acts(|| in_round(turn, Round::new(guard), asked))))
        })
    }

    crate::lock::store::needing_no_claim!();

    fn set_limit(self: Arc<Self>, limit: u32) -> Pending<(), LockError> {
        Arc::clone(&self.stored).set_limit(limit)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
