//! The steps of an operation: the frames that it sends through the proxy, and those that come back.

use std::fmt;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use zklock_testing::wire::{Op, Ops};
use zklock_testing::{Action, Rule};

use crate::armed::Armed;
use crate::operation::Begins;
use crate::scenario::Scenario;

/// The kinds of frames that a fault can meet. What keeps the session alive is none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Create,
    Container,
    Children,
    ChildrenAndWatch,
    Exists,
    GetData,
    GetDataAndWatch,
    SetData,
    Delete,
    Multi,
    Sync,
    CatchUp,
    SetWatches,
    Connect,
    Event,
    Close,
}

const KINDS: [(Kind, &str); 16] = [
    (Kind::Create, "create"),
    (Kind::Container, "container"),
    (Kind::Children, "children"),
    (Kind::ChildrenAndWatch, "children+watch"),
    (Kind::Exists, "exists"),
    (Kind::GetData, "getdata"),
    (Kind::GetDataAndWatch, "getdata+watch"),
    (Kind::SetData, "setdata"),
    (Kind::Delete, "delete"),
    (Kind::Multi, "multi"),
    (Kind::Sync, "sync"),
    (Kind::CatchUp, "catch-up"),
    (Kind::SetWatches, "setwatches"),
    (Kind::Connect, "connect"),
    (Kind::Event, "event"),
    (Kind::Close, "close"),
];

/// Which frame of a step a fault is done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The request: the server does not know of it yet.
    Request,
    /// The reply: the server has done it. Events come from the server alone, and count here.
    Reply,
}

impl Kind {
    /// Picks the frames of this kind; of those that name a path, only the operation's own.
    pub fn rule(self, side: Side, directory: &str) -> Option<Rule> {
        let own = |ops: Ops| match side {
            Side::Request => Rule::request(ops).path_prefix(directory),
            Side::Reply => Rule::reply(ops).path_prefix(directory),
        };
        let nameless = |ops: Ops| match side {
            Side::Request => Rule::request(ops),
            Side::Reply => Rule::reply(ops),
        };
        Some(match self {
            Kind::Create => own([Op::Create, Op::Create2, Op::CreateTtl].into()),
            Kind::Container => own(Op::CreateContainer.into()),
            Kind::Children => own(Ops::lists()).watching(false),
            Kind::ChildrenAndWatch => own(Ops::lists()).watching(true),
            Kind::Exists => own(Op::Exists.into()),
            Kind::GetData => own(Op::GetData.into()).watching(false),
            Kind::GetDataAndWatch => own(Op::GetData.into()).watching(true),
            Kind::SetData => own(Op::SetData.into()),
            Kind::Delete => own(Op::Delete.into()),
            Kind::Multi => own(Op::Multi.into()),
            Kind::Sync => own(Op::Sync.into()),
            Kind::CatchUp => nameless(Op::Delete.into()).path("/zklock/catch-up"),
            Kind::SetWatches => nameless([Op::SetWatches, Op::SetWatches2].into()),
            Kind::Connect => nameless(Op::Connect.into()),
            Kind::Close => nameless(Op::CloseSession.into()),
            Kind::Event if side == Side::Reply => Rule::event().path_prefix(directory),
            Kind::Event => return None,
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = KINDS.iter().find(|(kind, _)| kind == self).map_or("", |(_, name)| name);
        f.write_str(name)
    }
}

/// The n-th frame of a kind, counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub kind: Kind,
    pub side: Side,
    pub nth: u64,
    /// Whether the caller is still waiting for the lock when it passes.
    pub acquiring: bool,
    /// Whether the client can have a claim then.
    pub claimed: bool,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.kind, self.nth)
    }
}

/// Counts the frames that pass.
pub struct Census {
    passed: Arc<Mutex<Vec<Passed>>>,
    faults: Arc<OnceLock<Armed>>,
}

/// A frame that has passed, and what had happened by then.
struct Passed {
    step: Step,
    disturbed: bool,
    struck: bool,
}

impl Census {
    /// Counts from now on. What rules before these swallow is not counted: no fault can meet it.
    pub fn begin(scenario: &Arc<Scenario>) -> Census {
        let (passed, faults): (Arc<Mutex<Vec<Passed>>>, Arc<OnceLock<Armed>>) = Default::default();
        for (kind, _) in KINDS {
            for side in [Side::Request, Side::Reply] {
                let Some(rule) = kind.rule(side, &scenario.directory) else { continue };
                let (passed, faults) = (Arc::clone(&passed), Arc::clone(&faults));
                let run = Arc::clone(scenario);
                let note = move |nth| {
                    let (disturbed, acquiring) = (run.disturbed.is_up(), !run.answered.is_up());
                    let struck = faults.get().is_some_and(Armed::is_reached);
                    let claimed = run.may_have_a_claim();
                    let step = Step { kind, side, nth, acquiring, claimed };
                    passed.lock().push(Passed { step, disturbed, struck });
                };
                scenario.proxy.on(rule, Action::run_numbered(note));
            }
        }
        Census { passed, faults }
    }

    /// Tells what follows these from what comes before.
    pub fn watch(&self, faults: Armed) -> &Armed {
        self.faults.get_or_init(|| faults)
    }

    /// The steps, from where the operation differs from others.
    pub fn end(&self, begins: Begins) -> Vec<Step> {
        let passed = self.passed.lock();
        let own = passed.iter().filter(|Passed { step, disturbed, struck }| match begins {
            Begins::AtOnce => true,
            Begins::WithTheDisturbance => *disturbed,
            Begins::WithTheAnswer => !step.acquiring,
            Begins::WithTheFault => *struck,
        });
        own.map(|passed| passed.step).collect()
    }
}
