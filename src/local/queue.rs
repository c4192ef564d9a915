//! Holders and waiters, by path.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::{Mutex, MutexGuard};

use crate::error::{Code, Error};
use crate::lock::{
    AcquireTrace, Contender, HeldSince, HoldTrace, Kind, LockError, LostReason, MAX_TEXT, Requests,
    with_owner,
};
use crate::process::{Process, inherited};
use crate::raw::watch_for_forks;
use crate::runtime::Latest;
use crate::text::one_line;

/// All locks of a store.
pub(super) struct Queues {
    state: Mutex<State>,
    /// Counts changes of who is first.
    changes: Latest<u64>,
    process: Process,
}

#[derive(Default)]
struct State {
    /// Those that somebody holds; the holders are the first.
    queues: BTreeMap<Arc<str>, VecDeque<Arc<Claim>>>,
    /// How many permits semaphores have.
    limits: BTreeMap<Arc<str>, u32>,
    /// The last that was given.
    token: i64,
    is_closed: bool,
}

/// Where a claim stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Waits,
    Holds,
    Over(LostReason),
}

pub(super) struct Claim {
    /// That of its hold: what is claimed for an upgrade has that of the reader's.
    pub(super) token: i64,
    kind: Mutex<Kind>,
    pub(super) path: Arc<str>,
    pub(super) status: Latest<Status>,
    /// Why somebody wants it to end.
    pub(super) requests: Requests,
    contender: Mutex<Contender>,
    trace: HoldTrace,
}

/// The claim to make.
pub(super) struct Wanted<'a> {
    pub(super) kind: Kind,
    /// How many permits a semaphore has, unless that is known.
    pub(super) limit: u32,
    pub(super) label: &'a str,
}

impl Default for Queues {
    fn default() -> Queues {
        watch_for_forks();
        let changes = Latest::new(0);
        Queues { state: Mutex::default(), changes, process: Process::this() }
    }
}

impl Claim {
    fn new(lock: &str, token: i64, wanted: &Wanted<'_>) -> Arc<Claim> {
        let path = format!("{}/{token:010}", lock.trim_end_matches('/'));
        let contender = with_owner(|host, pid, thread| {
            let label = wanted.label;
            let [host, thread, label] = [host, thread, label].map(|text| one_line(text, MAX_TEXT));
            let (path, since) = (path.clone(), SystemTime::now());
            Contender { path, session: 0, token, since, held_since: None, host, pid, thread, label }
        });
        let status = Latest::new(Status::Waits);
        let contender = Mutex::new(contender);
        let requests = Requests::default();
        let kind = Mutex::new(wanted.kind);
        let trace = HoldTrace::default();
        Arc::new(Claim { token, kind, path: path.into(), status, requests, contender, trace })
    }

    pub(super) fn kind(&self) -> Kind {
        *self.kind.lock()
    }

    /// Whether that reader becomes a writer by it, or has.
    fn is_upgrade_of(&self, reader: &Claim) -> bool {
        self.token == reader.token && self.kind() == Kind::Upgrade
    }

    /// Nobody is before it any more who keeps it out.
    fn hold(&self) {
        let now = SystemTime::now();
        self.contender.lock().held_since.get_or_insert(HeldSince { earliest: now, latest: now });
        self.set(Status::Holds);
    }

    /// Wakes who waits for that. Not under a lock: a waker may do what it likes.
    pub(super) fn set(&self, new: Status) {
        self.status.update(|status| {
            // What is over stays so, and nobody comes to hold twice.
            let changes = *status != new && !matches!(status, Status::Over(_));
            if changes {
                *status = new;
            }
            changes
        });
        if matches!(new, Status::Over(_)) {
            self.trace_end();
        }
    }

    /// Notes the hold, which may be over by now, for the log.
    pub(super) fn trace(&self, acquire: &AcquireTrace) {
        self.trace.begin(acquire, &self.path, self.token);
        self.trace_end();
    }

    fn trace_end(&self) {
        if let Status::Over(reason) = self.status.get() {
            self.trace.end(|| (Arc::clone(&self.path), self.token), reason);
        }
    }
}

/// Those of a queue that hold, or do so from now on.
fn holding(limit: u32, queue: &VecDeque<Arc<Claim>>) -> impl Iterator<Item = &Arc<Claim>> {
    Kind::holding(limit, queue.iter().map(|claim| claim.kind())).map(|at| &queue[at])
}

impl State {
    fn limit(&self, lock: &str) -> u32 {
        self.limits.get(lock).copied().unwrap_or(0)
    }

