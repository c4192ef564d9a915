//! What goes wrong.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use zklock_testing::{Action, Gate, InstalledRule};

use crate::flag::Flag;
use crate::stage::{Outcome, PATIENCE, Stage};
use crate::step::{Side, Step};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The frame is lost, with its connection; what came before it has been answered.
    Dropped(Side),
    /// The frame comes when the operation's deadline has passed.
    Late(Side),
    /// The connection is reset at both ends.
    Reset(Side),
    /// The servers end the session at once.
    Expired(Side),
    /// Nothing passes until the session has timed out.
    Silent(Side),
    /// The server crashes when it has done what was asked, and comes back.
    Restarted,
}

impl Fault {
    pub const ALL: [Fault; 11] = [
        Fault::Dropped(Side::Request),
        Fault::Dropped(Side::Reply),
        Fault::Late(Side::Request),
        Fault::Late(Side::Reply),
        Fault::Reset(Side::Request),
        Fault::Reset(Side::Reply),
        Fault::Expired(Side::Request),
        Fault::Expired(Side::Reply),
        Fault::Silent(Side::Request),
        Fault::Silent(Side::Reply),
        Fault::Restarted,
    ];

    pub fn side(self) -> Side {
        match self {
            Fault::Dropped(side)
            | Fault::Late(side)
            | Fault::Reset(side)
            | Fault::Expired(side)
            | Fault::Silent(side) => side,
            Fault::Restarted => Side::Reply,
        }
    }

    pub fn is_late(self) -> bool {
        matches!(self, Fault::Late(_))
    }

    pub fn ends_the_session(self) -> bool {
        matches!(self, Fault::Expired(_) | Fault::Silent(_))
    }

    /// Whether the servers end the session before its time, which no client can foresee.
    pub fn is_unforeseeable(self) -> bool {
        matches!(self, Fault::Expired(_))
    }

    /// Whether sessions are so short that a very busy machine can lose one.
    pub fn has_short_sessions(self) -> bool {
        matches!(self, Fault::Silent(_))
    }

    pub fn restarts_the_server(self) -> bool {
        self == Fault::Restarted
    }

    /// Short where its end is waited for; else so long that no pause of a busy machine ends it.
    pub fn session_timeout(self) -> Duration {
        match self {
            Fault::Silent(_) => Duration::from_secs(4),
            Fault::Restarted => Duration::from_secs(60),
            _ => Duration::from_secs(15),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = match self.side() {
            Side::Request => "before",
            Side::Reply => "after",
        };
        let frame = match self.side() {
            Side::Request => "request",
            Side::Reply => "reply",
        };
        match self {
            Fault::Dropped(_) => write!(f, "{frame} dropped"),
            Fault::Late(_) => write!(f, "{frame} late"),
            Fault::Reset(_) => write!(f, "reset {before}"),
            Fault::Expired(_) => write!(f, "expired {before}"),
            Fault::Silent(_) => write!(f, "silent {before}"),
            Fault::Restarted => f.write_str("restarted"),
        }
    }
}

/// A fault that waits for its step.
pub struct Armed {
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
    pub fn arm(stage: &Arc<Stage>, step: Step, fault: Fault, deadline: Duration) -> Armed {
        let rule = || {
            let rule = step.kind.rule(step.side, &stage.directory);
            rule.unwrap_or_else(|| unreachable!("a step was counted by its rule")).nth(step.nth)
        };
        let plain =
            |action| Armed { trigger: Trigger::Rule(stage.proxy.on(rule(), action)), over: None };
        match fault {
            Fault::Dropped(_) => plain(Action::Drop),
            Fault::Reset(_) => plain(Action::Reset),
            // Until the caller has its answer; what follows that has no deadline of the caller's.
            Fault::Late(_) if step.acquiring => {
                Armed { trigger: Trigger::Gate(stage.proxy.hold(rule())), over: None }
            }
            Fault::Late(_) => plain(Action::Delay(deadline * 3 / 2)),
            Fault::Expired(_) => Armed::happening(stage, rule(), Stage::expire_session),
            Fault::Silent(_) => Armed::happening(stage, rule(), |stage| {
                stage.proxy.cut();
                let ended = stage.wait_until_session_ends();
                stage.proxy.heal();
                ended
            }),
            Fault::Restarted => Armed::happening(stage, rule(), |stage| {
                // A server that is still starting can take a connection and never answer.
                stage.proxy.refuse();
                stage.aside.refuse();
                stage.server.kill();
                let started = stage.server.start_again();
                stage.aside.heal();
                stage.proxy.heal();
                started.map_err(|error| error.to_string())
            }),
        }
    }

    fn happening(
        stage: &Arc<Stage>,
        rule: zklock_testing::Rule,
        happen: fn(&Stage) -> Outcome,
    ) -> Armed {
        let over = Arc::new(Flag::default());
        let (raise, on_stage) = (Arc::clone(&over), Arc::clone(stage));
        let rule = stage.proxy.on(
            rule,
            Action::run(move || {
                on_stage.note(happen(&on_stage));
                raise.raise();
            }),
        );
        Armed { trigger: Trigger::Rule(rule), over: Some(over) }
    }

    /// Whether the step came.
    pub fn is_reached(&self) -> bool {
        match &self.trigger {
            Trigger::Rule(rule) => rule.hits() > 0,
            Trigger::Gate(gate) => gate.is_reached(),
        }
    }

    /// Whether what the step has begun is not over yet.
    pub fn is_under_way(&self) -> bool {
        self.is_reached() && self.over.as_ref().is_some_and(|over| !over.is_up())
    }

    /// The caller has its answer: what was held for that goes on.
    pub fn answered(&self) {
        if let Trigger::Gate(gate) = &self.trigger {
            gate.release();
        }
    }

    /// Waits until what the step has begun is over.
    pub fn finish(&self) -> Outcome {
        match &self.over {
            Some(over) if self.is_reached() && !over.wait(PATIENCE) => {
                Err("the fault itself has no end".to_owned())
            }
            _ => Ok(()),
        }
    }
}
