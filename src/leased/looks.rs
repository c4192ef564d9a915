//! How the thread of a store reads the database: the changes of other clients, expired sessions, the claims that hold
//! as a result, and release requests.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::claim::Status;
use super::database::{Changes, Database, StepError};
use super::worker::{Numbered, Worker, remove};
use crate::lock::{LostReason, Revocation};
use crate::logging::log;

/// How seldom it is looked for changes at the most where the database does not tell what somebody waits for.
const LONGEST_UNTOLD: Duration = Duration::from_millis(200);

impl Worker {
    pub(super) fn is_looking(&self) -> bool {
        !self.claims.is_empty() || self.is_watched()
    }

    /// Somebody has begun to wait for others.
    pub(super) fn look_soon(&mut self) {
        self.look_pause = self.database.shortest_look();
        self.look_at = self.look_at.min(Instant::now() + self.look_pause);
        // Whose session ends next is not known any more.
        self.sweep_at = None;
    }

    /// Repeats the failed look with the next one.
    fn miss(&mut self, failure: StepError) {
        self.has_missed = true;
        failed(failure);
    }

    /// Others have changed something.
    pub(super) fn look_now(&mut self) {
        self.look_at = Instant::now();
    }

    /// Reads the changes of other clients, and ends expired sessions.
    pub(super) fn look_around(&mut self) {
        let (now, lease) = (Instant::now(), self.shared.lease);
        let is_time = self.sweep_at.is_some_and(|at| now >= at);
        let is_unknown = self.sweep_at.is_none();
        let changes = self.database.changes();
        self.shared.note(&changes);
        let changes = changes.unwrap_or_else(|failure| {
            failed(failure);
            Changes::None
        });
        // A change is reported once, so a look that failed is repeated without one.
        let has_missed = std::mem::take(&mut self.has_missed);
        let (has_changed, is_any) = match changes {
            Changes::None => (false, has_missed),
            Changes::Any => (true, true),
            Changes::Locks(locks) => {
                locks.iter().for_each(|lock| self.look_at_lock(lock));
                (true, has_missed)
            }
        };
        let tells_all = self.database.tells_what_concerns_others();
        if is_time {
            self.database.repair().unwrap_or_else(failed);
        }
        let mut has_ended = false;
        if is_time || ((is_any || is_unknown || !tells_all) && self.is_waited_for()) {
            match self.database.sweep() {
                Ok(swept) => {
                    has_ended = swept.has_ended;
                    // Somebody may delete the next session's row.
                    self.sweep_at = Some(now + swept.next.map_or(lease, |next| next.min(lease)));
                }
                Err(failure) => failed(failure),
            }
        }
        if is_any || is_time || has_ended {
            self.check_wants();
            self.look_at_those(|database, lock| {
                is_time || has_ended || has_missed || database.may_concern(lock)
            });
        }
        if is_any || is_time || (self.is_watched() && !tells_all) {
            self.shared.changed();
        }
        let longest = match self.is_watched() && !tells_all {
            true => self.database.longest_look().min(LONGEST_UNTOLD),
            false => self.database.longest_look(),
        };
        self.look_pause = match (has_changed, self.is_waited_for()) {
            (_, false) => self.database.held_look(),
            (true, true) => self.database.shortest_look().min(longest),
            (false, true) => (self.look_pause * 2).min(longest),
        };
        // After a long look, callers' steps get as much time as the look took.
        self.look_at = Instant::now() + self.look_pause.max(now.elapsed());
        // No later than the next session ends.
        if let Some(ends) = self.sweep_at.filter(|ends| *ends > now && self.is_waited_for()) {
            self.look_at = self.look_at.min(ends);
        }
    }

    fn is_watched(&self) -> bool {
        self.shared.watching.load(Ordering::Acquire) > 0
    }

    fn is_waited_for(&self) -> bool {
        !self.waiting.is_empty() || self.is_watched()
    }

    pub(super) fn look_at_all(&mut self) {
        self.look_at_those(|_, _| true);
    }

    fn look_at_those(&mut self, is_concerned: impl Fn(&dyn Database, &str) -> bool) {
        let waiting = self.waiting.keys();
        let locks: Vec<Arc<str>> =
            waiting.filter(|lock| is_concerned(&*self.database, lock)).cloned().collect();
        for lock in locks {
            self.renew_if_due();
            self.look_at_lock(&lock);
        }
    }

