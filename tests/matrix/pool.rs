//! Runs many cases at once: each worker has a proxy of its own, and, where the server is to be
//! restarted, a server of its own.

use std::collections::VecDeque;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use zklock_testing::{Builder, Server};

use crate::bench::Bench;
use crate::case::Case;
use crate::scenario::Outcome;
use crate::step::Step;

/// Most of them wait most of the time.
const WORKERS: usize = 24;
/// For cases that wait for sessions to time out.
const WAITERS: usize = 40;
/// Each with a server of its own.
const RESTARTERS: usize = 2;
/// How often a case is run whose step did not come, as when a busy machine was too slow for it.
const ATTEMPTS: u32 = 3;

pub struct Pool {
    server: Arc<Server>,
}

/// How a case went.
pub struct Verdict {
    pub case: Case,
    /// Whether the fault has met its step.
    pub reached: bool,
    pub failure: Option<String>,
}

/// A case, and the steps that a fault can meet next in it.
pub struct Counted {
    pub case: Case,
    pub steps: Vec<Step>,
}

/// So many workers, their cases, and their server.
type Group<'a> = (usize, Mutex<VecDeque<(usize, Case)>>, &'a (dyn Fn() -> Arc<Server> + Sync));

fn builder() -> Builder {
    // Containers must not be tidied away in the middle of a case.
    let hour = Duration::from_secs(3_600);
    Server::builder().tick_time(Duration::from_millis(200)).container_check_interval(hour)
}

impl Pool {
    pub fn start() -> Pool {
        Pool { server: Arc::new(builder().start().unwrap()) }
    }

    /// Counts the steps of each case, in their order; and gives failures, where it fails already.
    pub fn count(&self, cases: Vec<Case>) -> (Vec<Counted>, Vec<String>) {
        let counted = Mutex::new(Vec::new());
        let failures = Mutex::new(Vec::new());
        let workers = WORKERS.min(cases.len());
        let queue = Mutex::new(cases.into_iter().enumerate().collect::<VecDeque<_>>());
        let work = || {
            let bench = Bench::at(Arc::clone(&self.server));
            while let Some((place, case)) = next(&queue) {
                match shielded(|| twice(&bench, &case)) {
                    Ok(steps) => counted.lock().push((place, Counted { case, steps })),
                    Err(trouble) => failures.lock().push(tell(&case.to_string(), &trouble)),
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(work);
            }
        });
        let mut counted = counted.into_inner();
        counted.sort_by_key(|(place, _)| *place);
        (counted.into_iter().map(|(_, counted)| counted).collect(), failures.into_inner())
    }

    pub fn run(&self, cases: Vec<Case>) -> Vec<Verdict> {
        let total = cases.len();
        let (restarts, others): (VecDeque<_>, VecDeque<_>) =
            cases.into_iter().enumerate().partition(|(_, case)| case.restarts_the_server());
        let (slow, others) = others.into_iter().partition(|(_, case)| case.is_slow());
        let verdicts = Mutex::new(Vec::with_capacity(total));
        let own_server = || Arc::new(builder().start().unwrap());
        let same_server = || Arc::clone(&self.server);
        let groups: [Group<'_>; 3] = [
            (RESTARTERS, Mutex::new(restarts), &own_server),
            (WAITERS, Mutex::new(slow), &same_server),
            (WORKERS, Mutex::new(others), &same_server),
        ];
        let work = |(_, queue, server): &Group<'_>| {
            // No bench for nothing: there may be fewer cases than workers.
            let Some((mut place, mut case)) = next(queue) else { return };
            let bench = Bench::at(server());
            loop {
                let verdict = judge(&bench, case);
                verdicts.lock().push((place, verdict));
                (place, case) = match next(queue) {
                    Some(more) => more,
                    None => return,
                };
            }
        };
        thread::scope(|scope| {
            for group in &groups {
                for _ in 0..group.0 {
                    scope.spawn(|| work(group));
                }
            }
        });
        let mut verdicts = verdicts.into_inner();
        verdicts.sort_by_key(|(place, _)| *place);
        verdicts.into_iter().map(|(_, verdict)| verdict).collect()
    }
}

fn next<T>(queue: &Mutex<VecDeque<T>>) -> Option<T> {
    queue.lock().pop_front()
}

/// The steps that are the same in two runs: what depends on chance is no step.
fn twice(bench: &Bench, case: &Case) -> Outcome<Vec<Step>> {
    let again = bench.count(case)?;
    let mut steps = bench.count(case)?;
    steps.retain(|step| {
        let same =
            |other: &Step| (other.kind, other.side, other.nth) == (step.kind, step.side, step.nth);
        case.operation.owns(step) && again.iter().any(same)
    });
    Ok(steps)
}

fn judge(bench: &Bench, case: Case) -> Verdict {
    let mut reached = Ok(false);
    for attempt in 1..=ATTEMPTS {
        reached = shielded(|| bench.run(&case, attempt));
        if reached != Ok(false) {
            break;
        }
    }
    let failure = reached.as_ref().err().map(|trouble| tell(&case.to_string(), trouble));
    Verdict { case, reached: reached.unwrap_or(true), failure }
}

/// Tells at once what failed, and how to repeat it.
fn tell(name: &str, trouble: &str) -> String {
    let text =
        format!("{name}: {trouble}\n  repeat: ZKLOCK_CASE='{name}' cargo test --test matrix");
    let _ = writeln!(std::io::stderr(), "FAILED {text}");
    text
}

fn shielded<T>(run: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    let outcome = catch_unwind(AssertUnwindSafe(run));
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("panicked: {}", text.unwrap_or_default()))
    })
}
