//! One run of an operation, with one fault at one of its steps or with none.

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use zklock::{Guard, Lock};

use crate::bench::Bench;
use crate::checks;
use crate::drive::{self, Told};
use crate::fault::{Armed, Fault};
use crate::operation::{Begins, How, Operation, Then};
use crate::recipe::Recipe;
use crate::stage::{Outcome, PATIENCE, Stage};
use crate::step::{Census, Kind, Step};

/// How much time an operation has whose frames come late, until they do.
const DEADLINE: Duration = Duration::from_millis(1_200);
/// How long steps are waited for that nobody asks for.
const LINGER: Duration = Duration::from_secs(2);

#[derive(Clone, Copy)]
pub struct Case {
    pub recipe: &'static Recipe,
    pub operation: &'static Operation,
    pub step: Step,
    pub fault: Fault,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { recipe, operation, step, fault } = self;
        write!(f, "{}/{}/{step}/{fault}", recipe.name, operation.name)
    }
}

impl Case {
    /// Whether it is worth a run. Who comes back late has no deadline left that could pass. To steps
    /// that repair something, a reset is what a lost frame is, and a silence what an expiry is.
    pub fn makes_sense(&self) -> bool {
        let Case { operation, fault, .. } = self;
        let repairs = operation.begins == Begins::WithTheTwist;
        match fault {
            Fault::Late(_) => operation.how != How::ComeBackLate,
            Fault::Reset(_) | Fault::Silent(_) => !repairs,
            Fault::Restarted => operation.restarts,
            Fault::Dropped(_) | Fault::Expired(_) => true,
        }
    }
}

impl Bench {
    /// Runs the operation undisturbed and counts its steps.
    pub fn count(
        &self,
        recipe: &'static Recipe,
        operation: &'static Operation,
    ) -> Outcome<Vec<Step>> {
        let stage = self.stage(recipe, Duration::from_secs(15), PATIENCE)?;
        let mut steps = Vec::new();
        let run = (operation.before)(&stage).and_then(|()| {
            let census = Census::begin(&stage);
            let told = ask(&stage, operation, PATIENCE, &|| false, || ())?;
            self.follow_up(&stage, operation, told, None)?;
            steps = census.end(operation.begins);
            self.proxy.clear_rules();
            self.aftermath(&stage, operation, None)
        });
        finish(&stage, run)?;
        Ok(steps)
    }

    /// Whether the step was reached. Those that follow a fault may come in another order than in the
    /// clean run, but they come.
    pub fn run(&self, case: &Case, attempt: u32) -> Outcome<bool> {
        let (operation, fault) = (case.operation, case.fault);
        let deadline = if fault.is_late() { DEADLINE * attempt } else { PATIENCE };
        let stage = self.stage(case.recipe, fault.session_timeout(), deadline)?;
        let mut reached = false;
        let run = (operation.before)(&stage).and_then(|()| {
            let armed = Armed::arm(&stage, case.step, fault, deadline);
            let told = ask(&stage, operation, deadline, &|| armed.is_reached(), || {
                reached = armed.is_reached();
                armed.answered();
            })?;
            self.follow_up(&stage, operation, told, Some((&armed, fault)))?;
            reached |= armed.is_reached();
            self.proxy.clear_rules();
            self.aftermath(&stage, operation, Some(fault))
        });
        finish(&stage, run)?;
        Ok(reached)
    }

    /// Checks the answer, and does with the lock what the operation does.
    fn follow_up(
        &self,
        stage: &Arc<Stage>,
        operation: &Operation,
        told: Told,
        fault: Option<(&Armed, Fault)>,
    ) -> Outcome {
        let may_be_late = fault.is_some_and(|(_, fault)| fault.is_late());
        checks::is_told(stage, &told, operation.answer, may_be_late)?;
        if let Told::Held(guard) = told {
            let is_short = fault.is_some_and(|(_, fault)| fault.has_short_sessions());
            checks::is_the_one_holder(stage, &guard, is_short)?;
            let ends = operation.ends_the_session
                || fault.is_some_and(|(_, fault)| fault.ends_the_session());
            match operation.then {
                Then::Drop => drop(guard),
                Then::Release => {
                    checks::is_released(stage, &checks::release(guard), ends, false)?;
                }
                Then::ReleaseTooLate => {
                    stage.tree.delete(guard.path())?;
                    stage.stranger_claims()?;
                    checks::is_released(stage, &checks::release(guard), ends, true)?;
                }
                Then::Hold => self.hold(stage, guard, fault)?,
            }
        }
        stage.be_quiet();
        self.see_out(stage, operation, fault)?;
        let robbed = stage.robbed_strangers()?;
        if !robbed.is_empty() {
            return Err(format!("it deleted what is not its own: {robbed:?}"));
        }
        stage.strangers_leave()?;
        self.see_out(stage, operation, fault)?;
        checks::nothing_is_left(stage)
    }

