//! Which planted bugs do the tests find?
//!
//! All bugs of a kind go into one copy of the library, each behind a switch of its own, so that a bug
//! costs the run of a few tests, and no compilation. There are two kinds. [`planted`] bugs are written
//! by hand, in `list/`: what real lock libraries got wrong, and what is subtle here. [`generic`] ones
//! come from the syntax: a comparison off by one, a statement left out, a function that does nothing.
//!
//! Which tests come by a bug is recorded once ([`suite`]); only those can find it, the fastest first
//! ([`judge`]). Verdicts are kept ([`results`]), so a run can be ended and taken up again.

mod build;
mod copy;
mod equivalent;
mod generic;
mod judge;
mod mutant;
mod planted;
mod report;
mod results;
mod spot;
mod suite;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::mutant::{By, Mutant};

/// What went wrong, in words for the person who runs this.
type Outcome<T = ()> = Result<T, String>;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Bugs written by hand, in tests/mutants/list.
    Planted,
    /// Bugs made from the syntax of the code.
    Generic,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Planted => "planted",
            Kind::Generic => "generic",
        }
    }
}

/// Plants bugs in a copy of the library, one at a time, and runs the tests that could find each.
///
/// Verdicts are kept below target/mutants, and a run takes up where the last one ended. Exits with 1 if
/// a bug survives that is not argued to be none.
#[derive(Parser)]
#[command(
    name = "mutants",
    after_help = "\
Examples:
  mutants planted                       every bug of tests/mutants/list
  mutants planted heartbeat             those whose name contains the word
  mutants generic src/lock src/client   bugs made from the syntax of these files
  mutants generic --minutes 30          as far as it comes in half an hour
  mutants generic --sample 40 --seed 7  40 of each folder, drawn by the seed
  mutants generic --again               survivors again, after a test was added
  mutants generic --report              the table of what is known, and the survivors"
)]
struct Arguments {
    kind: Kind,
    /// Parts of names or of paths; all without any.
    chosen: Vec<String>,
    /// After how many seconds of tests no further test is begun for a bug.
    #[arg(long, default_value_t = 120, value_name = "SECONDS")]
    limit: u64,
    /// When to begin no further bug.
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<u64>,
    /// How many bugs at once.
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, Into::into))]
    jobs: usize,
    /// Judges the survivors again, and not only what has no verdict.
    #[arg(long)]
    again: bool,
    /// Judges so many generic bugs of each folder, drawn by the seed, and not all.
    #[arg(long, value_name = "COUNT")]
    sample: Option<usize>,
    /// What draws the sample: another number, another sample.
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    seed: u64,
    /// Records with the tests which lines they execute, for llvm-cov, in target/mutants/KIND/profiles.
    #[arg(long)]
    coverage: bool,
    /// Lists the bugs and ends.
    #[arg(long)]
    list: bool,
    /// Reports what is known and ends.
    #[arg(long)]
    report: bool,
    /// Test targets that may find a bug, lib and bin among them; more are slower.
    #[arg(long, value_delimiter = ',', default_values = suite::TARGETS)]
    targets: Vec<String>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(trouble) => {
            eprintln!("mutants: {trouble}");
            ExitCode::from(2)
        }
    }
}

/// Whether nothing survived.
fn run(arguments: &Arguments) -> Outcome<bool> {
    let root = root()?;
    let place = root.join("target/mutants").join(arguments.kind.name());
    let (texts, mutants) = match arguments.kind {
        Kind::Planted => planted::all(&root)?,
        Kind::Generic => generic::all(&root)?,
    };
    let named = |mutant: &Mutant| {
        arguments.chosen.is_empty()
            || arguments.chosen.iter().any(|part| mutant.key.contains(part.trim_end_matches('/')))
    };
    let mut results = results::Results::open(&place)?;
    // The sample, of those that may compile.
    let drawn = |results: &results::Results| -> BTreeSet<u32> {
        let viable = mutants.iter().filter(|mutant| named(mutant) && results.may_build(mutant));
        match arguments.sample {
            Some(count) => generic::draw(viable, count, arguments.seed),
            None => viable.map(|mutant| mutant.number).collect(),
        }
    };
    if arguments.list {
        let drawn = drawn(&results);
        for mutant in mutants.iter().filter(|mutant| drawn.contains(&mutant.number)) {
            println!("{}", mutant.headline());
        }
        return Ok(true);
    }
    if !arguments.report {
        let tree = copy::copy(&root, &place, &texts, arguments.coverage)?;
        // About a third does not compile. What is built is the same in each run, so that cargo builds little.
        let wanted = mutants.iter().filter(|mutant| named(mutant));
        let built: BTreeSet<u32> = match arguments.sample {
            Some(count) => generic::draw(wanted, 2 * count, arguments.seed),
            None => mutants.iter().map(|mutant| mutant.number).collect(),
        };
        let is_out =
            |mutant: &&Mutant| !built.contains(&mutant.number) || !results.may_build(mutant);
        let not_drawn = mutants.iter().filter(is_out).map(|it| it.number).collect();
        let left_out = build::settle(&tree, &texts, &not_drawn)?;
        for mutant in mutants.iter().filter(|mutant| left_out.contains(&mutant.number)) {
            if arguments.kind == Kind::Planted {
                return Err(format!("{} does not compile; see above", mutant.headline()));
            }
            results.record(&mutant.key, results::Verdict::NotBuilt)?;
        }
        let drawn = drawn(&results);
        let chosen = |mutant: &&Mutant| drawn.contains(&mutant.number);
        // What is planted by hand names its tests; what comes from the syntax meets them all.
        let mut targets = arguments.targets.clone();
        let named: Vec<_> = mutants.iter().filter(chosen).flat_map(|it| &it.found_by).collect();
        if arguments.kind == Kind::Planted {
            targets.retain(|target| named.iter().any(|by| by.target == *target));
        }
        let wanted = |target: &str, name: &str| -> BTreeSet<String> {
            let cases = named.iter().filter(|by| by.names(target, name));
            match arguments.kind {
                Kind::Generic => [String::new()].into(),
                Kind::Planted => cases.map(|by| by.case.clone()).collect(),
            }
        };
        let suite = suite::Suite::record(tree, &place, &targets, &wanted, arguments.jobs)?;
        for (by, mutant) in mutants.iter().filter(chosen).flat_map(named_tests) {
            if !suite.tests.iter().any(|test| by.names(&test.target, &test.name)) {
                return Err(format!("{}: there is no test `{by}`", mutant.headline()));
            }
        }
        let todo: Vec<_> = mutants
            .iter()
            .filter(|mutant| chosen(mutant) && results.is_wanted(mutant, arguments.again))
            .collect();
        let limit = Duration::from_secs(arguments.limit);
        let end = arguments.minutes.map(|minutes| Duration::from_secs(60 * minutes));
        judge::all(&suite, &mutants, &todo, limit, end, arguments.jobs, &mut results)?;
    }
    let equivalent = equivalent::load(&root)?;
    let drawn = drawn(&results);
    let mutants: Vec<_> = mutants.into_iter().filter(|it| drawn.contains(&it.number)).collect();
    Ok(report::print(&mutants, &results, &equivalent))
}

/// The tests that should find it.
fn named_tests(mutant: &Mutant) -> impl Iterator<Item = (&By, &Mutant)> {
    mutant.found_by.iter().map(move |by| (by, mutant))
}

/// The checkout that this was built in, or the one that it is started in.
fn root() -> Outcome<PathBuf> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    built.canonicalize().map_err(|error| format!("{}: {error}", built.display()))
}
