//! Which faults an operation meets at which steps.

use std::collections::BTreeSet;

use crate::case::Case;
use crate::fault::{Fault, Strike};
use crate::foreign::Interference;
use crate::operation::{Begins, How};
use crate::operations::OPERATIONS;
use crate::pool::{Counted, Pool};
use crate::recipe::RECIPES;
use crate::step::{Kind, Side, Step};

/// Which cases are played. `ZKLOCK_CASE` names some by the beginning of their names, and `ZKLOCK_MATRIX=all` is all of
/// them. `make test` plays a sample, the same in each run: the cases that find planted bugs, and of the others one in
/// sixteen of the queue and one in 32 of other recipes.
pub struct Wanted {
    prefix: String,
    all: bool,
    /// The cases that find planted bugs.
    planted: BTreeSet<String>,
}

/// Cases, and what has failed before there were any.
pub type Plan = (Vec<Case>, Vec<String>);

impl Wanted {
    pub fn by_environment() -> Wanted {
        let prefix = std::env::var("ZKLOCK_CASE").unwrap_or_default();
        let all = std::env::var("ZKLOCK_MATRIX").is_ok_and(|which| which == "all");
        Wanted { all: all || !prefix.is_empty(), prefix, planted: planted() }
    }

    /// Whether no case was named.
    pub fn is_everything(&self) -> bool {
        self.prefix.is_empty()
    }

    /// Whether no sample is taken.
    pub fn is_all(&self) -> bool {
        self.all
    }

    /// Whether the case is wanted.
    fn is(&self, case: &Case) -> bool {
        let name = case.to_string();
        let is_played = self.all || self.planted.contains(&name) || is_one_in(16, &name);
        is_played && name.starts_with(&self.prefix)
    }

    /// Whether the operation, or a recovery, is wanted: its steps have to be counted, whatever is played of them.
    fn is_counted(&self, case: &Case) -> bool {
        let name = case.to_string();
        let leads_to = |planted: &String| planted.starts_with(&format!("{name}/"));
        let is_always = case.recipe.name == "queue" || case.operation.is_sample;
        let is_sampled = is_always && case.strikes.is_empty() || is_one_in(2, &name);
        self.all || is_sampled || self.planted.iter().any(leads_to)
    }

    /// Whether the case, or one that goes on from it, may be.
    fn may_become(&self, case: &Case) -> bool {
        let name = case.to_string();
        name.starts_with(&self.prefix) || self.prefix.starts_with(&format!("{name}/"))
    }

    /// The operations, undisturbed.
    fn plays(&self) -> Vec<Case> {
        let recipes = RECIPES.iter();
        let all = recipes.flat_map(|recipe| {
            let fitting = OPERATIONS.iter().filter(|operation| {
                operation.is_for(recipe) && (self.all || operation.is_chosen_for(recipe))
            });
            fitting.map(move |operation| Case { recipe, operation, strikes: Vec::new() })
        });
        all.filter(|play| self.may_become(play) && self.is_counted(play)).collect()
    }

    /// Each step of each operation with each of the faults that `faults` gives for it.
    fn each<F: Iterator<Item = Fault>>(
        &self,
        counted: &[Counted],
        faults: impl Fn(&Case, &[Step], Step) -> F,
    ) -> Vec<Case> {
        let mut cases = Vec::new();
        for Counted { case, steps } in counted {
            for step in steps {
                let faults = faults(case, steps, *step).filter(|fault| fault.side() == step.side);
                cases.extend(faults.map(|fault| case.and(Strike { step: *step, fault })));
            }
        }
        cases
    }

    /// Every fault of network and servers at every step.
    pub fn faults(&self, pool: &Pool) -> Plan {
        let (counted, failures) = pool.count(self.plays());
        let mut cases = self.each(&counted, |case, steps, step| {
            let (case, is_first) = (case.clone(), is_first(steps, step));
            Fault::ALL.into_iter().filter(move |fault| makes_sense(&case, *fault, is_first))
        });
        cases.retain(|case| self.is(case));
        (cases, failures)
    }

    /// A client of another kind, between any two steps.
    pub fn interfering(&self, pool: &Pool) -> Plan {
        let (counted, failures) = pool.count(self.plays());
        let mut cases = self.each(&counted, |case, steps, step| {
            let (all, is_main) = (self.all, case.operation.is_main());
            let is_first = is_first(steps, step);
            let comes_between = comes_between(steps, step) && !case.operation.closes;
            let interferences = Interference::ALL.into_iter().filter(move |interference| {
                let fits = step.claimed || !interference.needs_a_claim();
                let is_plain = *interference == interference_for(step);
                let is_chosen = is_first && is_main || is_plain && (is_first || step.claimed);
                comes_between && fits && (all || is_chosen)
            });
            interferences.map(move |interference| Fault::Interfered(step.side, interference))
        });
        cases.retain(|case| self.is(case));
        (cases, failures)
    }

