//! The table, and the survivors.

use std::collections::BTreeMap;

use crate::equivalent::Equivalent;
use crate::mutant::Mutant;
use crate::results::{Results, Verdict};

#[derive(Default)]
struct Row {
    viable: usize,
    found: usize,
    equivalent: usize,
    survived: usize,
    unreached: usize,
    undecided: usize,
    open: usize,
}

impl Row {
    /// Of those that are bugs.
    fn share(&self) -> String {
        let judged = self.viable - self.open - self.equivalent;
        if judged == 0 {
            return "-".to_owned();
        }
        format!("{:.1} %", 100.0 * self.found as f64 / judged as f64)
    }

    fn add(&mut self, other: &Row) {
        self.viable += other.viable;
        self.found += other.found;
        self.equivalent += other.equivalent;
        self.survived += other.survived;
        self.unreached += other.unreached;
        self.undecided += other.undecided;
        self.open += other.open;
    }
}

/// Prints what is known; whether nothing is open and nothing survived.
pub fn print(mutants: &[Mutant], results: &Results, equivalent: &[Equivalent]) -> bool {
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    let mut survivors = Vec::new();
    let mut argued = Vec::new();
    for mutant in mutants {
        let why = equivalent.iter().find(|equivalent| equivalent.mutant == mutant.name());
        let verdict = results.of(mutant);
        if matches!(verdict, Some(Verdict::NotBuilt)) {
            continue;
        }
        let row = rows.entry(mutant.folder()).or_default();
        row.viable += 1;
        match verdict {
            None => row.open += 1,
            Some(Verdict::Found { .. } | Verdict::Hangs { .. }) => row.found += 1,
            Some(_) if why.is_some() => {
                row.equivalent += 1;
                argued.extend(why.map(|equivalent| (mutant, &equivalent.why)));
            }
            Some(Verdict::Unreached) => {
                row.unreached += 1;
                survivors.push((mutant, "no test comes by".to_owned()));
            }
            Some(Verdict::Survived { tests, .. }) => {
                row.survived += 1;
                survivors.push((mutant, format!("{tests} tests come by")));
            }
            Some(Verdict::Undecided { seconds }) => {
                row.undecided += 1;
                survivors.push((mutant, format!("undecided after {seconds:.0} s of tests")));
            }
            Some(Verdict::NotBuilt) => {}
        }
    }
    if !survivors.is_empty() {
        println!("Survivors:");
        for (mutant, how) in &survivors {
            println!("  {} ({how})", mutant.headline());
        }
        println!();
    }
    if !argued.is_empty() {
        println!("No bugs:");
        for (mutant, why) in &argued {
            println!("  {}\n    {why}", mutant.headline());
        }
        println!();
    }
    if mutants.iter().any(|mutant| !mutant.found_by.is_empty()) {
        each(mutants, results);
    }
    println!(
        "| folder | viable | found | of those judged | none | survived | unreached | undecided | open |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    let mut sum = Row::default();
    for (folder, row) in &rows {
        line(folder, row);
        sum.add(row);
    }
    line("**all**", &sum);
    survivors.is_empty() && sum.open == 0
}

/// What finds each bug, and in how many seconds of tests.
fn each(mutants: &[Mutant], results: &Results) {
    println!("| bug | what it does | found by | after |");
    println!("|---|---|---|---:|");
    for mutant in mutants {
        let (by, seconds) = match results.of(mutant) {
            Some(Verdict::Found { by, seconds } | Verdict::Hangs { by, seconds }) => {
                (format!("`{by}`"), format!("{seconds:.1} s"))
            }
            _ => ("nothing yet".to_owned(), "-".to_owned()),
        };
        println!("| {} | {} | {by} | {seconds} |", mutant.place, mutant.what);
    }
    println!();
}

fn line(name: &str, row: &Row) {
    let Row { viable, found, equivalent, survived, unreached, undecided, open } = row;
    let share = row.share();
    println!(
        "| {name} | {viable} | {found} | {share} | {equivalent} | {survived} | {unreached} | {undecided} | {open} |"
    );
}