    /// Finds the waiting claims of a lock that hold by now.
    pub(super) fn look_at_lock(&mut self, lock: &Arc<str>) {
        let (Some(waiting), Some(session)) = (self.waiting.get(lock), self.session.clone()) else {
            return;
        };
        let front = match self.database.front(lock) {
            Ok(front) => front,
            Err(failure) => return self.miss(failure),
        };
        // Those behind the next one wait on, unless they ask for more than there is.
        let is_concerned =
            |number: i64| front.limit.is_some() || front.next.is_none_or(|next| number <= next);
        let waiting = waiting.iter().take_while(|(number, _)| is_concerned(**number));
        let waiting: Vec<_> = waiting.map(|(number, claim)| (*number, Arc::clone(claim))).collect();
        for (number, claim) in waiting {
            if front.holding.binary_search(&number).is_ok() {
                remove(&mut self.waiting, number, &claim);
                self.hold(&session, &claim);
            } else if front.next.is_none_or(|next| number < next) {
                // Somebody has deleted it: it is recreated.
                claim.set(Status::Over(LostReason::Deleted));
                self.forget(&claim);
            } else if front.limit.is_some_and(|limit| claim.wants_more_than(limit)) {
                // It is recreated, and fails by that.
                claim.set(Status::Over(LostReason::Released));
                self.release(&claim, Duration::ZERO, None);
            } else if front.next == Some(number) {
                match self.database.ahead(lock, number, claim.kind()) {
                    Ok(ahead) => *claim.ahead.lock() = ahead,
                    Err(failure) => failed(failure),
                }
            }
        }
    }

    /// Whether any of its claims waits no more.
    pub(super) fn holds_any(&self) -> bool {
        number_of(&self.claims) > number_of(&self.waiting)
    }

    /// Finds out what others want of what is held.
    pub(super) fn check_wants(&mut self) {
        let Some(session) = self.session.clone().filter(|_| !self.claims.is_empty()) else {
            return;
        };
        let wants = match self.database.wanted(session.id) {
            Ok(Some(wants)) => wants,
            Ok(None) => return self.lose(LostReason::Session),
            Err(failure) => return self.miss(failure),
        };
        for (number, what) in wants.revocations {
            let claim = self.claims.values().find_map(|claims| claims.get(&number).cloned());
            let Some(claim) = claim else { continue };
            match what {
                Revocation::Ask { reason } => claim.requests.add(&reason),
                Revocation::Break { grace, .. } => {
                    claim.set(Status::Over(LostReason::Broken));
                    self.release(&claim, grace, None);
                }
            }
        }
        let known = number_of(&self.claims);
        if wants.claims != known + self.duties.claims() + self.left_behind.len() {
            self.check_claims();
        }
    }

    /// Finds out whether a claim is gone, or one is back. Gives whether that could be found out.
    pub(super) fn check_claims(&mut self) -> bool {
        let Some(session) = self.session.clone() else { return true };
        let there: HashMap<i64, Uuid> = match self.database.numbers(session.id) {
            Ok(Some(there)) => there.into_iter().collect(),
            Ok(None) => {
                self.lose(LostReason::Session);
                return true;
            }
            Err(failure) => {
                self.miss(failure);
                return false;
            }
        };
        let claims = self.claims.values().flat_map(BTreeMap::iter);
        let gone: Vec<_> = claims
            .filter(|(number, _)| !there.contains_key(number))
            .map(|(_, claim)| Arc::clone(claim))
            .collect();
        let known = self.claims.values().flat_map(BTreeMap::keys);
        let known: HashSet<i64> = known.copied().collect();
        let is_known = |id: &Uuid| self.in_doubt.contains(id) || self.left_behind.contains(id);
        let is_stray = |(number, id): &(i64, Uuid)| !known.contains(number) && !is_known(id);
        let strays: Vec<Uuid> = there.into_iter().filter(is_stray).map(|(_, id)| id).collect();
        // A release that a database has forgotten keeps others out for as long as the session lives.
        strays.into_iter().for_each(|id| self.delete_stray(id));
        for claim in gone {
            claim.set(Status::Over(LostReason::Deleted));
            self.forget(&claim);
        }
        true
    }
}

/// A look was not answered: the next one may be.
fn failed(failure: StepError) {
    log!(DEBUG, %failure, "a look at the database failed");
}

fn number_of(claims: &HashMap<Arc<str>, Numbered>) -> usize {
    claims.values().map(BTreeMap::len).sum()
}
