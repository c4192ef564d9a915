//! Runs the tests that come by a bug until one of them finds it.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::mutant::Mutant;
use crate::results::{Results, Verdict};
use crate::suite::{self, End, Suite, Test};

/// Tests that are faster than this run together, in one process.
const FAST: f64 = 0.5;
/// What a test may take beyond several times what it takes without a bug.
const SLACK: Duration = Duration::from_secs(10);

/// Judges all of `todo`; none is begun after `end`. What is known of others says what to run first.
pub fn all(
    suite: &Suite,
    known: &[Mutant],
    todo: &[&Mutant],
    limit: Duration,
    end: Option<Duration>,
    jobs: usize,
    results: &mut Results,
) -> Outcome {
    let begin = Instant::now();
    let mut finders = Finders::default();
    for mutant in known {
        finders.learn(mutant, results.of(mutant));
    }
    let state = Mutex::new((results, finders));
    let locked = || state.lock().map_err(|_| "a thread panicked");
    suite::each(jobs, todo, "bugs judged", |_, mutant| {
        if end.is_some_and(|end| begin.elapsed() > end) {
            return Ok(());
        }
        let tests = locked()?.1.order(suite, mutant);
        let verdict = judge(suite, mutant, &tests, limit)?;
        let (results, finders) = &mut *locked()?;
        finders.learn(mutant, Some(&verdict));
        results.record(&mutant.key, verdict)
    })
}

/// How often which test has found a bug in a function, and in a file: what finds one finds others there.
#[derive(Default)]
struct Finders(HashMap<(String, String), u32>);

impl Finders {
    fn learn(&mut self, mutant: &Mutant, verdict: Option<&Verdict>) {
        if let Some(Verdict::Found { by, .. } | Verdict::Hangs { by, .. }) = verdict {
            for place in [&mutant.place, &mutant.file] {
                *self.0.entry((place.clone(), by.clone())).or_default() += 1;
            }
        }
    }

    /// The tests that come by a bug: those that should find it, then those that promise most for their time.
    fn order<'a>(&self, suite: &'a Suite, mutant: &Mutant) -> Vec<&'a Test> {
        let comes_by = |test: &&Test| test.passes && test.reaches.contains(&mutant.number);
        let mut tests: Vec<&Test> = suite.tests.iter().filter(comes_by).collect();
        let found = |place: &String, test: &Test| {
            let key = (place.clone(), format!("{} {}", test.target, test.name));
            f64::from(self.0.get(&key).copied().unwrap_or_default())
        };
        let cost = |test: &Test| {
            let promise = 1.0 + 10.0 * found(&mutant.place, test) + found(&mutant.file, test);
            test.seconds / promise
        };
        tests.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
        tests.sort_by_key(|test| !mutant.names(&test.target, &test.name, &test.case));
        tests
    }
}

/// Tests of one program that run in one process.
struct Group<'a> {
    target: &'a str,
    names: Vec<&'a String>,
    case: &'a str,
    seconds: f64,
}

fn judge(suite: &Suite, mutant: &Mutant, tests: &[&Test], limit: Duration) -> Outcome<Verdict> {
    if tests.is_empty() {
        return Ok(Verdict::Unreached);
    }
    let begin = Instant::now();
    for group in groups(tests) {
        if begin.elapsed() > limit {
            return Ok(Verdict::Undecided { seconds: begin.elapsed().as_secs_f64() });
        }
        let most = SLACK + Duration::from_secs_f64(4.0 * group.seconds);
        let end =
            suite.run(group.target, &group.names, group.case, Some(mutant.number), None, most)?;
        let seconds = begin.elapsed().as_secs_f64();
        let by = match &group.names[..] {
            [name] => format!("{} {name}", group.target),
            names => format!("{} ({} tests)", group.target, names.len()),
        };
        match end {
            End::Passed => {}
            End::Failed => return Ok(Verdict::Found { by, seconds }),
            End::TimedOut => return Ok(Verdict::Hangs { by, seconds }),
        }
    }
    Ok(Verdict::Survived { tests: tests.len(), seconds: begin.elapsed().as_secs_f64() })
}

/// Those in front run first: fast ones of the library together.
fn groups<'a>(tests: &[&'a Test]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    let mut together: Option<usize> = None;
    for test in tests {
        let is_fast = test.target == "lib" && test.seconds < FAST;
        match together.filter(|_| is_fast) {
            Some(at) => {
                groups[at].names.push(&test.name);
                groups[at].seconds += test.seconds;
            }
            None => {
                together = together.or(is_fast.then_some(groups.len()));
                let (target, names) = (test.target.as_str(), vec![&test.name]);
                let (case, seconds) = (test.case.as_str(), test.seconds);
                groups.push(Group { target, names, case, seconds });
            }
        }
    }
    groups
}
