//! One run of an operation, with one fault at one of its steps or with none.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use zklock::{Client, Guard, Lock};
use zklock_testing::{Proxy, Server};

use crate::checks;
use crate::drive::{self, Told};
use crate::fault::{Armed, Fault};
use crate::operation::{How, Operation, Then};
use crate::recipe::Recipe;
use crate::stage::{Outcome, PATIENCE, Stage};
use crate::step::{Census, Step};
use crate::tree::Tree;

/// How much time an operation has whose frames come late, until they do.
const DEADLINE: Duration = Duration::from_millis(1_200);

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

/// What a worker works with, case after case.
pub struct Bench {
    pub server: Arc<Server>,
    pub proxy: Arc<Proxy>,
    pub tree: Arc<Tree>,
    /// Whoever comes next.
    pub other: Client,
}

impl Bench {
    pub fn at(server: Arc<Server>) -> Bench {
        let proxy = Arc::new(Proxy::start(server.addr()).unwrap());
        let tree = Arc::new(Tree::of(&server));
        let options = Client::options().session_timeout(Duration::from_secs(60));
        let other = options.operation_timeout(PATIENCE).connect_timeout(PATIENCE);
        let other = other.connect(&server.hosts()).wait().unwrap();
        Bench { server, proxy, tree, other }
    }

    fn stage(
        &self,
        recipe: &'static Recipe,
        session_timeout: Duration,
        operation_timeout: Duration,
    ) -> Outcome<Arc<Stage>> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let directory = format!("/{}-{}", recipe.name, NEXT.fetch_add(1, Ordering::Relaxed));
        self.proxy.clear_rules();
        self.proxy.heal();
        let options = Client::options().session_timeout(session_timeout);
        let options = options.operation_timeout(operation_timeout).connect_timeout(PATIENCE);
        let client = options.connect(&self.proxy.hosts()).wait();
        let client = client.map_err(|error| error.to_string())?;
        self.proxy.clear_seen();
        Stage::new(recipe, &self.server, &self.proxy, &self.tree, directory, client)
    }

    /// Runs the operation undisturbed and counts its steps.
    pub fn count(
        &self,
        recipe: &'static Recipe,
        operation: &'static Operation,
    ) -> Outcome<Vec<Step>> {
        let stage = self.stage(recipe, Duration::from_secs(15), PATIENCE)?;
        let mut steps = Vec::new();
        let run = (operation.before)(&stage).and_then(|()| {
            let mut census = Census::begin(&self.proxy, &stage.directory);
            let told = ask(&stage, operation, PATIENCE, &|| false, || census.answered())?;
            self.follow_up(&stage, operation, told, None, false)?;
            steps = census.end();
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
            let too_late = reached && fault.is_late() && case.step.acquiring;
            self.follow_up(&stage, operation, told, Some(&armed).zip(Some(fault)), too_late)?;
            // What goes on in the background may come to it yet, but not for ever.
            let _ = stage.until("the step", || armed.is_reached() || !operation.is_given_up());
            armed.finish()?;
            reached = armed.is_reached();
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
        too_late: bool,
    ) -> Outcome {
        checks::is_told(stage, &told, operation.answer, too_late)?;
        if let Told::Held(guard) = told {
            checks::is_the_one_holder(stage, &guard)?;
            let ends = fault.is_some_and(|(_, fault)| fault.ends_the_session());
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
        if let Some((armed, _)) = fault {
            armed.finish()?;
        }
        let robbed = stage.robbed_strangers()?;
        if !robbed.is_empty() {
            return Err(format!("it deleted what is not its own: {robbed:?}"));
        }
        stage.strangers_leave()?;
        checks::nothing_is_left(stage)
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
        checks::goes_on(stage, &self.other(stage))?;
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
        answered();
        stage.ended.raise();
        let meanwhile = meanwhile.join().map_err(|_| "what goes on beside panicked".to_owned())?;
        meanwhile.and(told)
    })
}

/// Cleans up, and tells the story of what went wrong.
fn finish(stage: &Arc<Stage>, run: Outcome) -> Outcome {
    let run = run.and_then(|()| stage.troubles());
    let run = run.map_err(|trouble| format!("{trouble}\n{}", stage.story()));
    stage.given_up.raise();
    stage.proxy.clear_rules();
    stage.proxy.heal();
    let _ = stage.strangers_leave();
    let _ = stage.client.close().wait_timeout(PATIENCE);
    run
}

impl Operation {
    /// Whether its last steps are taken when its caller has gone.
    fn is_given_up(&self) -> bool {
        self.how == How::GiveUp || self.then == Then::Drop
    }
}

impl Case {
    /// Who comes back late has no deadline left that could pass.
    pub fn makes_sense(&self) -> bool {
        !(self.fault.is_late() && self.operation.how == How::ComeBackLate)
    }
}
