//! What has to be so, whatever went wrong.

use zklock::{Guard, GuardState, LockError, LostReason};

use crate::allowed::Allowed;
use crate::contending::Contending;
use crate::drive::Told;
use crate::guarding;
use crate::operation::Answer;
use crate::scenario::{Outcome, Scenario, TIMEOUT};
use crate::tree::Claim;

/// Whether a guard that says `Held` is the one that holds. `None` when it does not say so.
///
/// The guard is asked after the tree: what it says then, it could have said before.
pub fn holds(scenario: &Scenario, guard: &Guard) -> Outcome<Option<bool>> {
    let claims = scenario.tree.claims(scenario.recipe, &scenario.path)?;
    let session = scenario.session().id();
    if guard.state() != GuardState::Held {
        return Ok(None);
    }
    let counts = |claim: &&Claim| {
        claim.path == *guard.claim_path() || scenario.recipe.is_kept_out_by(&claim.path)
    };
    // Where a claim is in the place of another, somebody may have written over what says its token.
    let has_its_token =
        |first: &Claim| first.token == guard.fencing_token() || scenario.recipe.may_change();
    Ok(Some(claims.iter().find(counts).is_some_and(|first| {
        first.path == *guard.claim_path()
            && has_its_token(first)
            && first.session == session
            && first.znodes == scenario.recipe.znodes()
    })))
}

/// Whether the caller was told what it should be.
pub fn is_told(scenario: &Scenario, told: &Told, answer: Answer, allowed: &Allowed<'_>) -> Outcome {
    match (told, answer) {
        (Told::Failed(error), Answer::TimedOut) if error.is_timeout() => {
            names_the_path(scenario, error)
        }
        (Told::Failed(error), _) if allowed.lateness() && error.is_timeout() => {
            names_the_path(scenario, error)
        }
        (Told::Failed(error @ LockError::Closed { .. }), Answer::Closed) => {
            names_the_path(scenario, error)
        }
        // The frame at which it should have given up was lost.
        (Told::Held(_), Answer::Nothing | Answer::Closed) if !scenario.give_up.is_up() => Ok(()),
        (Told::Changed(held, changed), Answer::Changed(to)) => {
            guarding::change_tells_the_truth(scenario, held, changed, to, allowed)
        }
        (Told::Broke(held, broken), Answer::Broken) => {
            guarding::is_broken(scenario, held, broken, allowed)
        }
        (Told::Taken, Answer::Taken) => leaves_nothing(scenario),
        (Told::Taken, Answer::Held) if allowed.usurpation() => leaves_nothing(scenario),
        (Told::Held(_), Answer::Held) | (Told::Nothing, Answer::Nothing) => Ok(()),
        _ => Err(format!("expected {answer:?}: {told:?}")),
    }
}

/// Who was told that the lock is taken has no claim.
fn leaves_nothing(scenario: &Scenario) -> Outcome {
    match scenario.own_claim()? {
        Some(left) => Err(format!("taken, yet it left {left:?}")),
        None => Ok(()),
    }
}

pub fn names_the_path(scenario: &Scenario, error: &LockError) -> Outcome {
    if error.to_string().contains(&scenario.path) {
        Ok(())
    } else {
        Err(format!("an error without the path: {error}"))
    }
}

/// Others get the lock, one after the other; once more where a busy machine can lose so short a session, or
/// where the operation's own deletion can come as late as this and take another claim for its own.
pub fn goes_on(scenario: &Scenario, others: &[(&str, &Contending)], allowed: &Allowed) -> Outcome {
    const ROUNDS: usize = 5;
    for (who, lock) in others {
        let wrong = |error: LockError| format!("{who} client afterwards: {error}");
        for round in 1..=ROUNDS {
            let guard = lock.acquire().within(TIMEOUT).wait().map_err(wrong)?;
            let claims = scenario.tree.claims(scenario.recipe, &scenario.path)?;
            let token = guard.fencing_token();
            let counts = |claim: &&Claim| {
                claim.token == token || scenario.recipe.is_kept_out_by(&claim.path)
            };
            let is_first = claims.iter().find(counts).is_some_and(|first| first.token == token);
            // Who was robbed may not know yet.
            if !is_first && guard.state() == GuardState::Held && !allowed.robbery() {
                return Err(format!("{who} client afterwards: {guard:?} among {claims:?}"));
            }
            let largest =
                std::mem::replace(&mut *scenario.largest_token.lock(), guard.fencing_token());
            if guard.fencing_token() <= largest {
                return Err(format!("{who} client afterwards: {guard:?} after token {largest}"));
            }
            match guard.release().within(TIMEOUT).wait() {
                Err(LockError::Lost { reason, .. })
                    if round < ROUNDS
                        && match reason {
                            LostReason::Session => allowed.short_sessions(),
                            LostReason::Deleted => allowed.robbery(),
                            _ => false,
                        } => {}
                released => {
                    released.map_err(wrong)?;
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Nothing of the operation is left on the server.
pub fn nothing_is_left(scenario: &Scenario) -> Outcome {
    let mut left = Vec::new();
    let looked = scenario.until("nothing is left", || {
        left = leftovers(scenario).unwrap_or_else(|trouble| vec![trouble]);
        left.is_empty()
    });
    looked.map_err(|_| format!("left behind: {left:?}"))
}

fn leftovers(scenario: &Scenario) -> Outcome<Vec<String>> {
    let trouble = |error: zklock_testing::Error| error.to_string();
    let below = format!("{}/", scenario.directory);
    let own = |path: &String| path.starts_with(&below) || *path == scenario.directory;
    let mut left: Vec<String> = Vec::new();
    for (session, paths) in scenario.server.ephemerals().map_err(trouble)? {
        left.extend(
            paths.iter().filter(|path| own(path)).map(|path| format!("{path} of {session:#x}")),
        );
    }
    // Where one holds at a time, the directory of claims may be watched for as long as nobody touches it.
    let recipe = scenario.recipe;
    let is_watched = recipe.watches_the_directory();
    let second = recipe.second(&scenario.path);
    let is_directory = |path: &str| path == scenario.path || second.as_deref() == Some(path);
    for (path, sessions) in scenario.server.watches().map_err(trouble)? {
        if own(&path) && !(is_watched && is_directory(&path)) {
            left.push(format!("watches on {path} of {sessions:x?}"));
        }
    }
    Ok(left)
}
