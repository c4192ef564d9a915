//! The faults of a run, each waiting for its step.

use std::sync::Arc;
use std::time::Duration;

use zklock_testing::{Action, Gate, InstalledRule, Rule};

use crate::fault::{Fault, Strike};
use crate::flag::Flag;
use crate::scenario::{Outcome, Scenario, TIMEOUT};

#[derive(Default)]
pub struct Armed {
    each: Vec<One>,
}

struct One {
    trigger: Trigger,
    /// Raised when what takes its time is over.
    over: Option<Arc<Flag>>,
}

enum Trigger {
    Rule(InstalledRule),
    Gate(Gate),
}

impl Armed {
    /// `deadline`: of the operation and of each request, for what comes late.
    pub fn arm(scenario: &Arc<Scenario>, strikes: &[Strike], deadline: Duration) -> Armed {
        let arm = |strike: &Strike| One::arm(scenario, *strike, deadline);
        Armed { each: strikes.iter().map(arm).collect() }
    }

    /// Whether all steps came.
    pub fn is_reached(&self) -> bool {
        self.each.iter().all(One::is_reached)
    }

    /// Whether what a step has begun is not over yet.
    pub fn is_under_way(&self) -> bool {
        let goes_on = |over: &Arc<Flag>| !over.is_up();
        self.each.iter().any(|one| one.is_reached() && one.over.as_ref().is_some_and(goes_on))
    }

    /// The caller has its answer: what was held for that goes on.
    pub fn answered(&self) {
        for one in &self.each {
            if let Trigger::Gate(gate) = &one.trigger {
                gate.release();
            }
        }
    }

    /// Waits until what the steps have begun is over.
    pub fn finish(&self) -> Outcome {
        self.each.iter().try_for_each(|one| match &one.over {
            Some(over) if one.is_reached() && !over.wait(TIMEOUT) => {
                Err("the fault itself has no end".to_owned())
            }
            _ => Ok(()),
        })
    }
}

impl One {
    fn arm(scenario: &Arc<Scenario>, Strike { step, fault }: Strike, deadline: Duration) -> One {
        let rule = || {
            let rule = step.kind.rule(step.side, &scenario.directory);
            rule.unwrap_or_else(|| unreachable!("a step was counted by its rule")).nth(step.nth)
        };
        let plain =
            |action| One { trigger: Trigger::Rule(scenario.proxy.on(rule(), action)), over: None };
        match fault {
            Fault::Dropped(_) => plain(Action::Drop),
            Fault::Reset(_) => plain(Action::Reset),
            // Until the caller has its answer; what follows that has no deadline of the caller's.
            Fault::Late(_) if step.acquiring => {
                One { trigger: Trigger::Gate(scenario.proxy.hold(rule())), over: None }
            }
            Fault::Late(_) => plain(Action::Delay(deadline * 3 / 2)),
            Fault::Expired(_) => One::happening(scenario, rule(), Scenario::expire_session),
            Fault::Silent(_) => One::happening(scenario, rule(), |scenario| {
                scenario.proxy.cut();
                let ended = scenario.wait_until_session_ends();
                scenario.proxy.heal();
                ended
            }),
            Fault::OneWay(side, lasting) => {
                One::happening(scenario, rule(), move |scenario| scenario.silence(side, lasting))
            }
            Fault::Restarted => One::happening(scenario, rule(), |scenario| {
                // A server that is still starting can take a connection and never answer.
                scenario.proxy.refuse();
                scenario.aside.refuse();
                scenario.server.kill();
                let started = scenario.server.start_again();
                scenario.aside.heal();
                scenario.proxy.heal();
                started.map_err(|error| error.to_string())
            }),
            Fault::Interfered(_, interference) => {
                scenario.usurpers_give_way();
                One::happening(scenario, rule(), move |scenario| scenario.interfere(interference))
            }
        }
    }

    fn happening(
        scenario: &Arc<Scenario>,
        rule: Rule,
        happen: impl Fn(&Scenario) -> Outcome + Send + 'static,
    ) -> One {
        let over = Arc::new(Flag::default());
        let (raise, on_stage) = (Arc::clone(&over), Arc::clone(scenario));
        let rule = scenario.proxy.on(
            rule,
            Action::run(move || {
                on_stage.note(happen(&on_stage));
                raise.raise();
            }),
        );
        One { trigger: Trigger::Rule(rule), over: Some(over) }
    }

    fn is_reached(&self) -> bool {
        match &self.trigger {
            Trigger::Rule(rule) => rule.hits() > 0,
            Trigger::Gate(gate) => gate.is_reached(),
        }
    }
}
