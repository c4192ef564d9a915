//! The thread that works on a database for a store: step by step, renewals first.
//!
//! It waits for nothing but the database, and nobody waits for it under a lock. If another client works on the same lock,
//! the step is tried again after steps on other locks. If a deletion or another duty fails, it is tried until it is certain,
//! or until the session is over by the database's clock.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use uuid::Uuid;

use super::backlog::{Backlog, Progress, Step};
use super::claim::{Claim, Status};
use super::database::{Cause, Claimed, Database, StepError};
use super::duties::{Answer, Duties, Duty, Ending};
use super::session::Session;
use crate::lock::{Contender, LostReason};
use crate::logging::log;
use crate::panics::catch_panic;
use crate::process::Process;
use crate::retry;
use crate::runtime::{BootInstant, Latest, machine, wake};

pub(super) type Work = Box<dyn FnMut(&mut Worker) -> Progress + Send>;

/// Before a step is tried again.
const BUSY: Duration = Duration::from_millis(2);

/// The state that a store shares with its thread.
pub(super) struct Shared {
    pub(super) lease: Duration,
    /// Counts what has, or may have, changed in the database.
    pub(super) changes: Latest<u64>,
    /// How many wait for such a change.
    pub(super) watching: AtomicUsize,
    /// Whether a look is among the steps that are not done yet.
    pub(super) is_look_queued: AtomicBool,
    pub(super) is_closed: AtomicBool,
    pub(super) process: Process,
    /// Why nobody may acquire a lock, as last seen.
    pub(super) hindrance: Mutex<Hindrance>,
}

/// The reason why nobody may acquire a lock.
#[derive(Default)]
pub(super) struct Hindrance {
    /// Why the last step was not done.
    failure: Option<String>,
    /// Until when the server lets nobody in.
    quiet: Option<Instant>,
}

impl Shared {
    pub(super) fn changed(&self) {
        self.changes.update(|changes| {
            *changes += 1;
            true
        });
    }

    /// The outcome of a step.
    pub(super) fn note<T>(&self, done: &Result<T, StepError>) {
        match done {
            Ok(_) => self.hindrance.lock().failure = None,
            Err(failure)
                if matches!(failure.cause, Cause::Busy | Cause::Unknown | Cause::Failed) =>
            {
                self.hindrance.lock().failure = Some(failure.why.clone());
            }
            Err(_) => {}
        }
    }

    /// The detail of the error of an acquire that timed out.
    pub(super) fn why_late(&self) -> Option<String> {
        let hindrance = self.hindrance.lock();
        if let Some(failure) = &hindrance.failure {
            return Some(format!("the store's last error: {failure}"));
        }
        let left = hindrance.quiet?.saturating_duration_since(Instant::now()).as_millis();
        let why = || {
            format!("its server was restarted or promoted, and lets nobody in for {left} ms more")
        };
        (left > 0).then(why)
    }
}

pub(super) type Numbered = BTreeMap<i64, Arc<Claim>>;

pub(super) struct Worker {
    pub(super) database: Box<dyn Database>,
    pub(super) shared: Arc<Shared>,
    pub(super) session: Option<Arc<Session>>,
    /// When the last renewal was submitted.
    renewed: Instant,
    renew_at: Instant,
    /// When the session was needed last.
    used: Instant,
    /// Those of the session that are not over, by lock and number.
    pub(super) claims: HashMap<Arc<str>, Numbered>,
    /// Those of them that wait.
    pub(super) waiting: HashMap<Arc<str>, Numbered>,
    /// Claims that may exist because a reply was lost. They are looked up by id, and are not deleted as strays.
    pub(super) in_doubt: HashSet<Uuid>,
    /// Claims that this user may not delete. They go with the session, which is ended once it holds nothing else.
    pub(super) left_behind: HashSet<Uuid>,
    pub(super) duties: Duties,
    /// Those who wait until nothing is left to be done.
    closing: Vec<oneshot::Sender<()>>,
    pub(super) look_at: Instant,
    pub(super) look_pause: Duration,
    pub(super) sweep_at: Option<Instant>,
    /// Whether a look has failed since changes were last looked for.
    pub(super) has_missed: bool,
}

