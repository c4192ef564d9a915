//! Runs a case: sets the scene, arms its faults, does what the operation says, and checks everything.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use zklock::{LockError, LostReason};

use crate::allowed::Allowed;
use crate::armed::Armed;
use crate::bench::Bench;
use crate::case::Case;
use crate::checks;
use crate::contending::Held;
use crate::drive::{self, Told};
use crate::flag::Flag;
use crate::foreign::Interference;
use crate::guarding;
use crate::operation::{Begins, Operation, Then};
use crate::operations;
use crate::scenario::{LOOK_AGAIN, Outcome, Scenario, TIMEOUT};
use crate::step::{Census, Step};

/// How much time an operation has whose frames come late, until they do.
const DEADLINE: Duration = Duration::from_millis(1_200);
/// How long steps are waited for that nobody asks for.
const LINGER: Duration = Duration::from_secs(2);

/// A case on its scenario.
struct Run<'a> {
    scenario: &'a Arc<Scenario>,
    operation: &'static Operation,
    allowed: Allowed<'a>,
    deadline: Duration,
}

impl Bench {
    /// Runs the case and counts the steps: all of them, or those that follow its faults.
    pub fn count(&self, case: &Case) -> Outcome<Vec<Step>> {
        let begins = match case.strikes.len() {
            0 => case.operation.begins,
            _ => Begins::WithTheFault,
        };
        let mut steps = Vec::new();
        self.play(case, TIMEOUT, |run| {
            let census = Census::begin(run.scenario);
            let armed = census.watch(Armed::arm(run.scenario, &case.strikes, TIMEOUT));
            run.perform(armed)?;
            steps = census.end(begins);
            Ok(())
        })?;
        Ok(steps)
    }

    /// Whether the steps were reached. Those that follow a fault may come in another order than in the
    /// clean run, but they come.
    pub fn run(&self, case: &Case, attempt: u32) -> Outcome<bool> {
        let allowed = Allowed::by(case.recipe, case.operation, &case.strikes);
        let deadline = if allowed.lateness() { DEADLINE * attempt } else { TIMEOUT };
        let mut reached = false;
        self.play(case, deadline, |run| {
            let armed = Armed::arm(run.scenario, &case.strikes, deadline);
            reached = run.perform(&armed)?;
            Ok(())
        })?;
        Ok(reached)
    }

    fn play(
        &self,
        case: &Case,
        deadline: Duration,
        perform: impl FnOnce(&Run<'_>) -> Outcome,
    ) -> Outcome {
        let operation = case.operation;
        let allowed = Allowed::by(case.recipe, operation, &case.strikes);
        let scenario = self.scenario(case.recipe, allowed.session_timeout(), deadline)?;
        let run = Run { scenario: &scenario, operation, allowed, deadline };
        let acquainted = match case.recipe.is_announced() {
            true => operations::wait_once(&scenario),
            false => Ok(()),
        };
        let ready = acquainted.and_then(|()| (operation.before)(&scenario));
        let outcome = ready.and_then(|()| perform(&run)).and_then(|()| {
            scenario.proxy.clear_rules();
            run.aftermath()
        });
        finish(&scenario, outcome)
    }
}

impl Run<'_> {
    /// Does it, and gives whether the faults came.
    fn perform(&self, armed: &Armed) -> Outcome<bool> {
        let mut reached = false;
        let told = self.ask(armed, || {
            reached = armed.is_reached();
            armed.answered();
        })?;
        self.follow_up(told, armed)?;
        Ok(reached || armed.is_reached())
    }

    /// Asks for the lock while others do what the operation says.
    fn ask(&self, armed: &Armed, mut answered: impl FnMut()) -> Outcome<Told> {
        let Run { scenario, operation, .. } = self;
        thread::scope(|scope| {
            let meanwhile = scope.spawn(|| (operation.meanwhile)(scenario));
            let is_reached = || armed.is_reached();
            let told = drive::ask(scenario, operation, self.deadline, &is_reached);
            scenario.answered.raise();
            answered();
            let meanwhile =
                meanwhile.join().map_err(|_| "what goes on beside panicked".to_owned())?;
            meanwhile.and(told)
        })
    }

