//! What has to be so, whatever went wrong.

use zklock::{Code, Guard, GuardState, Lock};

use crate::allowed::Allowed;
use crate::drive::Told;
use crate::operation::Answer;
use crate::stage::{Outcome, PATIENCE, Stage};

/// Whether a guard that says `Held` is the one that holds. `None` when it does not say so.
///
/// The guard is asked after the tree: what it says then, it could have said before.
pub fn holds(stage: &Stage, guard: &Guard) -> Outcome<Option<bool>> {
    let claims = stage.tree.claims(stage.recipe, &stage.path)?;
    let session = stage.session().id();
    if guard.state() != GuardState::Held {
        return Ok(None);
    }
    Ok(Some(claims.first().is_some_and(|first| {
        first.path == guard.path()
            && first.czxid == guard.fencing_token()
            && first.session == session
    })))
}

/// Whether the caller was told what it should be.
pub fn is_told(stage: &Stage, told: &Told, answer: Answer, allowed: &Allowed<'_>) -> Outcome {
    match (told, answer) {
        (Told::Failed(error), Answer::TimedOut) if error.is_timeout() => {
            names_the_path(stage, error)
        }
        (Told::Failed(error), _) if allowed.lateness() && error.is_timeout() => {
            names_the_path(stage, error)
        }
        (Told::Failed(error), Answer::Closed) if error.code() == Code::INVALID_STATE => {
            names_the_path(stage, error)
        }
        // The frame at which it should have given up was lost.
        (Told::Held(_), Answer::Nothing | Answer::Closed) if !stage.give_up.is_up() => Ok(()),
        (Told::Taken, Answer::Taken) => leaves_nothing(stage),
        (Told::Taken, Answer::Held) if allowed.usurpation() => leaves_nothing(stage),
        (Told::Held(_), Answer::Held) | (Told::Nothing, Answer::Nothing) => Ok(()),
        _ => Err(format!("expected {answer:?}: {told:?}")),
    }
}

/// Who was told that the lock is taken has no claim.
fn leaves_nothing(stage: &Stage) -> Outcome {
    match stage.own_claim()? {
        Some(left) => Err(format!("taken, yet it left {left:?}")),
        None => Ok(()),
    }
}

pub fn names_the_path(stage: &Stage, error: &zklock::Error) -> Outcome {
    if error.to_string().contains(&stage.path) {
        Ok(())
    } else {
        Err(format!("an error without the path: {error}"))
    }
}

/// Others get the lock, one after the other; once more where a busy machine can lose so short a session, or
/// where the operation's own deletion can come as late as this and take another claim for its own.
pub fn goes_on(stage: &Stage, others: &[(&str, &Lock)], allowed: &Allowed) -> Outcome {
    const ROUNDS: usize = 5;
    for (who, lock) in others {
        let wrong = |error: zklock::Error| format!("{who} client afterwards: {error}");
        for round in 1..=ROUNDS {
            let guard = lock.acquire_within(PATIENCE).wait().map_err(wrong)?;
            let claims = stage.tree.claims(stage.recipe, &stage.path)?;
            let first = claims.first().map(|first| first.czxid);
            if first != Some(guard.fencing_token()) && guard.state() == GuardState::Held {
                return Err(format!("{who} client afterwards: {guard:?} among {claims:?}"));
            }
            let largest =
                std::mem::replace(&mut *stage.largest_token.lock(), guard.fencing_token());
            if guard.fencing_token() <= largest {
                return Err(format!("{who} client afterwards: {guard:?} after token {largest}"));
            }
            match guard.release().wait_timeout(PATIENCE) {
                Err(error)
                    if round < ROUNDS
                        && match error.code() {
                            Code::SESSION_EXPIRED => allowed.short_sessions(),
                            Code::NO_NODE => allowed.robbery(),
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
pub fn nothing_is_left(stage: &Stage) -> Outcome {
    let mut left = Vec::new();
    let looked = stage.until("nothing is left", || {
        left = leftovers(stage).unwrap_or_else(|trouble| vec![trouble]);
        left.is_empty()
    });
    looked.map_err(|_| format!("left behind: {left:?}"))
}

fn leftovers(stage: &Stage) -> Outcome<Vec<String>> {
    let trouble = |error: zklock_testing::Error| error.to_string();
    let below = format!("{}/", stage.directory);
    let own = |path: &String| path.starts_with(&below) || *path == stage.directory;
    let mut left: Vec<String> = Vec::new();
    for (session, paths) in stage.server.ephemerals().map_err(trouble)? {
        left.extend(
            paths.iter().filter(|path| own(path)).map(|path| format!("{path} of {session:#x}")),
        );
    }
    for (path, sessions) in stage.server.watches().map_err(trouble)? {
        if own(&path) {
            left.push(format!("watches on {path} of {sessions:x?}"));
        }
    }
    Ok(left)
}