impl Worker {
    pub(super) fn new(database: Box<dyn Database>, shared: Arc<Shared>) -> Worker {
        let now = Instant::now();
        Worker {
            database,
            shared,
            session: None,
            renewed: now,
            renew_at: now,
            used: now,
            claims: HashMap::new(),
            waiting: HashMap::new(),
            in_doubt: HashSet::new(),
            left_behind: HashSet::new(),
            duties: Duties::default(),
            closing: Vec::new(),
            look_at: now,
            look_pause: Duration::ZERO,
            sweep_at: None,
            has_missed: false,
        }
    }

    /// The thread's work, until the store is gone or closed and nothing is left to be done.
    pub(super) fn run(mut self, steps: &Receiver<Step<Work>>) {
        let mut backlog = Backlog::new();
        let mut is_open = true;
        loop {
            self.keep();
            let is_busy = backlog.run_next(|work: &mut Work| {
                catch_panic(|| work(&mut self)).unwrap_or(Progress::Done)
            });
            let pause = match backlog.is_empty() {
                _ if is_busy => BUSY,
                false => Duration::ZERO,
                true if !is_open => {
                    if self.has_ended() {
                        return;
                    }
                    self.pause().min(retry::LATER)
                }
                true => self.pause(),
            };
            match steps.recv_timeout(pause) {
                Ok(step) => backlog.push(step),
                Err(RecvTimeoutError::Timeout) => {}
                // The pause was that of an open store.
                Err(RecvTimeoutError::Disconnected) if is_open => is_open = false,
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(pause),
            }
        }
    }

    /// The store is gone or closed: whether nothing is left to be done.
    fn has_ended(&mut self) -> bool {
        self.lose(LostReason::Session);
        self.duties.are_done()
    }

    /// Does what is due.
    fn keep(&mut self) {
        let now = Instant::now();
        let is_over = self.session.as_ref().is_some_and(|session| !session.is_trusted());
        let must_end =
            !self.left_behind.is_empty() && !self.holds_any() && self.duties.claims() == 0;
        if is_over || must_end {
            self.lose(LostReason::Session);
        }
        self.renew_if_due();
        if self.is_looking() && now >= self.look_at {
            self.look_around();
        }
        if self.duties.first_due().is_some_and(|due| now >= due) {
            self.do_duties();
        }
        self.answer_closing();
    }

    fn answer_closing(&mut self) {
        if !self.closing.is_empty() && self.has_ended() {
            self.closing.drain(..).for_each(|closing| wake::send(closing, ()));
        }
    }

    /// How long there is nothing to be done.
    fn pause(&self) -> Duration {
        /// Without anything that is due.
        const LONG: Duration = Duration::from_secs(3600);
        let now = Instant::now();
        let renewal = self.session.iter().map(|_| self.renew_at);
        let look = self.is_looking().then_some(self.look_at);
        let first = self.duties.first_due().into_iter().chain(renewal).chain(look).min();
        first.map_or(LONG, |first| first.saturating_duration_since(now))
    }

    /// The session, which is begun where there is none.
    fn session(&mut self) -> Result<Arc<Session>, StepError> {
        if self.shared.is_closed.load(Ordering::Acquire) {
            return Err(StepError::new(Cause::SessionOver, "the store is closed"));
        }
        self.used = Instant::now();
        if self.shared.is_closed.load(Ordering::Acquire) {
            return Err(StepError::new(Cause::SessionOver, "the store is closed"));
        }
        if let Some(session) = self.session.clone().filter(|session| session.is_trusted()) {
            return Ok(session);
        }
        self.lose(LostReason::Session);
        let (id, lease, submitted) = (Uuid::new_v4(), self.shared.lease, BootInstant::now());
        if let Err(failure) = self.database.begin(id, lease) {
            if failure.is(Cause::Unknown) {
                self.end(Ending::Session(id), Duration::ZERO, None);
            }
            return Err(failure);
        }
        let session = Session::begun(id, lease, submitted);
        machine::drive(Arc::clone(&session).watch());
        self.renewed = Instant::now();
        self.renew_at = self.renewed + lease / 3;
        self.session = Some(Arc::clone(&session));
        Ok(session)
    }

    /// Call this between the steps of a long loop, so that the loop does not cost the session.
    pub(super) fn renew_if_due(&mut self) {
        if self.session.is_some() && Instant::now() >= self.renew_at {
            self.renew();
        }
    }