    /// Two faults: the second at each kind of step in the recovery from the first.
    pub fn pairs(&self, pool: &Pool) -> Plan {
        let mut plays = self.plays();
        plays.retain(|play| self.all || play.operation.pairs);
        let (counted, mut failures) = pool.count(plays);
        let mut firsts = self.each(&counted, |_, steps, step| {
            let is_first = is_first(steps, step);
            FIRST.into_iter().filter(move |(kind, _)| is_first && *kind == step.kind).map(|it| it.1)
        });
        firsts.retain(|first| self.may_become(first) && self.is_counted(first));
        let (recoveries, more) = pool.count(firsts);
        failures.extend(more);
        let mut cases = self.each(&recoveries, |case, steps, step| {
            let (all, is_first) = (self.all, is_first(steps, step));
            let restarts = all && case.operation.restarts;
            SECOND.into_iter().filter(move |fault| match fault {
                Fault::Restarted => is_first && restarts,
                Fault::Expired(Side::Reply) => is_first && all,
                _ => is_first,
            })
        });
        cases.retain(|case| self.is(case));
        (cases, failures)
    }
}

/// What leaves a claim or its deletion in doubt, or takes everything away.
const FIRST: [(Kind, Fault); 13] = [
    (Kind::Create, Fault::Dropped(Side::Reply)),
    (Kind::Create, Fault::Expired(Side::Reply)),
    (Kind::Delete, Fault::Dropped(Side::Request)),
    (Kind::Delete, Fault::Dropped(Side::Reply)),
    (Kind::Multi, Fault::Dropped(Side::Request)),
    (Kind::Multi, Fault::Dropped(Side::Reply)),
    (Kind::GetData, Fault::Dropped(Side::Reply)),
    (Kind::GetDataAndWatch, Fault::Reset(Side::Reply)),
    (Kind::ChildrenAndWatch, Fault::Reset(Side::Reply)),
    (Kind::SetData, Fault::Dropped(Side::Reply)),
    (Kind::Sync, Fault::Dropped(Side::Reply)),
    (Kind::CatchUp, Fault::Dropped(Side::Reply)),
    (Kind::Event, Fault::Expired(Side::Reply)),
];

const SECOND: [Fault; 5] = [
    Fault::Dropped(Side::Request),
    Fault::Dropped(Side::Reply),
    Fault::Expired(Side::Request),
    Fault::Expired(Side::Reply),
    Fault::Restarted,
];

/// Whether a case of that name is in a sample: spread over all operations, steps and faults.
fn is_one_in(many: u32, name: &str) -> bool {
    let mix = |mixed: u32, byte: u8| (mixed ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let mixed = name.bytes().fold(0x811c_9dc5, mix);
    ((mixed >> 16) ^ mixed) % many == 0
}

/// The cases that the list of planted bugs names.
fn planted() -> BTreeSet<String> {
    let list = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mutants/list");
    let files = std::fs::read_dir(list).unwrap().map(|entry| entry.unwrap().path());
    let texts: Vec<String> = files.map(|file| std::fs::read_to_string(file).unwrap()).collect();
    // As in `"matrix TEST CASE"`.
    let named = texts.iter().flat_map(|text| text.split('"')).filter_map(|quoted| {
        let (_, case) = quoted.strip_prefix("matrix ")?.split_once(' ')?;
        Some(case.to_owned())
    });
    named.collect()
}

/// Whether it is the first of its kind.
fn is_first(steps: &[Step], step: Step) -> bool {
    let same = |other: &&Step| (other.kind, other.side) == (step.kind, step.side);
    steps.iter().find(same).is_some_and(|first| first.nth == step.nth)
}

/// What disturbs most at a step: where there is a claim, its end.
fn interference_for(step: Step) -> Interference {
    if step.claimed { Interference::DeletesClaim } else { Interference::DeletesDirectory }
}

/// Whether what happens at the step happens between two requests as no other step has it. What is done
/// before a request is done after the reply to the one before, unless both are on their way together.
fn comes_between(steps: &[Step], step: Step) -> bool {
    let is_the_first = steps.first().is_some_and(|first| *first == step);
    let follows_at_once = matches!(step.kind, Kind::Children | Kind::GetData);
    step.side == Side::Reply || is_the_first || follows_at_once
}

/// Whether the fault is worth a run. Who comes back late has no deadline left that could pass. To steps
/// that repair something, a reset is what a lost frame is, and a silence what an expiry is. One-way
/// silences take longest, so they meet the first step of each kind, of the main operations.
fn makes_sense(case: &Case, fault: Fault, is_first: bool) -> bool {
    let operation = case.operation;
    let repairs = operation.begins == Begins::WithTheDisturbance;
    match fault {
        Fault::Late(_) => operation.how != How::ComeBackLate,
        Fault::Reset(_) | Fault::Silent(_) => !repairs,
        Fault::OneWay(..) => !repairs && is_first && operation.is_main(),
        Fault::Restarted => operation.restarts,
        Fault::Dropped(_) | Fault::Expired(_) | Fault::Interfered(..) => true,
    }
}