    /// Records the semaphore's limit, if it is the first claim. Fails if the semaphore has too few permits.
    fn enter(&mut self, lock: &Arc<str>, wanted: &Wanted<'_>) -> Result<(), LockError> {
        let Kind::Permits(number) = wanted.kind else { return Ok(()) };
        if self.limits.get(lock).copied().unwrap_or(wanted.limit) < number {
            let why = "it has fewer permits than are asked for";
            return Err(LockError::unusable(lock, why, Code::BAD_ARGUMENTS));
        }
        self.limits.entry(Arc::clone(lock)).or_insert(wanted.limit);
        Ok(())
    }
}

impl Queues {
    /// Appends a claim to a lock's queue.
    pub(super) fn join(
        &self,
        lock: &Arc<str>,
        wanted: &Wanted<'_>,
    ) -> Result<Arc<Claim>, LockError> {
        let mut state = self.open(lock)?;
        state.enter(lock, wanted)?;
        Ok(self.append(state, lock, wanted))
    }

    /// As [`join`](Queues::join), but only if no claim is in the way; otherwise returns the contender of that claim.
    pub(super) fn try_join(
        &self,
        lock: &Arc<str>,
        wanted: &Wanted<'_>,
    ) -> Result<Result<Arc<Claim>, Contender>, LockError> {
        let mut state = self.open(lock)?;
        state.enter(lock, wanted)?;
        let queue = state.queues.get(lock).into_iter().flatten();
        let kinds = queue.clone().map(|claim| claim.kind()).chain([wanted.kind]);
        let holding = Kind::holding(state.limit(lock), kinds);
        let holds = holding.last() == Some(queue.clone().count());
        let mut blockers = queue.rev().filter(|earlier| wanted.kind.waits_for(earlier.kind()));
        let blocker = if holds { None } else { blockers.next().cloned() };
        drop(blockers);
        Ok(match blocker {
            Some(blocker) => Err(blocker.contender.lock().clone()),
            None => Ok(self.append(state, lock, wanted)),
        })
    }

    /// Makes tokens larger than `above` from now on.
    pub(super) fn raise_tokens(&self, above: i64) {
        let mut state = self.state.lock();
        state.token = state.token.max(above);
    }

    fn append(
        &self,
        mut state: MutexGuard<'_, State>,
        lock: &Arc<str>,
        wanted: &Wanted<'_>,
    ) -> Arc<Claim> {
        state.token += 1;
        let limit = state.limit(lock);
        let claim = Claim::new(lock, state.token, wanted);
        let queue = state.queues.entry(Arc::clone(lock)).or_default();
        queue.push_back(Arc::clone(&claim));
        let is_first = queue.len() == 1;
        let holds = holding(limit, queue).last().is_some_and(|last| Arc::ptr_eq(last, &claim));
        drop(state);
        if holds {
            claim.hold();
        }
        if is_first {
            self.changed();
        }
        claim
    }

    /// Takes a claim out of a lock's queue; those that come next may hold by that.
    pub(super) fn leave(&self, lock: &str, claim: &Claim, reason: LostReason) {
        // In a child of its process somebody may have been changing them.
        if !self.process.is_this() {
            return;
        }
        // Before it goes: who loses a lock knows so before another holds it.
        claim.set(Status::Over(reason));
        self.change(lock, |queue| queue.retain(|other| other.token != claim.token));
    }

    /// Changes a lock's queue; others may hold by that.
    fn change(&self, lock: &str, change: impl FnOnce(&mut VecDeque<Arc<Claim>>)) {
        let mut state = self.state.lock();
        let mut first = Vec::new();
        let limit = state.limit(lock);
        if let Some(queue) = state.queues.get_mut(lock) {
            change(queue);
            first.extend(holding(limit, queue).cloned());
            if queue.is_empty() {
                state.queues.remove(lock);
            }
        }
        drop(state);
        // One that is leaving as well lets the next ones in by itself.
        for first in first {
            first.hold();
        }
        self.changed();
    }

