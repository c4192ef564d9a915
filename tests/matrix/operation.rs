//! An operation: what a program does with a lock, and what others do meanwhile.

use std::sync::Arc;

use crate::recipe::Recipe;
use crate::stage::{Outcome, Stage};

pub struct Operation {
    pub name: &'static str,
    pub how: How,
    pub answer: Answer,
    pub then: Then,
    pub begins: Begins,
    /// Whether the server is restarted at its steps, too, which takes longest of all.
    pub restarts: bool,
    /// Sets the scene, and rules for what happens on the way.
    pub before: fn(&Arc<Stage>) -> Outcome,
    /// Runs beside the operation.
    pub meanwhile: fn(&Stage) -> Outcome,
    /// Whether the client's session ends in it even when nothing goes wrong.
    pub ends_the_session: bool,
    pub fits: fn(&Recipe) -> bool,
}

/// How the lock is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Acquire,
    Try,
    /// Until the stage says to give it up.
    GiveUp,
    /// The caller comes back for the answer when the session that got it is over.
    ComeBackLate,
}

/// What the caller is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Held,
    Taken,
    /// Nobody is there any more to be told.
    Nothing,
}

/// What is done with a lock that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Release,
    Drop,
    /// Held until its znode is watched, while another waits; then released.
    Hold,
    /// Released after somebody has deleted the claim and a stranger has claimed.
    ReleaseTooLate,
}

/// From where on an operation's steps are its own: those before are the same as another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begins {
    AtOnce,
    /// With the first thing that happens on the way.
    WithTheTwist,
    /// When the caller has its answer.
    WithTheAnswer,
}

impl Operation {
    /// Acquires the lock and releases it, undisturbed.
    pub const fn new(name: &'static str) -> Operation {
        Operation {
            name,
            how: How::Acquire,
            answer: Answer::Held,
            then: Then::Release,
            begins: Begins::AtOnce,
            restarts: false,
            before: |stage| stage.make_way(),
            meanwhile: |_| Ok(()),
            ends_the_session: false,
            fits: |_| true,
        }
    }

    pub const fn how(self, how: How, answer: Answer) -> Operation {
        Operation { how, answer, ..self }
    }

    pub const fn then(self, then: Then) -> Operation {
        Operation { then, ..self }
    }

    pub const fn begins(self, begins: Begins) -> Operation {
        Operation { begins, ..self }
    }

    pub const fn restarts(self) -> Operation {
        Operation { restarts: true, ..self }
    }

    pub const fn before(self, before: fn(&Arc<Stage>) -> Outcome) -> Operation {
        Operation { before, ..self }
    }

    pub const fn meanwhile(self, meanwhile: fn(&Stage) -> Outcome) -> Operation {
        Operation { meanwhile, ..self }
    }

    pub const fn ends_the_session(self) -> Operation {
        Operation { ends_the_session: true, ..self }
    }

    pub const fn only(self, fits: fn(&Recipe) -> bool) -> Operation {
        Operation { fits, ..self }
    }
}
