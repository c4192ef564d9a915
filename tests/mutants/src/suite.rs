//! The tests, and which bugs each of them comes by.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use crate::Outcome;
use crate::build::{self, Program};
use crate::copy::Copy;

/// The tests that may find a bug, unless others are named.
pub const TARGETS: [&str; 13] = [
    "lib",
    "bin",
    "lock",
    "client",
    "raw_floor",
    "capi_queue",
    "zkr_lock",
    "adopt",
    "capi",
    "matrix",
    "recipes",
    "defects",
    "command",
];

/// Marks the processes of one run of tests.
const RUN: &str = "ZKLOCK_MUTANTS_RUN";

/// The last of what a test may take when nothing is planted.
const LIMIT: Duration = Duration::from_secs(600);

/// One test, as it went without a bug.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Test {
    pub target: String,
    pub name: String,
    /// The part of the step-fault matrix that it plays, or nothing.
    pub case: String,
    pub seconds: f64,
    pub passes: bool,
    /// The numbers of the bugs that it comes by.
    pub reaches: BTreeSet<u32>,
}

pub struct Suite {
    copy: Copy,
    programs: BTreeMap<String, PathBuf>,
    /// The fastest first.
    pub tests: Vec<Test>,
}

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Passed,
    Failed,
    TimedOut,
}

impl Suite {
    /// Builds the tests, and runs each alone that is `wanted`, by target and name, and in which
    /// cases; what is known of the same
    /// programs already is taken.
    pub fn record(
        copy: Copy,
        place: &Path,
        targets: &[String],
        wanted: &dyn Fn(&str, &str) -> BTreeSet<String>,
        jobs: usize,
    ) -> Outcome<Suite> {
        let programs = build::programs(&copy, targets)?;
        let scratch = place.join("scratch");
        fs::create_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
        let mut listed = Vec::new();
        for program in &programs {
            listed.extend(list(&copy, program)?);
        }
        let paths = programs.iter().map(|program| (program.target.clone(), program.path.clone()));
        let mut suite = Suite { copy, programs: paths.collect(), tests: Vec::new() };
        let known = Known::open(&place.join("reached.jsonl"), &programs)?;
        let todo: Vec<_> = listed
            .iter()
            .flat_map(|(target, name)| {
                let cases = wanted(target, name).into_iter();
                cases.map(move |case| (target.clone(), name.clone(), case))
            })
            .filter(|test| !known.has(test))
            .collect();
        let known = Mutex::new(known);
        each(jobs, &todo, "tests recorded", |number, (target, name, case)| {
            let reached = scratch.join(format!("reached-{number}"));
            let _ = fs::remove_file(&reached);
            let begin = Instant::now();
            let end = suite.run(target, &[name], case, None, Some(&reached), LIMIT)?;
            let text = fs::read_to_string(&reached).unwrap_or_default();
            let _ = fs::remove_file(&reached);
            let test = Test {
                target: target.clone(),
                name: name.clone(),
                case: case.clone(),
                seconds: begin.elapsed().as_secs_f64(),
                passes: end == End::Passed,
                reaches: text.lines().filter_map(|line| line.parse().ok()).collect(),
            };
            known.lock().map_err(|_| "a thread panicked")?.add(test)
        })?;
        suite.tests = known.into_inner().map_err(|_| "a thread panicked")?.tests;
        suite.tests.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        for test in suite.tests.iter().filter(|test| !test.passes) {
            eprintln!("mutants: {} {} fails without any bug: left out", test.target, test.name);
        }
        Ok(suite)
    }