    /// Adds the claim by which an upgradeable reader becomes a writer, unless there is one. It goes before the first claim
    /// behind the reader that excludes readers, so that no such claim gets the lock first.
    pub(super) fn upgrade(&self, lock: &Arc<str>, reader: &Claim) -> Option<Arc<Claim>> {
        let label = reader.contender.lock().label.clone();
        let wanted = Wanted { kind: Kind::Upgrade, limit: 0, label: &label };
        let claim = Claim::new(lock, reader.token, &wanted);
        let mut is_new = true;
        self.change(lock, |queue| {
            let Some(own) = queue.iter().position(|it| it.token == reader.token) else { return };
            is_new = !queue.iter().any(|it| it.is_upgrade_of(reader));
            if is_new {
                let behind = queue.iter().skip(own).position(|it| !it.kind().reads());
                let place = behind.map_or(queue.len(), |behind| own + behind);
                queue.insert(place, Arc::clone(&claim));
            }
        });
        is_new.then_some(claim)
    }

    /// Whether that reader has become a writer, or is about to know so.
    pub(super) fn has_upgraded(&self, lock: &str, reader: &Claim) -> bool {
        let state = self.state.lock();
        let mut queue = state.queues.get(lock).into_iter().flatten();
        queue.any(|it| it.is_upgrade_of(reader) && it.status.get() == Status::Holds)
    }

    /// Takes that back.
    pub(super) fn withdraw(&self, lock: &str, claim: &Arc<Claim>) {
        if self.process.is_this() {
            claim.set(Status::Over(LostReason::Released));
            self.change(lock, |queue| queue.retain(|other| !Arc::ptr_eq(other, claim)));
        }
    }

    /// A claim that holds is of that kind from now on, and what it wrote by is over. `false`: it is being upgraded.
    pub(super) fn turn_into(&self, lock: &str, claim: &Claim, kind: Kind) -> bool {
        let mut is_free = true;
        self.change(lock, |queue| {
            let upgrades = queue.iter().filter(|it| it.is_upgrade_of(claim));
            is_free = upgrades.clone().all(|it| it.status.get() == Status::Holds);
            if is_free {
                *claim.kind.lock() = kind;
                queue.retain(|it| !it.is_upgrade_of(claim));
            }
        });
        is_free
    }

    fn changed(&self) {
        self.changes.update(|changes| {
            *changes += 1;
            true
        });
    }

    /// The first, as soon as that is not the one that was reported by this token.
    pub(super) async fn first_other_than(
        &self,
        lock: &str,
        reported: Option<Option<i64>>,
    ) -> Result<Option<Contender>, LockError> {
        let look = |_: &u64| {
            let first = self.first(lock, 1).map(|first| first.into_iter().next());
            let is_other = |first: &Option<Contender>| {
                reported != Some(first.as_ref().map(|first| first.token))
            };
            first.as_ref().map_or(true, is_other).then_some(first)
        };
        self.changes.wait_for(look).await
    }

    /// The first claims on a lock, up to that number.
    pub(super) fn first(&self, lock: &str, number: usize) -> Result<Vec<Contender>, LockError> {
        let state = self.open(lock)?;
        let claims = state.queues.get(lock).into_iter().flatten().take(number);
        Ok(claims.map(|claim| claim.contender.lock().clone()).collect())
    }

    /// Whose claim keeps that one out: the nearest before it.
    pub(super) fn ahead_of(&self, lock: &str, claim: &Claim) -> Option<Contender> {
        let state = self.open(lock).ok()?;
        let queue = state.queues.get(lock)?.iter();
        let before = queue.take_while(|other| !std::ptr::eq(&***other, claim));
        let blockers = before.filter(|other| claim.kind().waits_for(other.kind()));
        blockers.last().map(|other| other.contender.lock().clone())
    }

    /// How many permits a semaphore has, if that is known.
    pub(super) fn limit(&self, lock: &str) -> Result<Option<u32>, LockError> {
        Ok(self.open(lock)?.limits.get(lock).copied())
    }

    /// Sets that. Waiters that want more than there are claim again, and fail.
    pub(super) fn set_limit(&self, lock: &Arc<str>, limit: u32) -> Result<(), LockError> {
        let mut state = self.open(lock)?;
        let before = state.limits.insert(Arc::clone(lock), limit).unwrap_or(0);
        let (mut hold, mut refused) = (Vec::new(), Vec::new());
        if let Some(queue) = state.queues.get(lock) {
            hold.extend(holding(limit, queue).cloned());
            // Some of them may be about to know that they hold.
            let held: Vec<_> = holding(before, queue).collect();
            let asks_for_more = |claim: &&Arc<Claim>| {
                matches!(claim.kind(), Kind::Permits(number) if number > limit)
                    && claim.status.get() == Status::Waits
                    && !held.iter().any(|held| Arc::ptr_eq(held, claim))
            };
            refused.extend(queue.iter().filter(asks_for_more).cloned());
        }
        drop(state);
        hold.iter().for_each(|claim| claim.hold());
        refused.iter().for_each(|claim| self.leave(lock, claim, LostReason::Released));
        self.changed();
        Ok(())
    }