    /// Checks the answer, and does with the lock what the operation does.
    fn follow_up(&self, told: Told, armed: &Armed) -> Outcome {
        let Run { scenario, operation, allowed, .. } = self;
        checks::is_told(scenario, &told, operation.answer, allowed)?;
        if let Told::Held(guard) = &told {
            guarding::is_born_well(scenario, guard, allowed)?;
        }
        let held = match told {
            Told::Held(held) | Told::Changed(held, _) => Some(held),
            Told::Broke(anothers, _) => {
                drop(anothers);
                None
            }
            Told::Taken | Told::Nothing | Told::Failed(_) => None,
        };
        if let Some(guard) = held {
            match operation.then {
                Then::Drop => drop(guard),
                Then::Release => self.release(guard)?,
                Then::ReleaseTooLate => {
                    scenario.interfere(Interference::DeletesClaim)?;
                    scenario.stranger_claims()?;
                    self.release(guard)?;
                }
                Then::Write => {
                    guarding::write_tells_the_truth(scenario, &guard, allowed)?;
                    self.release(guard)?;
                }
                Then::Hold => self.hold(guard, armed)?,
                Then::DropAndClose => {
                    drop(guard);
                    self.close()?;
                }
                Then::Close => {
                    self.close()?;
                    guarding::is_closed(guard)?;
                }
                Then::Again => self.acquire_again(guard)?,
                Then::Broken => self.be_broken(guard)?,
            }
        }
        scenario.be_quiet();
        self.see_out(armed)?;
        self.strangers_leave()?;
        self.see_out(armed)?;
        checks::nothing_is_left(scenario)
    }

    fn release(&self, guard: Held) -> Outcome {
        guarding::release(self.scenario, guard).is_true(self.scenario, &self.allowed)
    }

    /// A close that succeeds has ended the session.
    fn close(&self) -> Outcome {
        let session = self.scenario.session().id();
        match self.scenario.client.close().within(TIMEOUT).wait() {
            Ok(()) => match self.scenario.server.sessions() {
                Ok(sessions) if sessions.contains(&session) => {
                    Err("close: it succeeded, and the session lives".to_owned())
                }
                Ok(_) => Ok(()),
                Err(error) => Err(format!("close: {error}")),
            },
            Err(error) if self.allowed.lateness() && error.is_outcome_unknown() => Ok(()),
            Err(error) => Err(format!("close: {error}")),
        }
    }

    /// Strangers leave, if nobody has deleted what is theirs.
    fn strangers_leave(&self) -> Outcome {
        let robbed = self.scenario.robbed_strangers()?;
        if !robbed.is_empty() && !self.allowed.robbery() {
            return Err(format!("it deleted what is not its own: {robbed:?}"));
        }
        self.scenario.strangers_leave()
    }

    /// Waits for the faults, which what goes on in the background may still be on its way to, and for
    /// their end.
    fn see_out(&self, armed: &Armed) -> Outcome {
        let is_left_alone = self.operation.is_left_alone();
        let _ = self.scenario.within(LINGER, || armed.is_reached() || !is_left_alone);
        armed.finish()
    }