    fn renew(&mut self) {
        let Some(session) = self.session.clone() else { return };
        let lease = self.shared.lease;
        let is_needed = !self.claims.is_empty() || self.duties.claims() > 0;
        if !is_needed && self.used.elapsed() > lease {
            return self.lose(LostReason::Session);
        }
        let (now, submitted) = (Instant::now(), BootInstant::now());
        let renewed = self.database.renew(session.id, lease);
        self.shared.note(&renewed);
        // One that others keep out for a moment is nothing yet.
        let is_late = now.duration_since(self.renewed) > lease / 2;
        match renewed {
            // Of what a database has lost, a session that goes on is no proof.
            Ok(true) if self.check_claims() => {
                session.renewed(submitted);
                self.renewed = now;
                self.renew_at = now + lease / 3;
            }
            Ok(true) => {
                if is_late {
                    session.set_suspended(true);
                }
                self.renew_at = now + BUSY;
            }
            Ok(false) => self.lose(LostReason::Session),
            Err(failure) => {
                if is_late || !failure.is(Cause::Busy) {
                    session.set_suspended(true);
                }
                self.renew_at = now + pause_after(&failure);
                log!(DEBUG, %failure, "a renewal was not confirmed");
            }
        }
    }

    /// The session is over, with all its claims.
    pub(super) fn lose(&mut self, reason: LostReason) {
        let Some(session) = self.session.take() else { return };
        session.lose();
        let now = Instant::now();
        let is_held = self.holds_any() || !self.duties.are_all_due();
        for claim in self.claims.drain().flat_map(|(_, claims)| claims.into_values()) {
            claim.set(Status::Over(reason));
        }
        self.waiting.clear();
        self.in_doubt.clear();
        self.left_behind.clear();
        // Holders have as long to end their work as if the lease ran out.
        let is_closed = self.shared.is_closed.load(Ordering::Acquire);
        let notice = if is_held && !is_closed { session.notice() } else { Duration::ZERO };
        self.duties.lose_session(now + notice, self.shared.lease);
        self.end(Ending::Session(session.id), notice, None);
        self.shared.changed();
    }

    /// Makes a claim, or looks up what became of one that may have been made. `false`: it was not made, because it would
    /// have to wait.
    pub(super) fn claim(
        &mut self,
        claim: &Arc<Claim>,
        unless_blocked: bool,
    ) -> Result<bool, StepError> {
        let session = self.session()?;
        let claimed = match self.database.claim(&claim.row(session.id), unless_blocked) {
            Ok(claimed) => claimed,
            Err(failure) => {
                if failure.is(Cause::SessionOver) {
                    self.lose(LostReason::Session);
                } else if failure.is(Cause::Unknown) {
                    self.in_doubt.insert(claim.id());
                }
                return Err(failure);
            }
        };
        self.in_doubt.remove(&claim.id());
        let (number, ahead) = match claimed {
            Claimed::Blocked(ahead) => {
                self.look_for_quiet(&ahead);
                *claim.ahead.lock() = ahead;
                return Ok(false);
            }
            Claimed::Holds { number } => (number, None),
            Claimed::Waits { number, ahead } => (number, Some(ahead)),
        };
        claim.is_at(&session, number);
        insert(&mut self.claims, number, claim);
        match ahead {
            Some(ahead) => {
                self.look_for_quiet(&ahead);
                *claim.ahead.lock() = ahead;
                insert(&mut self.waiting, number, claim);
                self.look_soon();
            }
            None => self.hold(&session, claim),
        }
        self.shared.changed();
        Ok(true)
    }

    /// Where nobody is ahead of one that has to wait, the server lets nobody in.
    fn look_for_quiet(&mut self, ahead: &Option<Contender>) {
        if let (None, Ok(quiet)) = (ahead, self.database.quiet()) {
            self.shared.hindrance.lock().quiet = quiet.map(|quiet| Instant::now() + quiet);
        }
    }

    /// Nobody keeps it out any more; it holds, if the session is alive.
    pub(super) fn hold(&mut self, session: &Session, claim: &Claim) {
        if session.is_trusted() {
            claim.set(Status::Holds);
        } else {
            self.lose(LostReason::Session);
        }
    }

    /// Deletes a claim, for certain: after so long, or else once this step is done. Says whether there was one.
    pub(super) fn release(&mut self, claim: &Claim, after: Duration, answer: Answer) {
        self.forget(claim);
        let (id, lock) = (claim.id(), Arc::clone(&claim.lock));
        self.in_doubt.remove(&id);
        self.duties.forget_later(id);
        self.end(Ending::Claim { id, lock }, after, answer);
    }

