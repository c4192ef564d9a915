//! An operation: what a program does with a lock, and what others do meanwhile.

use std::sync::Arc;

use zklock::Access;

use crate::recipe::Recipe;
use crate::scenario::{Outcome, Scenario};
use crate::step::{Kind, Step};

pub struct Operation {
    pub name: &'static str,
    pub how: How,
    pub answer: Answer,
    pub then: Then,
    pub begins: Begins,
    /// Whether the server is restarted at its steps, too, which takes longest of all.
    pub restarts: bool,
    /// Sets the scene, and rules for what happens on the way.
    pub before: fn(&Arc<Scenario>) -> Outcome,
    /// Runs beside the operation.
    pub meanwhile: fn(&Scenario) -> Outcome,
    /// Whether the client's session ends in it even when nothing goes wrong.
    pub ends_the_session: bool,
    /// Whether the client is closed in it.
    pub closes: bool,
    /// Whether the outcome of its deletion is lost on the way.
    pub loses_deletions: bool,
    /// Whether `make test`, too, looks for a second fault in its recoveries from a first.
    pub pairs: bool,
    pub fits: fn(&Recipe) -> bool,
    /// Of recipes whose requests are those of another, whether `make test`, too, plays it.
    pub is_sample: bool,
    /// Of those that are variants of others, whether it is for locks that are shared, too.
    also_shared: bool,
}

/// How the lock is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Acquire,
    Try,
    /// Until the scenario says to give it up.
    GiveUp,
    /// The caller comes back for the answer when the session that got it is over.
    ComeBackLate,
    /// Within a deadline that passes.
    TimeOut,
    /// Until the scenario says to close the client.
    Close,
    /// What is held is turned into that.
    Change(Access),
    /// What is held is upgraded, until the scenario says to give it up.
    GiveUpTheUpgrade,
    /// Another's hold is broken.
    Break,
}

/// What the caller is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Held,
    Taken,
    /// Nobody is there any more to be told.
    Nothing,
    TimedOut,
    Closed,
    /// What it has is that.
    Changed(Access),
    /// Another's hold is over.
    Broken,
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
    /// Dropped, and the client closed at once.
    DropAndClose,
    /// Held while the client is closed.
    Close,
    /// A write that is to happen only while it is held; then released.
    Write,
    /// Its owner acquires it again, and releases both.
    Again,
    /// Another has it broken.
    Broken,
}

/// From where on an operation's steps are its own: those before are the same as another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begins {
    AtOnce,
    /// With the first thing that happens on the way.
    WithTheDisturbance,
    /// When the caller has its answer.
    WithTheAnswer,
    /// When the first of two faults has come.
    WithTheFault,
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
            before: |scenario| scenario.create_parents(),
            meanwhile: |_| Ok(()),
            ends_the_session: false,
            closes: false,
            loses_deletions: false,
            pairs: false,
            is_sample: false,
            fits: |_| true,
            also_shared: false,
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

    pub const fn before(self, before: fn(&Arc<Scenario>) -> Outcome) -> Operation {
        Operation { before, ..self }
    }

    pub const fn meanwhile(self, meanwhile: fn(&Scenario) -> Outcome) -> Operation {
        Operation { meanwhile, ..self }
    }

    pub const fn ends_the_session(self) -> Operation {
        Operation { ends_the_session: true, ..self }
    }

    pub const fn closes(self) -> Operation {
        Operation { closes: true, ends_the_session: true, ..self }
    }

    pub const fn loses_deletions(self) -> Operation {
        Operation { loses_deletions: true, ..self }
    }

    pub const fn pairs(self) -> Operation {
        Operation { pairs: true, ..self }
    }

    pub const fn sample(self) -> Operation {
        Operation { is_sample: true, ..self }
    }

    pub const fn also_shared(self) -> Operation {
        Operation { also_shared: true, ..self }
    }

    pub const fn only(self, fits: fn(&Recipe) -> bool) -> Operation {
        Operation { fits, ..self }
    }
}

impl Operation {
    /// Whether the step is the operation's own, and not that of the watch which every claim gets that
    /// is held for long: how long these are held is up to the machine.
    pub fn owns(&self, step: &Step) -> bool {
        let of_a_watch = matches!(step.kind, Kind::GetDataAndWatch | Kind::Event);
        let is_watched = matches!(self.then, Then::Hold | Then::Broken);
        step.acquiring || !of_a_watch || is_watched || self.how == How::GiveUp
    }

    pub fn is_for(&self, recipe: &Recipe) -> bool {
        let is_worth_it = !recipe.is_variant() || self.also_shared || self.is_main();
        let is_possible = recipe.is_tried() || self.how != How::Try;
        (self.fits)(recipe) && is_worth_it && is_possible
    }

    /// Whether `make test`, too, plays it with that recipe.
    pub fn is_chosen_for(&self, recipe: &Recipe) -> bool {
        match recipe.is_twin() {
            true => self.is_sample,
            false => !recipe.has_several() || self.is_sample || self.pairs,
        }
    }

    /// Whether it is one of those that others are variants of.
    pub fn is_main(&self) -> bool {
        self.restarts || self.pairs
    }

    /// Whether its last steps are taken when its caller has gone.
    pub fn is_left_alone(&self) -> bool {
        matches!(self.how, How::GiveUp | How::TimeOut)
            || matches!(self.then, Then::Drop | Then::DropAndClose)
    }
}
