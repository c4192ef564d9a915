//! The claims and sessions that a store has to delete. Each deletion is repeated until it is certain, or until the session
//! is over by the database's clock.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::database::StepError;
use crate::runtime::{BootInstant, Unfinished};

/// Whether there was a claim to be deleted, or why it may not be.
pub(super) type Deleted = Result<bool, StepError>;
/// Where the outcome of a deletion is sent to, if somebody waits for it.
pub(super) type Answer = Option<oneshot::Sender<Deleted>>;

#[derive(Clone, Debug)]
pub(super) enum Ending {
    Claim { id: Uuid, lock: Arc<str> },
    Session(Uuid),
}

pub(super) struct Duty {
    pub(super) due: Instant,
    /// When nothing of it can be left any more. `None`: its session lives.
    ends: Option<BootInstant>,
    pub(super) what: Ending,
    /// Whether an attempt was not answered.
    pub(super) may_be_done: bool,
    pub(super) answer: Answer,
    _unfinished: Unfinished,
}

impl Duty {
    pub(super) fn is_on_a_living_session(&self) -> bool {
        self.ends.is_none()
    }

    pub(super) fn is_over(&self) -> bool {
        self.ends.is_some_and(|ends| BootInstant::now() >= ends)
    }

    /// That of its claim.
    pub(super) fn lock(&self) -> Option<&Arc<str>> {
        match &self.what {
            Ending::Claim { lock, .. } => Some(lock),
            Ending::Session(_) => None,
        }
    }

    /// Whether it deletes the claim with that id.
    fn is_of(&self, claim: Uuid) -> bool {
        matches!(self.what, Ending::Claim { id, .. } if id == claim)
    }
}

#[derive(Default)]
pub(super) struct Duties(VecDeque<Duty>);

impl Duties {
    /// It is due after so long. `lease`: its session has one that is not renewed any more.
    pub(super) fn add(
        &mut self,
        what: Ending,
        after: Duration,
        lease: Option<Duration>,
        answer: Answer,
    ) {
        let (due, _unfinished) = (Instant::now() + after, Unfinished::begin());
        let ends = lease.map(|lease| BootInstant::now() + after + lease);
        self.0.push_back(Duty { due, ends, what, may_be_done: false, answer, _unfinished });
    }

    /// The next one in this pass over all of them.
    pub(super) fn take(&mut self) -> Option<Duty> {
        self.0.pop_front()
    }

    pub(super) fn put_back(&mut self, duty: Duty) {
        self.0.push_back(duty);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// When the first one is due.
    pub(super) fn first_due(&self) -> Option<Instant> {
        self.0.iter().map(|duty| duty.due).min()
    }

    pub(super) fn are_all_due(&self) -> bool {
        let now = Instant::now();
        self.0.iter().all(|duty| duty.due <= now)
    }

    /// How many claims are to be deleted.
    pub(super) fn claims(&self) -> usize {
        self.0.iter().filter(|duty| duty.lock().is_some()).count()
    }

    pub(super) fn are_of(&self, claim: Uuid) -> bool {
        self.0.iter().any(|duty| duty.is_of(claim))
    }

    /// The claim is to be deleted now, and was to be deleted later: it was broken, and its grace is not over.
    pub(super) fn forget_later(&mut self, claim: Uuid) {
        let is_later = |duty: &Duty| duty.answer.is_none() && !duty.may_be_done;
        self.0.retain(|duty| !(duty.is_of(claim) && is_later(duty)));
    }

    /// The session is over, with all its claims: those that were to be deleted later are due by then.
    pub(super) fn lose_session(&mut self, due: Instant, lease: Duration) {
        let ends = BootInstant::now() + lease;
        for duty in &mut self.0 {
            duty.due = duty.due.min(due);
            duty.ends.get_or_insert(ends);
        }
    }

    pub(super) fn are_done(&self) -> bool {
        self.0.is_empty()
    }
}
