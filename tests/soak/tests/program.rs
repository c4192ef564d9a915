//! The program `soak`, as a user runs it: seconds of faults on a real ensemble.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::once;

/// The fields that programs rely on.
const PROMISED: [&str; 21] = [
    "seed",
    "first_id",
    "tick_seconds",
    "sync_limit_seconds",
    "seconds",
    "processes",
    "sessions",
    "locks",
    "session_timeout_seconds",
    "acquisitions",
    "faults",
    "faults_by_kind",
    "robbed",
    "longest_wait_seconds",
    "transactions",
    "tenures",
    "hung",
    "orphans",
    "violations",
    "violations_by_kind",
    "complaints",
];

fn soak(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_soak"));
    command.args(args).stdin(Stdio::null());
    command.output().expect("soak runs")
}

fn report(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{complaints}"))
}

/// One run for all tests: how it ended, and the directory with its evidence.
struct Run {
    directory: PathBuf,
    code: i32,
    report: Value,
}

impl Run {
    fn shared() -> Run {
        let directory = once("soak", |directory| {
            let [svg, keep] = ["soak.svg", "evidence"].map(|name| directory.join(name));
            let (svg, keep) = (svg.display().to_string(), keep.display().to_string());
            let args = ["--seconds", "12", "--session-timeout", "2", "--json"];
            let output = soak(&[&args[..], &["--svg", &svg, "--keep", &keep]].concat());
            let outcome = json!([output.status.code(), report(&output)]);
            fs::write(directory.join("outcome"), outcome.to_string()).unwrap();
        });
        let outcome = fs::read_to_string(directory.join("outcome")).unwrap();
        let (code, report) = serde_json::from_str(&outcome).unwrap();
        Run { directory, code, report }
    }

    /// A copy of the evidence, to be tampered with.
    fn copy(&self) -> TempDir {
        let copy = tempfile::tempdir().unwrap();
        copy_all(&self.directory.join("evidence"), copy.path());
        copy
    }
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in from.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_all(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}

fn check(evidence: &Path) -> Output {
    soak(&["--check", &evidence.display().to_string(), "--json"])
}

#[test]
fn the_history_is_accepted_by_the_checker_and_rejected_if_its_looks_come_later() {
    let copy = Run::shared().copy();
    let file = copy.path().join("history");
    let [directory, path] = [copy.path(), &file].map(|path| path.display().to_string());
    let output = soak(&["--check", &directory, "--json", "--history", &path]);
    assert_eq!(output.status.code(), Some(0));
    let text = fs::read_to_string(&file).unwrap();
    let verdict = history::check(&text).unwrap();
    assert_eq!(verdict.violations, []);
    for kind in ["mutex", "election", "read", "write", "semaphore"] {
        assert!(verdict.holds.get(kind) > Some(&0), "{kind}: {verdict}");
    }
    let later = text.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        if line["event"] == "held" {
            line["at"] = (line["at"].as_i64().unwrap() + 2_000_000_000).into();
        }
        format!("{line}\n")
    });
    let verdict = history::check(&later.collect::<String>()).unwrap();
    assert!(verdict.violations.iter().any(|violation| violation.what == "two holders"));
}