    /// It is over.
    pub(super) fn forget(&mut self, claim: &Claim) {
        let Some(place) = claim.place() else { return };
        remove(&mut self.claims, place.number, claim);
        remove(&mut self.waiting, place.number, claim);
    }

    fn end(&mut self, what: Ending, after: Duration, answer: Answer) {
        let lives = self.session.is_some() && matches!(what, Ending::Claim { .. });
        self.duties.add(what, after, (!lives).then_some(self.shared.lease), answer);
    }

    /// Deletes a claim that nobody knows of here.
    pub(super) fn delete_stray(&mut self, stray: Uuid) {
        if !self.duties.are_of(stray) {
            self.end(Ending::Claim { id: stray, lock: Arc::default() }, Duration::ZERO, None);
        }
    }

    fn do_duties(&mut self) {
        let now = Instant::now();
        // Others are at these locks, and it takes a while to find that out.
        let mut busy = HashSet::new();
        for _ in 0..self.duties.len() {
            // Before the duty is taken out: a renewal looks for claims that no duty deletes.
            self.renew_if_due();
            let Some(mut duty) = self.duties.take() else { return };
            if duty.lock().is_some_and(|lock| busy.contains(lock)) {
                duty.due = duty.due.max(now + BUSY);
            }
            if now >= duty.due {
                busy.extend(self.do_duty(duty));
            } else {
                self.duties.put_back(duty);
            }
        }
    }

    /// Tries it once. Gives the lock that others are at.
    fn do_duty(&mut self, mut duty: Duty) -> Option<Arc<str>> {
        let done = match &duty.what {
            Ending::Claim { id, lock } => self.database.release(*id, lock),
            Ending::Session(id) => self.database.end(*id).map(|()| true),
        };
        match done {
            Ok(was_there) => {
                if let Some(answer) = duty.answer.take() {
                    // Where it is gone after an attempt that was not answered, that has deleted it.
                    let was_there = was_there || duty.may_be_done;
                    wake::send(answer, Ok(was_there));
                }
                self.shared.changed();
                match duty.what {
                    Ending::Claim { lock, .. } => self.look_at_lock(&lock),
                    Ending::Session(_) => self.look_at_all(),
                }
                None
            }
            Err(failure) => {
                let busy = duty.lock().filter(|_| failure.is(Cause::Busy)).cloned();
                let is_forbidden = failure.is(Cause::NotPermitted);
                match duty.what {
                    Ending::Claim { id, .. } if is_forbidden && duty.is_on_a_living_session() => {
                        // An attempt that was not answered may have deleted it.
                        let cause = if duty.may_be_done { Cause::Unknown } else { failure.cause };
                        self.leave_behind(id, duty.answer, StepError { cause, ..failure });
                    }
                    // The claim is over with its session.
                    _ if duty.is_over() => {}
                    _ => {
                        duty.may_be_done |= failure.is(Cause::Unknown);
                        duty.due = Instant::now() + pause_after(&failure);
                        self.duties.put_back(duty);
                        log!(DEBUG, %failure, "a claim is not deleted yet");
                    }
                }
                busy
            }
        }
    }

    /// This user may not delete that claim.
    fn leave_behind(&mut self, claim: Uuid, answer: Answer, failure: StepError) {
        let why = failure.why.clone();
        log!(WARN, why, "a claim may not be deleted: it blocks others until the session ends");
        self.left_behind.insert(claim);
        if let Some(answer) = answer {
            wake::send(answer, Err(failure));
        }
    }

    /// The store is closed. The sender hears when nothing of it is left in the database.
    pub(super) fn close(&mut self, nothing_left: Option<oneshot::Sender<()>>) {
        self.closing.extend(nothing_left);
        self.lose(LostReason::Session);
        self.do_duties();
        self.answer_closing();
        self.shared.changed();
    }
}

fn insert(claims: &mut HashMap<Arc<str>, Numbered>, number: i64, claim: &Arc<Claim>) {
    claims.entry(Arc::clone(&claim.lock)).or_default().insert(number, Arc::clone(claim));
}

pub(super) fn remove(claims: &mut HashMap<Arc<str>, Numbered>, number: i64, claim: &Claim) {
    if let Some(of_lock) = claims.get_mut(&claim.lock) {
        of_lock.remove(&number);
        if of_lock.is_empty() {
            claims.remove(&claim.lock);
        }
    }
}

fn pause_after(failure: &StepError) -> Duration {
    if failure.is(Cause::Busy) { BUSY } else { retry::LATER }
}