    /// Waits for the fault, which what goes on in the background may still be on its way to, and for
    /// its end.
    fn see_out(
        &self,
        stage: &Stage,
        operation: &Operation,
        fault: Option<(&Armed, Fault)>,
    ) -> Outcome {
        let Some((armed, _)) = fault else { return Ok(()) };
        let _ = stage.within(LINGER, || armed.is_reached() || !operation.is_left_alone());
        armed.finish()
    }

    /// Holds until the claim is watched, while another waits: whenever the guard says so, it is the
    /// one that holds. Then releases.
    fn hold(&self, stage: &Stage, guard: Guard, fault: Option<(&Armed, Fault)>) -> Outcome {
        let other = self.other(stage);
        let waiting = thread::spawn(move || other.acquire_within(PATIENCE).wait());
        let session = stage.session();
        let mut wrong = Ok(());
        stage.until("the claim is watched", || {
            match checks::holds(stage, &guard) {
                Ok(Some(false)) if !fault.is_some_and(|(_, fault)| fault.is_unforeseeable()) => {
                    wrong = Err(format!("{guard:?} is not the one that holds"));
                }
                Ok(_) => {}
                Err(trouble) => wrong = Err(trouble),
            }
            let watches = stage.server.watches().unwrap_or_default();
            let watchers = watches.get(guard.path());
            let watched = watchers.is_some_and(|watchers| watchers.contains(&session.id()));
            let goes_on = fault.is_none_or(|(armed, _)| !armed.is_under_way());
            wrong.is_err() || guard.is_lost() || watched && goes_on
        })?;
        wrong?;
        let ends = fault.is_some_and(|(_, fault)| fault.ends_the_session());
        checks::is_released(stage, &checks::release(guard), ends, false)?;
        let next = waiting.join().map_err(|_| "the next one panicked".to_owned())?;
        let next = next.map_err(|error| format!("the next one: {error}"))?;
        next.release().wait_timeout(PATIENCE).map_err(|error| format!("the next one: {error}"))
    }

    /// Checks that life goes on, and leaves nothing.
    fn aftermath(&self, stage: &Stage, operation: &Operation, fault: Option<Fault>) -> Outcome {
        let is_short = fault.is_some_and(Fault::has_short_sessions);
        checks::goes_on(stage, &self.other(stage), is_short)?;
        let ends = fault.is_some_and(Fault::ends_the_session) || operation.ends_the_session;
        if !ends && stage.session() != stage.first_session {
            return Err("the session was lost on the way".to_owned());
        }
        checks::nothing_is_left(stage)
    }

    fn other(&self, stage: &Stage) -> Lock {
        stage.recipe.lock(&self.other, &stage.path)
    }
}

/// Asks for the lock while others do what the operation says.
fn ask(
    stage: &Arc<Stage>,
    operation: &Operation,
    deadline: Duration,
    is_reached: &dyn Fn() -> bool,
    mut answered: impl FnMut(),
) -> Outcome<Told> {
    thread::scope(|scope| {
        let meanwhile = scope.spawn(|| (operation.meanwhile)(stage));
        let told = drive::ask(stage, operation, deadline, is_reached);
        stage.answered.raise();
        answered();
        let meanwhile = meanwhile.join().map_err(|_| "what goes on beside panicked".to_owned())?;
        meanwhile.and(told)
    })
}

/// Cleans up, and tells the story of what went wrong.
fn finish(stage: &Arc<Stage>, run: Outcome) -> Outcome {
    let run = run.and_then(|()| stage.troubles());
    let run = run.map_err(|trouble| format!("{trouble}\n{}", stage.story()));
    stage.given_up.raise();
    stage.be_quiet();
    stage.proxy.clear_rules();
    stage.proxy.heal();
    let _ = stage.strangers_leave();
    let _ = stage.client.close().wait_timeout(PATIENCE);
    run
}

impl Operation {
    /// Whether the step is the operation's own, and not that of the watch which every claim gets that
    /// is held for long: how long these are held is up to the machine.
    pub fn owns(&self, step: &Step) -> bool {
        let of_a_watch = matches!(step.kind, Kind::GetDataAndWatch | Kind::Event);
        step.acquiring || !of_a_watch || self.then == Then::Hold || self.how == How::GiveUp
    }

    /// Whether its last steps are taken when its caller has gone.
    fn is_left_alone(&self) -> bool {
        self.how == How::GiveUp || self.then == Then::Drop
    }
}
