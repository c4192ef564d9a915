//! Builds the copy, and leaves out of it what does not compile.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::Outcome;
use crate::copy::Copy;
use crate::spot::{Places, Texts};

/// Each round leaves out what the one before it has complained of, so few are needed.
const ROUNDS: usize = 20;

const PLAIN: &str = "--cap-lints=allow";
const COVERAGE: &str = "--cap-lints=allow -Cinstrument-coverage";

/// A test program.
pub struct Program {
    /// `lib`, `bin` for the command, or the name of the integration test.
    pub target: String,
    pub path: PathBuf,
}

/// Writes the sources with all bugs that are drawn and compile, and gives the numbers of those that do not compile.
pub fn settle(copy: &Copy, texts: &Texts, not_drawn: &BTreeSet<u32>) -> Outcome<BTreeSet<u32>> {
    let mut left_out = BTreeSet::new();
    for round in 1..=ROUNDS {
        let mut written: BTreeMap<&str, (String, Places)> = BTreeMap::new();
        for (file, text) in texts {
            let text =
                text.with(&|number| !left_out.contains(&number) && !not_drawn.contains(&number));
            copy.write(file, text.0.as_bytes())?;
            written.insert(file, text);
        }
        eprintln!("mutants: compiling, round {round}, {} left out so far", left_out.len());
        let complaints = check(copy)?;
        if complaints.is_empty() {
            return Ok(left_out);
        }
        let before = left_out.len();
        for find in [Complaint::exactly, Complaint::around] {
            for complaint in &complaints {
                for (file, range) in find(complaint) {
                    let places = written.get(file.as_str()).map(|(_, places)| places);
                    let places = places.into_iter().flatten();
                    let blamed = places.filter(|(_, place)| overlap(place, &range));
                    left_out.extend(blamed.map(|(number, _)| *number));
                }
            }
            if left_out.len() > before {
                break;
            }
        }
        if left_out.len() == before {
            let first = &complaints[0].text;
            return Err(format!(
                "the copy does not compile, and no bug in it is to blame:\n{first}"
            ));
        }
    }
    Err(format!("the copy does not compile after {ROUNDS} rounds"))
}

fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

/// An error of the compiler, with the places that it speaks of.
struct Complaint {
    text: String,
    spots: Vec<(String, Range<usize>)>,
}

impl Complaint {
    /// The places that it names.
    fn exactly(&self) -> Vec<(String, Range<usize>)> {
        self.spots.clone()
    }

    /// From the first of them to the last.
    fn around(&self) -> Vec<(String, Range<usize>)> {
        let mut around: Vec<(String, Range<usize>)> = Vec::new();
        for (file, spot) in &self.spots {
            match around.iter_mut().find(|(of, _)| of == file) {
                Some((_, range)) => *range = range.start.min(spot.start)..range.end.max(spot.end),
                None => around.push((file.clone(), spot.clone())),
            }
        }
        around
    }
}

fn check(copy: &Copy) -> Outcome<Vec<Complaint>> {
    let messages = cargo(copy, &["check", "--lib", "--bins", "--message-format=json"])?;
    let succeeded = messages.iter().any(|message| message["success"] == true);
    let mut complaints = Vec::new();
    for message in messages.iter().filter(|message| message["reason"] == "compiler-message") {
        let message = &message["message"];
        if message["level"] != "error" {
            continue;
        }
        let mut spots = Vec::new();
        collect(message, &mut spots);
        // The last of all errors only counts the others.
        if !spots.is_empty() {
            let text = message["rendered"].as_str().unwrap_or_default().to_owned();
            complaints.push(Complaint { text, spots });
        }
    }
    if complaints.is_empty() && !succeeded {
        return Err("cargo check failed, and the compiler complains of nothing".to_owned());
    }
    Ok(complaints)
}

fn collect(message: &Value, spots: &mut Vec<(String, Range<usize>)>) {
    for span in message["spans"].as_array().into_iter().flatten() {
        let file = span["file_name"].as_str().unwrap_or_default().to_owned();
        let at = |name: &str| span[name].as_u64().unwrap_or_default() as usize;
        spots.push((file, at("byte_start")..at("byte_end")));
    }
    for child in message["children"].as_array().into_iter().flatten() {
        collect(child, spots);
    }
}

/// Builds the test programs of these targets.
pub fn programs(copy: &Copy, targets: &[String]) -> Outcome<Vec<Program>> {
    eprintln!("mutants: building the tests of {}", targets.join(", "));
    let mut arguments = vec!["test", "--no-run", "--message-format=json"];
    for target in targets {
        match target.as_str() {
            "lib" => arguments.push("--lib"),
            "bin" => arguments.extend(["--bin", "zklock"]),
            target => arguments.extend(["--test", target]),
        }
    }
    let messages = cargo(copy, &arguments)?;
    let mut programs = Vec::new();
    for message in &messages {
        if let Some(rendered) = message["message"]["rendered"].as_str() {
            if message["message"]["level"] == "error" {
                return Err(format!("the tests do not compile:\n{rendered}"));
            }
        }
        let Some(path) = message["executable"].as_str() else { continue };
        if message["profile"]["test"] != true {
            continue;
        }
        let name = message["target"]["name"].as_str().unwrap_or_default();
        let target = match message["target"]["kind"][0].as_str() {
            Some(kind @ ("lib" | "bin")) => kind,
            _ => name,
        };
        let target = target.to_owned();
        programs.push(Program { target, path: path.into() });
    }
    for target in targets {
        if !programs.iter().any(|program| program.target == *target) {
            return Err(format!("there is no test target {target}"));
        }
    }
    Ok(programs)
}

/// What is the same for whatever builds or runs something of the copy.
pub fn in_copy(copy: &Copy, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    // Some tests build C programs against the library: that must be the same one.
    command
        .current_dir(&copy.root)
        .env("CARGO_TARGET_DIR", copy.root.join("target"))
        .env("RUSTFLAGS", if copy.coverage { COVERAGE } else { PLAIN })
        .env("LLVM_PROFILE_FILE", "/dev/null")
        .env_remove("ZKLOCK_MUTANT")
        .stdin(Stdio::null());
    command
}

/// What cargo says, as JSON, whether it succeeds or not.
fn cargo(copy: &Copy, arguments: &[&str]) -> Outcome<Vec<Value>> {
    let (command, more) = arguments.split_first().ok_or("no command for cargo")?;
    let output = in_copy(copy, "cargo")
        .arg(command)
        .args(["--package", "zklock", "--package", "zklock-cli"])
        .args([
            "--features",
            "zklock/capi,zklock/mysql-tls,zklock/postgres-tls,zklock/redis-tls,zklock-cli/sqlite",
        ])
        .args(more)
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let messages: Vec<Value> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let compiled = messages.iter().any(|message| message["reason"] == "build-finished");
    if !compiled {
        return Err(format!("cargo {command}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(messages)
}