    /// Runs tests of one program in a process, with a bug or with none.
    pub fn run(
        &self,
        target: &str,
        names: &[&String],
        case: &str,
        mutant: Option<u32>,
        reached: Option<&Path>,
        limit: Duration,
    ) -> Outcome<End> {
        let program =
            self.programs.get(target).ok_or(format!("there is no test target {target}"))?;
        let mut command = build::in_copy(&self.copy, program);
        command.args(["--exact", "--test-threads", "1"]).args(names);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.env("CARGO_MANIFEST_DIR", &self.copy.root);
        command.env("ZKLOCK_MUTANT", mutant.unwrap_or(0).to_string());
        if !case.is_empty() {
            command.env("ZKLOCK_CASE", case);
        }
        if let Some(reached) = reached {
            command.env("ZKLOCK_MUTANTS_REACHED", reached);
            if self.copy.coverage {
                // A few files for each program, which its processes add to.
                command.env("LLVM_PROFILE_FILE", self.copy.root.join("../profiles/%4m"));
            }
        }
        static RUNS: AtomicUsize = AtomicUsize::new(0);
        let run = format!("{}-{}", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
        command.env(RUN, &run);
        let mut child =
            command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
        let end = wait(&mut child, limit);
        end_all_of(&run);
        Ok(end)
    }
}

/// Ends what a run of tests has left, in whatever session or process group it is.
fn end_all_of(run: &str) {
    let mark = format!("{RUN}={run}");
    let is_of_run = |pid: i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    // What is ended may just have started another.
    loop {
        let pids = fs::read_dir("/proc").into_iter().flatten().filter_map(|entry| {
            entry.ok()?.file_name().to_str()?.parse().ok().filter(|pid| is_of_run(*pid))
        });
        let ended = pids.filter_map(Pid::from_raw).map(|pid| kill_process(pid, Signal::KILL));
        if ended.count() == 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits for the end of a process, which is brought about when its time is over.
fn wait(child: &mut Child, limit: Duration) -> End {
    let begin = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return End::Passed,
            Ok(Some(_)) | Err(_) => return End::Failed,
            Ok(None) if begin.elapsed() > limit => {
                let _ = child.kill();
                let _ = child.wait();
                return End::TimedOut;
            }
            Ok(None) => std::thread::sleep(pause),
        }
        pause = (2 * pause).min(Duration::from_millis(50));
    }
}

/// Target and name of each test of a program.
fn list(copy: &Copy, program: &Program) -> Outcome<Vec<(String, String)>> {
    let output = build::in_copy(copy, &program.path)
        .args(["--list", "--format", "terse"])
        .output()
        .map_err(|error| format!("{}: {error}", program.path.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
    Ok(names.map(|name| (program.target.clone(), name.to_owned())).collect())
}

/// What was recorded of these very programs, in a file that grows while they are.
struct Known {
    file: PathBuf,
    tests: Vec<Test>,
}

impl Known {
    fn open(file: &Path, programs: &[Program]) -> Outcome<Known> {
        let complaint = |error: std::io::Error| format!("{}: {error}", file.display());
        // Of another build, the numbers mean other bugs.
        let built =
            programs.iter().filter_map(|program| fs::metadata(&program.path).ok()?.modified().ok());
        let recorded = fs::metadata(file).and_then(|file| file.created().or(file.modified())).ok();
        let is_of_these =
            recorded.is_some_and(|recorded| built.max().is_some_and(|built| built < recorded));
        if !is_of_these && file.exists() {
            fs::remove_file(file).map_err(complaint)?;
        }
        let text = fs::read_to_string(file).unwrap_or_default();
        let tests = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok(Known { file: file.to_owned(), tests })
    }

    fn has(&self, (target, name, case): &(String, String, String)) -> bool {
        let is_it =
            |test: &Test| test.target == *target && test.name == *name && test.case == *case;
        self.tests.iter().any(is_it)
    }

    fn add(&mut self, test: Test) -> Outcome {
        append(&self.file, &test)?;
        self.tests.push(test);
        Ok(())
    }
}

/// Adds a line to a file of lines of JSON.
pub fn append(file: &Path, line: &impl Serialize) -> Outcome {
    use std::io::Write;
    let complaint = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let line = serde_json::to_string(line).map_err(|error| complaint(&error))?;
    let opened = fs::OpenOptions::new().create(true).append(true).open(file);
    let mut opened = opened.map_err(|error| complaint(&error))?;
    writeln!(opened, "{line}").map_err(|error| complaint(&error))
}

/// Does the work for each of them, several at once, and shows how far it is. Ends at the first trouble.
pub fn each<T: Sync>(
    jobs: usize,
    all: &[T],
    what: &'static str,
    work: impl Fn(usize, &T) -> Outcome + Sync,
) -> Outcome {
    let bar = ProgressBar::new(all.len() as u64);
    let style = ProgressStyle::with_template("{elapsed_precise} {pos}/{len} {msg}, {eta} left");
    bar.set_style(style.unwrap_or(ProgressStyle::default_bar()));
    bar.set_message(what);
    let next = AtomicUsize::new(0);
    let trouble = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let number = next.load(Ordering::Relaxed);
                    if let Err(what) = work(number, one) {
                        next.store(all.len(), Ordering::Relaxed);
                        if let Ok(mut trouble) = trouble.lock() {
                            trouble.get_or_insert(what);
                        }
                        return;
                    }
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish();
    match trouble.into_inner() {
        Ok(None) => Ok(()),
        Ok(Some(trouble)) => Err(trouble),
        Err(_) => Err("a thread panicked".to_owned()),
    }
}
