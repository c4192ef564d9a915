//! What a guard says of itself, and whether that is so.

use zklock::zookeeper::SessionState;
use zklock::{Access, Code, Guard, GuardState, LockError, LostReason, LostSignal};

use crate::allowed::Allowed;
use crate::checks::{holds, names_the_path};
use crate::contending::Held;
use crate::scenario::{Outcome, Scenario, TIMEOUT};

/// A guard that was just handed out must be worth something: held, and with the largest token so far,
/// which is that of the claim that comes first.
pub fn is_born_well(scenario: &Scenario, guard: &Guard, allowed: &Allowed<'_>) -> Outcome {
    let mut largest = scenario.largest_token.lock();
    let token = guard.fencing_token();
    if token <= *largest {
        return Err(format!("{guard:?} comes after token {largest}"));
    }
    *largest = token;
    drop(largest);
    let session = scenario.client.state();
    let state = guard.state();
    let is_steady = session == SessionState::Connected && scenario.client.state() == session;
    let may_be_lost = allowed.short_sessions() || scenario.was_taken(token);
    match state {
        GuardState::Lost if !may_be_lost => return Err("acquired what was lost before".to_owned()),
        GuardState::Suspended if is_steady => return Err("suspended, yet connected".to_owned()),
        _ => {}
    }
    match holds(scenario, guard)? {
        Some(false) if !allowed.unforeseen_loss() && !scenario.was_taken(token) => Err(format!(
            "{guard:?} is not the one that holds: {:?}",
            scenario.tree.claims(scenario.recipe, &scenario.path)?
        )),
        _ => Ok(()),
    }
}

/// What became of a change is what its answer says, and what is held now is that.
pub fn change_tells_the_truth(
    scenario: &Scenario,
    guard: &Guard,
    changed: &Option<Result<(), LockError>>,
    to: Access,
    allowed: &Allowed<'_>,
) -> Outcome {
    *scenario.largest_token.lock() = guard.fencing_token();
    let (now, token) = (guard.access(), guard.fencing_token());
    let may_be_lost = allowed.loss() || allowed.short_sessions() || scenario.was_taken(token);
    match changed {
        // The frame at which it should have been given up was lost.
        Some(Ok(())) if !scenario.give_up.is_up() && now == Some(Access::Write) => {
            writes_alone(scenario, guard)
        }
        Some(Ok(())) | None if now == Some(to) => match holds(scenario, guard)? {
            Some(false) if !allowed.unforeseen_loss() && !scenario.was_taken(token) => {
                Err(format!("{guard:?} is not the one that holds"))
            }
            _ => Ok(()),
        },
        Some(Err(error @ LockError::NotHeld { .. })) if guard.is_lost() && may_be_lost => {
            names_the_path(scenario, error)
        }
        Some(Err(error))
            if allowed.lateness() && (error.is_timeout() || error.is_outcome_unknown()) =>
        {
            names_the_path(scenario, error)
        }
        _ => Err(format!("to {to:?}: {changed:?}, and now it is {now:?}")),
    }
}

/// Who writes waits for nobody else's claim, and is not behind any.
fn writes_alone(scenario: &Scenario, guard: &Guard) -> Outcome {
    let claims = scenario.tree.claims(scenario.recipe, &scenario.path)?;
    let token = guard.fencing_token();
    let own = claims.iter().filter(|claim| claim.token == token);
    let own = own.filter_map(|claim| claim.number()).max();
    let before = claims.iter().find(|claim| claim.token != token && claim.number() < own);
    match before {
        Some(before) if guard.state() == GuardState::Held && !scenario.was_taken(token) => {
            Err(format!("{guard:?} writes behind {before:?}"))
        }
        _ => Ok(()),
    }
}

/// Whose hold was broken knows so, and its claim is gone; or nobody knows.
pub fn is_broken(
    scenario: &Scenario,
    held: &Held,
    broken: &Result<bool, LockError>,
    allowed: &Allowed<'_>,
) -> Outcome {
    match broken {
        Ok(true) => {
            let left = scenario.tree.claim(&held.claim_path())?;
            match held.lost().get() {
                Some(LostReason::Broken)
                    if left.as_ref().is_none_or(|left| left.token != held.fencing_token()) =>
                {
                    Ok(())
                }
                lost => Err(format!("broken, and lost for {lost:?}, and there is {left:?}")),
            }
        }
        Err(error) if allowed.lateness() && (error.is_timeout() || error.is_outcome_unknown()) => {
            names_the_path(scenario, error)
        }
        broken => Err(format!("its hold was to be broken: {broken:?}")),
    }
}

/// What a guard says must fit the session at every time, also while no server answers.
pub fn fits_the_session(scenario: &Scenario, guard: &Guard, allowed: &Allowed<'_>) -> Outcome {
    let before = scenario.client.state();
    let state = guard.state();
    let session = (scenario.client.state() == before).then_some(before);
    match (session, state) {
        (Some(SessionState::Suspended), GuardState::Held)
        | (Some(SessionState::Lost), GuardState::Held | GuardState::Suspended) => {
            Err(format!("{state:?} while the session is {before:?}"))
        }
        _ => is_lost_for_a_reason(scenario, &guard.lost(), guard.fencing_token(), allowed),
    }
}

/// A guard that says so is the one that holds, but where nobody could have told it in time.
pub fn is_the_one_holder(scenario: &Scenario, guard: &Guard, allowed: &Allowed<'_>) -> Outcome {
    let is_excused = || allowed.unforeseen_loss() || scenario.was_taken(guard.fencing_token());
    match holds(scenario, guard)? {
        Some(false) if !is_excused() => Err(format!("{guard:?} is not the one that holds")),
        _ => Ok(()),
    }
}

