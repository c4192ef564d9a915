//! A client of another kind: it knows nothing of locks, and writes, deletes and makes anew what it
//! finds on a lock's path.

use crate::scenario::{Outcome, Scenario};
use crate::tree::{NO_NODE, Stranger};

/// What it does, to the claim of the client that is tested or to the directory that claims are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interference {
    /// Other data.
    WritesClaim,
    /// The same data once more.
    TouchesClaim,
    DeletesClaim,
    /// Deletes the claim, and makes one of the same name.
    ReplacesClaim,
    WritesDirectory,
    /// With the claim in it. One that others have claims in stays.
    DeletesDirectory,
    /// Deletes it as well, and makes one of the same name.
    ReplacesDirectory,
}

impl Interference {
    pub const ALL: [Interference; 7] = [
        Interference::WritesClaim,
        Interference::TouchesClaim,
        Interference::DeletesClaim,
        Interference::ReplacesClaim,
        Interference::WritesDirectory,
        Interference::DeletesDirectory,
        Interference::ReplacesDirectory,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Interference::WritesClaim => "claim written",
            Interference::TouchesClaim => "claim touched",
            Interference::DeletesClaim => "claim deleted",
            Interference::ReplacesClaim => "claim replaced",
            Interference::WritesDirectory => "directory written",
            Interference::DeletesDirectory => "directory deleted",
            Interference::ReplacesDirectory => "directory replaced",
        }
    }

    /// Whether the claim is gone by it.
    pub fn takes_the_claim(self) -> bool {
        use Interference::{DeletesClaim, DeletesDirectory, ReplacesClaim, ReplacesDirectory};
        matches!(self, DeletesClaim | ReplacesClaim | DeletesDirectory | ReplacesDirectory)
    }

    /// Whether there is nothing to do where there is no claim.
    pub fn needs_a_claim(self) -> bool {
        use Interference::{DeletesClaim, ReplacesClaim, TouchesClaim, WritesClaim};
        matches!(self, WritesClaim | TouchesClaim | DeletesClaim | ReplacesClaim)
    }
}

impl Scenario {
    pub fn interfere(&self, interference: Interference) -> Outcome {
        let directory = self.recipe.directory_of(&self.path);
        match interference {
            Interference::WritesClaim => {
                self.to_own_claim(|path| self.tree.write(path, b"not a claim"))
            }
            Interference::TouchesClaim => self.to_own_claim(|path| {
                let data = self.tree.data(path)?;
                self.tree.write(path, &data)
            }),
            Interference::DeletesClaim => self.take_own_claim(),
            Interference::ReplacesClaim => {
                let Some(own) = self.own_claim()? else { return Ok(()) };
                self.taken.lock().push(own.token);
                // Whoever is refused by the usurper from now on waits here until it can be made to leave.
                let mut strangers = self.strangers.lock();
                self.usurped.raise();
                match Stranger::claim_in_place_of(&self.server, &own.path, b"not a claim") {
                    Ok(usurper) => strangers.push(usurper),
                    // Its owner was faster.
                    Err(error) if error.code() == Some(NO_NODE) => {}
                    Err(error) => return Err(format!("a claim is replaced: {error}")),
                }
                Ok(())
            }
            Interference::WritesDirectory => self.tree.write(directory, b"not a lock"),
            Interference::DeletesDirectory => {
                self.take_own_claim()?;
                self.tree.delete_if_empty(directory).map(drop)
            }
            Interference::ReplacesDirectory => {
                self.take_own_claim()?;
                let deleted = self.tree.delete_if_empty(directory)?;
                if deleted { self.tree.make(directory) } else { Ok(()) }
            }
        }
    }

    fn to_own_claim(&self, act: impl FnOnce(&str) -> Outcome) -> Outcome {
        self.own_claim()?.map_or(Ok(()), |own| act(&own.path))
    }

    /// Deletes the claim, and remembers that its owner did not.
    fn take_own_claim(&self) -> Outcome {
        let Some(own) = self.own_claim()? else { return Ok(()) };
        self.taken.lock().push(own.token);
        self.tree.delete(&own.path)
    }

    /// Whether somebody else has deleted a claim of the hold with that token.
    pub fn was_taken(&self, token: i64) -> bool {
        self.taken.lock().contains(&token)
    }

    /// Who has put a claim in the place of one leaves as soon as it is waited for.
    pub fn usurpers_give_way(self: &std::sync::Arc<Self>) {
        let refusals = self.recipe.refusals(&self.directory);
        self.at(refusals, |scenario| {
            if scenario.usurped.is_up() { scenario.strangers_leave() } else { Ok(()) }
        });
    }
}
