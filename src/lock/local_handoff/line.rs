//! The threads and tasks of one process that take turns with one claim, first come, first served.
//!
//! A [`Turn`] is the right to act for all of them: to acquire, to hold, to release. There is one at a time. Wherever it
//! is dropped, it passes to the next waiter, along with its claim. So a cancelled acquire leaves its place in the
//! store's queue to the next waiter, and needs no cleanup.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Instant, SystemTime};

use parking_lot::Mutex;

use crate::lock::caller::Caller;
use crate::lock::contender::{Contender, with_owner};
use crate::lock::error::LockError;
use crate::lock::guard::Guard;
use crate::lock::shared_tenure::Sharer;
use crate::lock::tenure::Tenure;
use crate::runtime::wake::Sleeper;
use crate::runtime::{Late, Pending, now};

#[derive(Default)]
pub(super) struct Line {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_taken: bool,
    holder: Option<Holder>,
    seats: VecDeque<Arc<Seat>>,
    /// How many of those have left.
    left: usize,
}

/// The present holder.
struct Holder {
    tenure: Arc<dyn Tenure>,
    caller: Caller,
    since: SystemTime,
}

/// The right to act, and what there is to act on.
pub(super) struct Turn {
    /// Empty once it was passed on.
    line: Option<Arc<Line>>,
    pub(super) has: Has,
}

#[derive(Default)]
pub(super) struct Has {
    /// An acquire from the store that is in flight.
    pub(super) acquiring: Option<Box<Pending<Guard, LockError>>>,
    pub(super) round: Option<Round>,
}

/// The store's guard, while it goes round.
pub(super) struct Round {
    pub(super) guard: Guard,
    /// How many have held with it, and since when, without a look at who else waits.
    pub(super) unlooked: u32,
    pub(super) looked: Instant,
    /// How many have held with it.
    pub(super) turns: u64,
}

impl Round {
    pub(super) fn new(guard: Guard) -> Round {
        Round { guard, unlooked: 0, looked: now(), turns: 0 }
    }

    pub(super) fn looked_after(self) -> Round {
        Round { unlooked: 0, looked: now(), ..self }
    }
}

#[derive(Default)]
struct Seat {
    state: Mutex<Seated>,
}

enum Seated {
    Waits(Option<Sleeper>),
    Has(Turn),
    Left,
}

impl Default for Seated {
    fn default() -> Seated {
        Seated::Waits(None)
    }
}

pub(super) struct Waiting {
    line: Arc<Line>,
    seat: Arc<Seat>,
}

impl Line {
    pub(super) fn enter(self: &Arc<Self>) -> Result<Turn, Waiting> {
        let mut state = self.state.lock();
        if !state.is_taken {
            state.is_taken = true;
            return Ok(Turn::new(self, Has::default()));
        }
        let seat = Arc::new(Seat::default());
        state.seats.push_back(Arc::clone(&seat));
        Err(Waiting { line: Arc::clone(self), seat })
    }

    /// Somebody has left: from time to time all who have are cleared away.
    fn clear_seats(&self) {
        let mut state = self.state.lock();
        state.left += 1;
        if 2 * state.left > state.seats.len() {
            state.seats.retain(|seat| !matches!(*seat.state.lock(), Seated::Left));
            state.left = 0;
        }
    }

    pub(super) fn try_enter(self: &Arc<Self>) -> Option<Turn> {
        let mut state = self.state.lock();
        let is_free = !std::mem::replace(&mut state.is_taken, true);
        is_free.then(|| Turn::new(self, Has::default()))
    }

    /// The holder within this process.
    pub(super) fn holder(&self) -> Option<Contender> {
        let state = self.state.lock();
        let holder = state.holder.as_ref()?;
        Some(with_owner(|host, pid, _| Contender {
            since: holder.since,
            host: host.to_owned(),
            pid,
            thread: holder.caller.name().into_owned(),
            ..Contender::new(&*holder.tenure.claim_path(), holder.tenure.token())
        }))
    }
}

impl Late<LockError> for Line {
    fn error(&self, path: &str) -> LockError {
        LockError::timed_out(path, self.holder())
    }
}

impl Turn {
    fn new(line: &Arc<Line>, has: Has) -> Turn {
        Turn { line: Some(Arc::clone(line)), has }
    }

    /// The caller of the acquire holds.
    pub(super) fn holds(mut self, mut round: Round) -> Turn {
        round.turns += 1;
        round.unlooked = round.unlooked.saturating_add(1);
        let (tenure, caller) = (Arc::clone(round.guard.tenure()), Caller::present());
        let holder = Holder { tenure, caller, since: SystemTime::now() };
        if let Some(line) = &self.line {
            let before = line.state.lock().holder.replace(holder);
            drop(before);
        }
        self.has.round = Some(round);
        self
    }

    /// Gives it to the next; gives back what it has if nobody waits.
    fn pass(mut self) -> Has {
        self.pass_on()
    }

    fn pass_on(&mut self) -> Has {
        let mut has = std::mem::take(&mut self.has);
        let Some(line) = self.line.take() else { return has };
        // What is lost is of no use to the next.
        let is_lost = has.round.as_ref().is_some_and(|round| round.guard.is_lost());
        let lost = if is_lost { std::mem::take(&mut has) } else { Has::default() };
        loop {
            let mut state = line.state.lock();
            let before = state.holder.take();
            let next = state.seats.pop_front();
            state.is_taken = next.is_some();
            drop(state);
            drop(before);
            let Some(next) = next else {
                return if is_lost { lost } else { has };
            };
            let mut seated = next.state.lock();
            if let Seated::Waits(sleeper) = &mut *seated {
                let sleeper = sleeper.take();
                *seated = Seated::Has(Turn::new(&line, has));
                drop(seated);
                if let Some(sleeper) = sleeper {
                    sleeper.wake();
                }
                return lost;
            }
        }
    }
}

impl Sharer for Turn {
    fn turn(&self) -> u64 {
        self.has.round.as_ref().map_or(0, |round| round.turns - 1)
    }

    fn leave(self) -> Option<Guard> {
        self.pass().round.map(|round| round.guard)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        drop(self.pass_on());
    }
}

impl Future for Waiting {
    type Output = Turn;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Turn> {
        let sleeper = Sleeper::new(cx.waker());
        let mut seated = self.seat.state.lock();
        let next = match &*seated {
            Seated::Waits(_) => Seated::Waits(Some(sleeper)),
            Seated::Has(_) | Seated::Left => Seated::Left,
        };
        let before = std::mem::replace(&mut *seated, next);
        // A waker is code of others.
        drop(seated);
        match before {
            Seated::Has(turn) => Poll::Ready(turn),
            Seated::Waits(_) | Seated::Left => Poll::Pending,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let before = std::mem::replace(&mut *self.seat.state.lock(), Seated::Left);
        if let Seated::Waits(_) = before {
            self.line.clear_seats();
        }
        // A turn that has come meanwhile goes on to the next.
        drop(before);
    }
}