    /// Holds until the claim is watched, while another waits: whenever the guard says so, it is the
    /// one that holds, and when somebody has taken its claim it comes to know. Then releases.
    fn hold(&self, guard: Held, armed: &Armed) -> Outcome {
        let Run { scenario, allowed, .. } = self;
        let other = scenario.other.clone();
        let waiting = thread::spawn(move || other.acquire().within(TIMEOUT).wait());
        let session = scenario.session();
        let over = Flag::default();
        thread::scope(|scope| {
            let watching = scope.spawn(|| {
                let fits = || guarding::fits_the_session(scenario, &guard, allowed);
                while !over.wait(LOOK_AGAIN) {
                    fits()?;
                }
                fits()
            });
            let mut wrong = Ok(());
            let held = scenario.until("the claim is watched, or its loss known", || {
                wrong = guarding::is_the_one_holder(scenario, &guard, allowed);
                let watches = scenario.server.watches().unwrap_or_default();
                let watchers = watches.get(&*guard.claim_path());
                let watched = watchers.is_some_and(|watchers| watchers.contains(&session.id()));
                if watched {
                    // A fault at the reply that says so has come then.
                    scenario.wait_until_heard();
                }
                let settled = !armed.is_under_way() && !scenario.was_taken(guard.fencing_token());
                let trouble = wrong.is_err() || watching.is_finished();
                trouble || guard.is_lost() || watched && settled
            });
            over.raise();
            let fits = watching.join().map_err(|_| "the look at the guard panicked".to_owned())?;
            held.and(wrong).and(fits)
        })?;
        self.release(guard)?;
        if scenario.usurped.is_up() {
            self.strangers_leave()?;
        }
        let next = waiting.join().map_err(|_| "the next one panicked".to_owned())?;
        let next = next.map_err(|error| format!("the next one: {error}"))?;
        match next.release().within(TIMEOUT).wait() {
            Err(LockError::Lost { reason: LostReason::Deleted, .. }) if allowed.robbery() => Ok(()),
            released => released.map_err(|error| format!("the next one: {error}")),
        }
    }

    /// Who holds acquires again at once, and the last guard releases.
    fn acquire_again(&self, guard: Held) -> Outcome {
        let again = self.scenario.lock.acquire().within(TIMEOUT).wait();
        let again = again.map_err(|error| format!("again: {error}"))?;
        if again.fencing_token() != guard.fencing_token() && !guard.is_lost() {
            return Err(format!("{again:?} beside {guard:?}"));
        }
        match guard.release().within(TIMEOUT).wait() {
            Ok(()) => {}
            Err(LockError::Lost { .. }) if again.is_lost() => {}
            Err(error) => return Err(format!("the first of two guards: {error}")),
        }
        self.release(again)
    }

    /// Another has the hold broken: it is lost before the other knows, and its release says so.
    fn be_broken(&self, guard: Held) -> Outcome {
        let Run { scenario, allowed, .. } = self;
        scenario.until("the claim is watched, or its loss known", || {
            let watches = scenario.server.watches().unwrap_or_default();
            guard.is_lost() || watches.contains_key(&*guard.claim_path())
        })?;
        let failed = |error: LockError| format!("another breaks it: {error}");
        let contenders = scenario.other.contenders().within(TIMEOUT).wait().map_err(failed)?;
        let token = guard.fencing_token();
        if let Some(holder) = contenders.iter().find(|contender| contender.token == token) {
            let broken = scenario.other.break_hold(holder).within(TIMEOUT).wait();
            // Whose claim somebody has deleted or written over learns nothing of it.
            let learns = !allowed.interference() && !allowed.unforeseen_loss();
            if learns && !guard.is_lost() {
                let broken = broken.map_err(failed)?;
                return Err(format!("{guard:?} was broken: {broken}, and does not know"));
            }
        }
        self.release(guard)
    }

    /// Checks that life goes on, and leaves nothing.
    fn aftermath(&self) -> Outcome {
        let Run { scenario, allowed, .. } = self;
        let others = [("another", &scenario.other), ("the same", &scenario.lock)];
        let alive = if self.operation.closes { &others[..1] } else { &others[..] };
        checks::goes_on(scenario, alive, allowed)?;
        if !allowed.loss() && scenario.session() != scenario.first_session {
            return Err("the session was lost on the way".to_owned());
        }
        checks::nothing_is_left(scenario)
    }
}

/// Cleans up, and tells the story of what went wrong.
fn finish(scenario: &Arc<Scenario>, run: Outcome) -> Outcome {
    let run = run.and_then(|()| scenario.troubles());
    let run = run.map_err(|trouble| format!("{trouble}\n{}", scenario.story()));
    scenario.given_up.raise();
    scenario.be_quiet();
    scenario.proxy.clear_rules();
    scenario.proxy.heal();
    let _ = scenario.strangers_leave();
    let _ = scenario.client.close().within(TIMEOUT).wait();
    run
}
