//! Runs the tests that come by a bug until one of them finds it.

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

/// Judges all of `todo`; none is begun after `end`.
pub fn all(
    suite: &Suite,
    todo: &[&Mutant],
    limit: Duration,
    end: Option<Duration>,
    jobs: usize,
    results: &mut Results,
) -> Outcome {
    let begin = Instant::now();
    let results = Mutex::new(results);
    suite::each(jobs, todo, "bugs judged", |_, mutant| {
        if end.is_some_and(|end| begin.elapsed() > end) {
            return Ok(());
        }
        let verdict = judge(suite, mutant, limit)?;
        results.lock().map_err(|_| "a thread panicked")?.record(&mutant.key, verdict)
    })
}

/// Tests of one program that run in one process.
struct Group<'a> {
    target: &'a str,
    names: Vec<&'a String>,
    case: &'a str,
    seconds: f64,
}

fn judge(suite: &Suite, mutant: &Mutant, limit: Duration) -> Outcome<Verdict> {
    let mut tests: Vec<&Test> = suite
        .tests
        .iter()
        .filter(|test| test.passes && test.reaches.contains(&mutant.number))
        .collect();
    if tests.is_empty() {
        return Ok(Verdict::Unreached);
    }
    // Stable: the fastest first otherwise.
    tests.sort_by_key(|test| !mutant.names(&test.target, &test.name, &test.case));
    let begin = Instant::now();
    for group in groups(&tests) {
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
