//! Schedules: all of them one after the other, drawn from a seed, or given.

use std::collections::HashSet;
use std::sync::Arc;

use super::run::{Ended, Run, Schedule, run};
use super::scenario::{Fault, Scenario};
use super::steps::Step;

/// Draws from a seed.
pub(super) struct Drawn {
    random: fastrand::Rng,
    /// Whether one fault is often followed by another.
    in_bursts: bool,
    since_fault: usize,
}

/// In how many steps there is one fault, while any are left.
const STEPS_PER_FAULT: usize = 24;

impl Drawn {
    pub(super) fn new(seed: u64) -> Drawn {
        let mut random = fastrand::Rng::with_seed(seed);
        Drawn { in_bursts: random.bool(), since_fault: usize::MAX, random }
    }
}

impl Schedule for Drawn {
    fn choose(&mut self, _: &Run, steps: &[Step], faults_from: usize) -> Option<usize> {
        let faults = faults_from..steps.len();
        // What happens to those who have come to rest is seen best.
        let at_rest = matches!(steps[0], Step::Release(_));
        let in_burst = self.in_bursts && self.since_fault < STEPS_PER_FAULT;
        let steps_per_fault = match (at_rest, in_burst) {
            (true, _) => STEPS_PER_FAULT / 8,
            (false, true) => STEPS_PER_FAULT / 4,
            (false, false) => STEPS_PER_FAULT,
        };
        self.since_fault = self.since_fault.saturating_add(1);
        if !faults.is_empty() && self.random.usize(0..steps_per_fault) == 0 {
            // Each kind is as likely as any other, however many can happen of it.
            let kind = |at: &usize| Fault::of(steps[*at]);
            let kinds: Vec<_> = Fault::every()
                .filter(|it| faults.clone().any(|at| kind(&at) == Some(*it)))
                .collect();
            self.since_fault = 0;
            let drawn = kinds[self.random.usize(0..kinds.len())];
            let of_kind: Vec<_> = faults.filter(|at| kind(at) == Some(drawn)).collect();
            return Some(of_kind[self.random.usize(0..of_kind.len())]);
        }
        Some(self.random.usize(0..faults_from))
    }
}

/// Takes the choices that it was given, and then always the first.
pub(super) struct Given<'a>(pub(super) std::slice::Iter<'a, usize>);

impl Schedule for Given<'_> {
    fn choose(&mut self, _: &Run, steps: &[Step], _: usize) -> Option<usize> {
        let chosen = self.0.next().copied().unwrap_or(0);
        Some(chosen.min(steps.len() - 1))
    }
}

/// All schedules, depth first. A state that was met before is not gone on from again.
#[derive(Default)]
pub(super) struct Explorer {
    /// What draws in which order steps are taken up; else they are as they come.
    random: Option<fastrand::Rng>,
    met: HashSet<u64>,
    path: Vec<Fork>,
    depth: usize,
}

/// A point at which any of these steps could be next.
struct Fork {
    /// With the place of each among those that there were.
    steps: Vec<(usize, Step)>,
    chosen: usize,
}

#[derive(Debug, Default)]
pub(super) struct Explored {
    /// Runs to the end, and runs that came to where another had been.
    pub(super) complete: u64,
    pub(super) joined: u64,
    pub(super) states: usize,
    /// Whether there was nothing left to explore.
    pub(super) exhausted: bool,
    pub(super) tenures: u64,
    /// What went wrong, and the choices that led there.
    pub(super) violation: Option<(String, Vec<usize>)>,
}

impl Schedule for Explorer {
    fn known(&mut self) -> Option<(Step, bool)> {
        let fork = self.path.get(self.depth)?;
        self.depth += 1;
        let (_, step) = fork.steps[fork.chosen];
        Some((step, self.depth < self.path.len()))
    }

    fn choose(&mut self, run: &Run, steps: &[Step], _: usize) -> Option<usize> {
        if !self.met.insert(run.digest()) {
            return None;
        }
        let mut steps: Vec<_> = steps.iter().copied().enumerate().collect();
        if let Some(random) = &mut self.random {
            random.shuffle(&mut steps);
        }
        let (first, _) = steps[0];
        self.path.push(Fork { steps, chosen: 0 });
        self.depth += 1;
        Some(first)
    }
}

/// Explores a scenario until nothing is left, something goes wrong, or `most` runs are done; with a seed, in the
/// order that this gives. Tells after each run how far it is.
pub(super) fn explore(
    scenario: &Arc<Scenario>,
    most: u64,
    seed: Option<u64>,
    mut tell: impl FnMut(&Explored),
) -> Explored {
    let random = seed.map(fastrand::Rng::with_seed);
    let mut explorer = Explorer { random, ..Explorer::default() };
    let mut explored = Explored::default();
    while explored.complete + explored.joined < most {
        explorer.depth = 0;
        let Ended { cut_short, violation, tenures, .. } = run(scenario, &mut explorer);
        explored.states = explorer.met.len();
        explored.tenures += tenures as u64;
        if cut_short {
            explored.joined += 1;
        } else {
            explored.complete += 1;
        }
        if let Some(violation) = violation {
            let choices = explorer.path.iter().map(|fork| fork.steps[fork.chosen].0).collect();
            explored.violation = Some((violation, choices));
            return explored;
        }
        tell(&explored);
        while explorer.path.last().is_some_and(|fork| fork.chosen + 1 == fork.steps.len()) {
            explorer.path.pop();
        }
        match explorer.path.last_mut() {
            Some(fork) => fork.chosen += 1,
            None => {
                explored.exhausted = true;
                return explored;
            }
        }
    }
    explored
}