    /// The claim with that token, if it holds.
    pub(super) fn holder(&self, lock: &str, token: i64) -> Result<Option<Arc<Claim>>, LockError> {
        let state = self.open(lock)?;
        let mut queue = state.queues.get(lock).into_iter().flatten();
        let holder = queue.find(|claim| claim.token == token);
        Ok(holder.filter(|claim| claim.status.get() == Status::Holds).cloned())
    }

    /// Waits until there is no claim with that token.
    pub(super) async fn gone(&self, lock: &str, token: i64) {
        let is_gone = |_: &u64| {
            let state = self.state.lock();
            let queue = state.queues.get(lock);
            queue.is_none_or(|queue| queue.iter().all(|claim| claim.token != token)).then_some(())
        };
        self.changes.wait_for(is_gone).await;
    }

    pub(super) fn lose(&self, lock: &str) -> bool {
        let first = self.open(lock).ok().and_then(|state| state.queues.get(lock)?.front().cloned());
        let holder = first.filter(|first| first.status.get() == Status::Holds);
        if let Some(holder) = &holder {
            self.leave(lock, holder, LostReason::Session);
        }
        holder.is_some()
    }

    pub(super) fn close(&self) {
        if !self.process.is_this() {
            return;
        }
        let mut state = self.state.lock();
        state.is_closed = true;
        let queues = std::mem::take(&mut state.queues);
        drop(state);
        for claim in queues.into_values().flatten() {
            claim.set(Status::Over(LostReason::Session));
        }
        self.changed();
    }

    #[cfg(feature = "capi")]
    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    /// Why it fails to acquire when its claim is over without having held.
    fn closed(lock: &str) -> LockError {
        LockError::closed(lock, Error::new("acquire", lock, Code::CLOSING))
    }

    fn open(&self, lock: &str) -> Result<MutexGuard<'_, State>, LockError> {
        if !self.process.is_this() {
            return Err(LockError::closed(lock, inherited("acquire", lock)));
        }
        let state = self.state.lock();
        if state.is_closed { Err(Queues::closed(lock)) } else { Ok(state) }
    }
}

#[cfg(all(test, not(zklock_loom)))]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Wake, Waker};

    use super::*;

    const LOCK: &str = "/locks/queue";

    fn join(queues: &Queues, kind: Kind, limit: u32) -> Arc<Claim> {
        queues.join(&LOCK.into(), &Wanted { kind, limit, label: "" }).unwrap()
    }

    #[test]
    fn a_reader_is_upgraded_once_at_a_time() {
        let queues = Queues::default();
        let (reader, other) = (join(&queues, Kind::Upgradeable, 0), join(&queues, Kind::Read, 0));
        let first = queues.upgrade(&LOCK.into(), &reader).unwrap();
        assert!(queues.upgrade(&LOCK.into(), &reader).is_none());
        assert!(!queues.turn_into(LOCK, &reader, Kind::Read), "it would never end");
        queues.leave(LOCK, &other, LostReason::Released);
        assert!(first.status.get() == Status::Holds);
        assert!(queues.turn_into(LOCK, &reader, Kind::Upgradeable));
        assert!(queues.upgrade(&LOCK.into(), &reader).is_some());
    }

    struct SetsLimit(Arc<Queues>);

    impl Wake for SetsLimit {
        fn wake(self: Arc<Self>) {
            self.0.set_limit(&LOCK.into(), 2).unwrap();
        }
    }

    /// Two come to hold, and who hears of the first sets a limit at once.
    #[test]
    fn a_smaller_limit_takes_nothing_from_who_is_about_to_hold() {
        let queues = Arc::new(Queues::default());
        let before = join(&queues, Kind::Permits(4), 4);
        let [first, second] = [1, 3].map(|number| join(&queues, Kind::Permits(number), 4));
        let third = join(&queues, Kind::Permits(3), 4);
        let waker = Waker::from(Arc::new(SetsLimit(Arc::clone(&queues))));
        let holds = |status: &Status| (*status == Status::Holds).then_some(());
        let mut waiting = pin!(first.status.wait_for(holds));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        queues.leave(LOCK, &before, LostReason::Released);
        let stand = [&first, &second, &third].map(|claim| claim.status.get());
        assert!(stand == [Status::Holds, Status::Holds, Status::Over(LostReason::Released)]);
    }
}