/// The reason for which it is lost must have come to pass; not to be lost needs none.
fn is_lost_for_a_reason(
    scenario: &Scenario,
    signal: &LostSignal,
    token: i64,
    allowed: &Allowed<'_>,
) -> Outcome {
    match signal.get() {
        Some(LostReason::Deleted) if !scenario.was_taken(token) => {
            Err("lost, because somebody deleted it, which nobody did".to_owned())
        }
        Some(LostReason::Session) if !allowed.loss() && !allowed.short_sessions() => {
            Err("lost with its session, which was not".to_owned())
        }
        _ => Ok(()),
    }
}

/// What a release has told.
pub struct Released {
    path: String,
    token: i64,
    signal: LostSignal,
    /// Why it was lost before.
    before: Option<LostReason>,
    result: Result<(), LockError>,
}

/// Releases, and waits for the end of it.
pub fn release(scenario: &Scenario, guard: Held) -> Released {
    let (path, token) = (guard.claim_path().to_string(), guard.fencing_token());
    let signal = guard.lost();
    let before = signal.get();
    scenario.releasing.raise();
    let result = guard.release().within(TIMEOUT).wait();
    scenario.released.raise();
    Released { path, token, signal, before, result }
}

impl Released {
    /// Whether the release tells the truth: released is released, by itself; and what it says was
    /// lost or deleted, was.
    pub fn is_true(&self, scenario: &Scenario, allowed: &Allowed<'_>) -> Outcome {
        self.has_its_reason(scenario, allowed)?;
        let taken = scenario.was_taken(self.token);
        match &self.result {
            Ok(()) if scenario.released_in_silence.is_up() => {
                Err("released before anybody could have said so".to_owned())
            }
            Ok(()) => self.is_gone_by_itself(scenario, allowed),
            Err(error) if error.is_outcome_unknown() => Err(format!("release: {error}")),
            Err(error @ LockError::Lost { reason: LostReason::Deleted, .. }) if taken => {
                names_the_path(scenario, error)
            }
            Err(error @ LockError::Lost { reason: LostReason::Broken, .. })
                if allowed.breaking() =>
            {
                names_the_path(scenario, error)
            }
            Err(error @ LockError::Lost { reason: LostReason::Session, .. })
                if allowed.loss() || allowed.short_sessions() =>
            {
                names_the_path(scenario, error)
            }
            Err(error) => Err(format!("release: {error}")),
        }
    }

    fn is_gone_by_itself(&self, scenario: &Scenario, allowed: &Allowed<'_>) -> Outcome {
        let left = scenario.tree.claim(&self.path)?.is_some_and(|left| left.token == self.token);
        if left {
            return Err(format!("{} is released and still there", self.path));
        }
        let was_taken = scenario.was_taken(self.token);
        // It may have had another claim by then.
        let is_excused = allowed.several_claims() || allowed.unknown_deletion();
        if was_taken && !allowed.robbery() && !is_excused {
            return Err("released what somebody had deleted".to_owned());
        }
        let (asked, refused, done) = scenario.deletions(&self.path);
        // Of several, it may be another's deletion that was swallowed.
        let several = allowed.several_claims();
        let swallowed = if several { 0 } else { allowed.swallowed_deletions() };
        let lost = asked.saturating_sub(refused + done + swallowed);
        if done == 0 && lost == 0 && !was_taken {
            return Err(format!("released, by no deletion that {} has come to", self.path));
        }
        Ok(())
    }

    fn has_its_reason(&self, scenario: &Scenario, allowed: &Allowed<'_>) -> Outcome {
        is_lost_for_a_reason(scenario, &self.signal, self.token, allowed)?;
        let after = self.signal.get();
        let fits = match (after, &self.result) {
            (Some(LostReason::Released), _) => self.before.is_none(),
            (Some(after), Err(LockError::Lost { reason, .. })) => *reason == after,
            _ => false,
        };
        let is_final = self.before.is_none() || self.before == after;
        if fits && is_final {
            return Ok(());
        }
        let (before, result) = (self.before, &self.result);
        Err(format!("lost for {before:?} before its release, for {after:?} after it: {result:?}"))
    }
}

/// Whether a guard knows that its client was closed, and dropping it does no harm.
pub fn is_closed(guard: Held) -> Outcome {
    let (state, reason) = (guard.state(), guard.lost().get());
    match (state, reason) {
        (GuardState::Lost, Some(LostReason::Session)) => Ok(()),
        _ => Err(format!("{state:?} for {reason:?} though its client is closed")),
    }
}

/// Whether a write that was to happen only while the lock is held tells the truth: done, not done, or
/// one that nobody knows of.
pub fn write_tells_the_truth(scenario: &Scenario, guard: &Guard, allowed: &Allowed<'_>) -> Outcome {
    let path = scenario.data_path();
    let write =
        zklock::zookeeper::Op::Set { path: path.clone(), data: b"written".to_vec(), version: None };
    let result = scenario.client.multi(&[guard.check(), write]).within(TIMEOUT).wait();
    // An outcome that is unknown to the client may still be on its way to the server.
    let version = scenario.tree.version(&path)?;
    let may_be_refused = scenario.was_taken(guard.fencing_token());
    let may_be_lost = allowed.loss() || allowed.short_sessions();
    match (result, version) {
        (Ok(_), Some(1)) => Ok(()),
        (Err(error), Some(0 | 1)) if error.is_outcome_unknown() && allowed.any_fault() => Ok(()),
        (Err(error), Some(0)) if error.code() == Code::NO_NODE && may_be_refused => Ok(()),
        (Err(error), Some(0)) if error.code() == Code::SESSION_EXPIRED && may_be_lost => Ok(()),
        (result, version) => Err(format!("the write says {result:?}, the znode {version:?}")),
    }
}
