//! What may become of a run, by what goes wrong in it.

use std::time::Duration;

use crate::fault::{Fault, Strike};
use crate::foreign::Interference;
use crate::operation::{Begins, How, Operation, Then};
use crate::recipe::Recipe;
use crate::step::{Kind, Side};

#[derive(Clone, Copy)]
pub struct Allowed<'a> {
    recipe: &'static Recipe,
    operation: &'static Operation,
    strikes: &'a [Strike],
}

impl<'a> Allowed<'a> {
    pub fn by(
        recipe: &'static Recipe,
        operation: &'static Operation,
        strikes: &'a [Strike],
    ) -> Allowed<'a> {
        Allowed { recipe, operation, strikes }
    }

    fn any(&self, is_so: impl Fn(Fault) -> bool) -> bool {
        self.strikes.iter().any(|strike| is_so(strike.fault))
    }

    /// Something goes wrong at all.
    pub fn any_fault(&self) -> bool {
        self.any(|fault| !matches!(fault, Fault::Interfered(..)))
    }

    /// Frames are kept back until the caller's deadline has passed.
    pub fn lateness(&self) -> bool {
        self.any(Fault::is_late)
    }

    /// The session is lost.
    pub fn loss(&self) -> bool {
        self.operation.ends_the_session || self.any(Fault::ends_the_session)
    }

    /// The hold has several claims, one after the other or beside each other.
    pub fn several_claims(&self) -> bool {
        self.recipe.has_several()
            || matches!(self.operation.how, How::Change(_) | How::GiveUpTheUpgrade)
    }

    /// A client of another kind is there.
    pub fn interference(&self) -> bool {
        self.any(|fault| matches!(fault, Fault::Interfered(..)))
    }

    /// Another breaks the hold.
    pub fn breaking(&self) -> bool {
        self.operation.then == Then::Broken
    }

    /// The session is lost at a time that no client can foresee.
    pub fn unforeseen_loss(&self) -> bool {
        self.any(Fault::is_unforeseeable)
    }

    /// The session is so short that a very busy machine can lose it.
    pub fn short_sessions(&self) -> bool {
        self.operation.closes || self.any(Fault::has_short_sessions)
    }

    /// Others may claim where they find a claim of ours.
    pub fn usurpation(&self) -> bool {
        self.any(|fault| matches!(fault, Fault::Interfered(_, Interference::ReplacesClaim)))
    }

    /// Our claim's name is another's by the time that it is deleted, and nobody could have known: in a
    /// queue, where names are given once; elsewhere after the last look at it.
    pub fn robbery(&self) -> bool {
        let numbered = self.recipe.is_numbered();
        self.strikes.iter().any(|Strike { step, fault }| match fault {
            Fault::Interfered(_, Interference::ReplacesClaim) if numbered => true,
            Fault::Interfered(..) if numbered => false,
            Fault::Interfered(side, interference) => {
                let looked = matches!(
                    (step.kind, side),
                    (Kind::Delete, Side::Request) | (Kind::GetData, Side::Reply)
                );
                // By the time that another acts on the reply, its claim may be looked for and deleted.
                let is_lost = (step.kind, *side) == (Kind::Create, Side::Reply)
                    && self.operation.how == How::GiveUp
                    && self.operation.begins == Begins::WithTheDisturbance;
                (looked || is_lost) && interference.takes_the_claim()
            }
            _ => false,
        })
    }

    /// A deletion of the claim has an unknown outcome, so that a claim which is gone by the next look
    /// counts as deleted by it.
    pub fn unknown_deletion(&self) -> bool {
        let of_a_deletion = |strike: &Strike| {
            self.recipe.is_deletion(strike.step.kind)
                && !matches!(strike.fault, Fault::Interfered(..))
        };
        self.operation.loses_deletions || self.strikes.iter().any(of_a_deletion)
    }

    /// How many requests for a deletion never come to the server.
    pub fn swallowed_deletions(&self) -> usize {
        let swallowed = |strike: &&Strike| {
            let Strike { step, fault } = strike;
            let is_request = step.side == Side::Request && fault.swallows();
            self.recipe.is_deletion(step.kind) && is_request
        };
        self.strikes.iter().filter(swallowed).count()
    }

    /// Short where the session's end is waited for; else so long that no pause of a busy machine ends it.
    pub fn session_timeout(&self) -> Duration {
        Duration::from_secs(match self {
            _ if self.any(Fault::restarts_the_server) => 60,
            _ if self.short_sessions() => 4,
            _ => 15,
        })
    }
}