#[test]
fn seconds_of_faults_show_no_violation() {
    let run = Run::shared();
    let report = &run.report;
    assert_eq!(run.code, 0, "{report:#}");
    for field in PROMISED {
        assert!(!report[field].is_null(), "{field}: {report:#}");
    }
    for field in ["violations", "orphans", "hung"] {
        assert_eq!(report[field], 0, "{report:#}");
    }
    // Nothing is proven where nothing happened.
    assert_eq!((&report["processes"], &report["sessions"]), (&8.into(), &64.into()));
    assert!(report["faults"].as_u64().unwrap() > 0, "{report:#}");
    for sort in ["poll", "queue", "watch", "read-write", "semaphore", "election"] {
        assert!(report["acquisitions_by_sort"][sort].as_u64().unwrap() > 0, "{report:#}");
    }
    let picture = fs::read_to_string(run.directory.join("soak.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
}

#[test]
fn evidence_that_was_kept_leads_to_the_same_verdict() {
    let run = Run::shared();
    let again = check(&run.directory.join("evidence"));
    assert_eq!(again.status.code(), Some(0));
    assert_eq!(report(&again), run.report);
}

/// The thread that held first, by what its process wrote down.
fn holder(journal: &str) -> Option<&str> {
    journal.lines().find_map(|line| {
        let mut words = line.split('\t').skip(1);
        let thread = words.next()?;
        (words.next()? == "got").then_some(thread)
    })
}

/// The journal of a process that held a lock: on a busy machine, not each does.
fn journal_of_a_holder(evidence: &Path) -> (PathBuf, String) {
    let journals = evidence.join("journals").read_dir().unwrap();
    let read = |path: PathBuf| fs::read_to_string(&path).map(|text| (path, text)).unwrap();
    let mut journals = journals.map(|entry| read(entry.unwrap().path()));
    journals.find(|(_, text)| holder(text).is_some()).unwrap()
}

#[test]
fn a_belief_that_the_log_does_not_bear_out_is_a_violation() {
    let run = Run::shared();
    let copy = run.copy();
    let (journal, mut text) = journal_of_a_holder(copy.path());
    // It says that it still holds, at the end of a run in which it has released everything.
    let run_file = fs::read_to_string(copy.path().join("run.json")).unwrap();
    let end = serde_json::from_str::<Value>(&run_file).unwrap()["end_ns"].as_i64().unwrap();
    let process = journal.file_stem().unwrap().to_str().unwrap();
    let thread = holder(&text).unwrap().to_owned();
    let client = format!("client {process}.{thread}");
    text.push_str(&format!("{end}\t{thread}\tlook\theld\n"));
    fs::write(&journal, text).unwrap();
    let output = check(copy.path());
    assert_eq!(output.status.code(), Some(1));
    let report = report(&output);
    assert_eq!(report["violations"], 1, "{report:#}");
    let complaint = report["complaints"][0].as_str().unwrap();
    assert!(complaint.contains("believed after its tenure"), "{complaint}");
    // What the log has of it, and what the client has written down.
    let story: Vec<&str> =
        report["stories"][0].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    for part in ["the servers' log:", "what the clients wrote down:"] {
        assert!(story.contains(&part), "{story:#?}");
    }
    let looked = |line: &&str| line.ends_with(&format!("{client}: look held"));
    assert!(story.iter().any(looked), "{story:#?}");
    // The end of its session, and such of its writes as others have not crowded out.
    let by_it = |line: &&str| line.contains(&format!("({client}) "));
    assert!(story.iter().any(by_it), "{story:#?}");
}

#[test]
fn the_evidence_of_a_violation_stays() {
    let scratch = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_soak"));
    command.args(["--seconds", "3", "--processes", "1", "--sessions", "2", "--locks", "1"]);
    command.args(["--only", "lock_deleted"]).env("TMPDIR", scratch.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let soak = command.spawn().unwrap();
    let journals = || {
        let entries = scratch.path().read_dir().unwrap().map(|it| it.unwrap().path());
        entries.map(|it| it.join("journals").join("1.tsv")).find(|it| it.exists())
    };
    zklock_testing::eventually("a client has begun", || {
        journals().is_some_and(|it| fs::read_to_string(it).is_ok_and(|text| !text.is_empty()))
    });
    // What none of its threads believes.
    let mut journal = fs::OpenOptions::new().append(true).open(journals().unwrap()).unwrap();
    journal.write_all(b"1\t99\tlook\theld\n").unwrap();
    let output = soak.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let kept = said.rsplit("soak --check ").next().and_then(|it| it.split_whitespace().next());
    let again = check(Path::new(kept.expect(&said)));
    assert_eq!(again.status.code(), Some(1));
    assert_eq!(report(&again)["violations"], 1);
}

#[test]
fn a_run_is_not_made_over_the_evidence_of_another() {
    let run = Run::shared();
    let kept = run.directory.join("evidence").display().to_string();
    let output = soak(&["--seconds", "1", "--keep", &kept]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is a run in it"));
}

#[test]
fn bad_arguments_are_told() {
    for args in [&["--seconds", "0"][..], &["--minutes", "1", "--seconds", "1"], &["--what"]] {
        assert_eq!(soak(args).status.code(), Some(2), "{args:?}");
    }
    let help = soak(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&help.stdout).contains("--seed"));
}
