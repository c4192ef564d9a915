//! What has to be so, whatever went wrong.

use zklock::{Code, Guard, GuardState, Lock};

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

/// A guard that was just handed out must be worth something. `may_be_lost`: whether its session is so
/// short that a busy machine can have lost it since.
pub fn is_the_one_holder(stage: &Stage, guard: &Guard, may_be_lost: bool) -> Outcome {
    if guard.is_lost() && !may_be_lost {
        return Err("acquired what was lost before".to_owned());
    }
    match holds(stage, guard)? {
        Some(false) => Err(format!(
            "{guard:?} is not the one that holds: {:?}",
            stage.tree.claims(stage.recipe, &stage.path)?
        )),
        _ => Ok(()),
    }
}

/// Whether the caller was told what it should be. `may_be_late`: whether frames are kept back until
/// its deadline has passed.
pub fn is_told(stage: &Stage, told: &Told, answer: Answer, may_be_late: bool) -> Outcome {
    match (told, answer) {
        (Told::Failed(error), _) if may_be_late && error.is_timeout() => {
            names_the_path(stage, error)
        }
        // The frame at which it should have given up was lost.
        (Told::Held(_), Answer::Nothing) if !stage.give_up.is_up() => Ok(()),
        (Told::Taken, Answer::Taken) => {
            let session = stage.session().id();
            let mut claims = stage.tree.claims(stage.recipe, &stage.path)?;
            claims.retain(|claim| claim.session == session);
            if claims.is_empty() { Ok(()) } else { Err(format!("taken, yet it left {claims:?}")) }
        }
        (Told::Held(_), Answer::Held) | (Told::Nothing, Answer::Nothing) => Ok(()),
        _ => Err(format!("expected {answer:?}: {told:?}")),
    }
}

fn names_the_path(stage: &Stage, error: &zklock::Error) -> Outcome {
    if error.to_string().contains(&stage.path) {
        Ok(())
    } else {
        Err(format!("an error without the path: {error}"))
    }
}

/// What a release has told.
pub struct Released {
    pub path: String,
    pub token: i64,
    pub result: zklock::Result<()>,
}

/// Releases, and waits for the end of it.
pub fn release(guard: Guard) -> Released {
    let (path, token) = (guard.path().to_owned(), guard.fencing_token());
    Released { path, token, result: guard.release().wait_timeout(PATIENCE) }
}

/// Whether the release tells the truth: released is released, and nothing is called lost that was
/// not. `may_be_lost`: whether the session has ended. `deleted`: whether somebody deleted the claim.
pub fn is_released(
    stage: &Stage,
    released: &Released,
    may_be_lost: bool,
    deleted: bool,
) -> Outcome {
    let left = stage.tree.claim(&released.path)?.is_some_and(|left| left.czxid == released.token);
    match &released.result {
        Ok(()) if left => Err(format!("{} is released and still there", released.path)),
        Ok(()) if deleted => Err("released what somebody had deleted".to_owned()),
        Ok(()) => Ok(()),
        Err(error) if error.code() == Code::NO_NODE && deleted => names_the_path(stage, error),
        Err(error) if error.code() == Code::SESSION_EXPIRED && may_be_lost => {
            names_the_path(stage, error)
        }
        Err(error) => Err(format!("release: {error}")),
    }
}

/// Another client gets the lock, and after it this one again. `may_be_lost`: as above; then it is
/// asked for once more.
pub fn goes_on(stage: &Stage, other: &Lock, may_be_lost: bool) -> Outcome {
    const ROUNDS: usize = 5;
    for (who, lock) in [("another", other), ("the same", &stage.lock)] {
        let wrong = |error: zklock::Error| format!("{who} client afterwards: {error}");
        for round in 1..=ROUNDS {
            let guard = lock.acquire_within(PATIENCE).wait().map_err(wrong)?;
            let claims = stage.tree.claims(stage.recipe, &stage.path)?;
            let first = claims.first().map(|first| first.czxid);
            if first != Some(guard.fencing_token()) && guard.state() == GuardState::Held {
                return Err(format!("{who} client afterwards: {guard:?} among {claims:?}"));
            }
            match guard.release().wait_timeout(PATIENCE) {
                Err(error)
                    if may_be_lost && round < ROUNDS && error.code() == Code::SESSION_EXPIRED => {}
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
    let own = |path: &String| path.starts_with(&stage.directory);
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
