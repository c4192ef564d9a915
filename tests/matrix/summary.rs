//! The table at the end.

use std::fmt::Write as _;
use std::io::Write as _;

use crate::pool::Verdict;
use crate::recipe::RECIPES;

/// Prints how many cases there were of each recipe and fault, and how many failed.
///
/// Straight to stderr: a passing test's own output is not shown.
pub fn print(verdicts: &[Verdict]) {
    let mut table = format!("\n{:<26}", "cases, failed");
    for recipe in RECIPES {
        let _ = write!(table, "{:>12}", recipe.name);
    }
    table.push('\n');
    let mut rows: Vec<String> = Vec::new();
    for verdict in verdicts {
        let row = verdict.case.row();
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    rows.sort_unstable();
    for row in rows {
        let _ = write!(table, "{row:<26}");
        for recipe in RECIPES {
            let of = |verdict: &&Verdict| {
                verdict.case.row() == row && verdict.case.recipe.name == recipe.name
            };
            table.push_str(&cell(verdicts.iter().filter(of)));
        }
        table.push('\n');
    }
    let _ = write!(table, "{:<26}", "all");
    for recipe in RECIPES {
        let of = |verdict: &&Verdict| verdict.case.recipe.name == recipe.name;
        table.push_str(&cell(verdicts.iter().filter(of)));
    }
    let unmet: Vec<_> = verdicts.iter().filter(|verdict| !verdict.reached).collect();
    let _ = writeln!(table, "\n{} cases", verdicts.len());
    for verdict in unmet {
        let _ = writeln!(table, "never came to its step: {}", verdict.case);
    }
    let _ = std::io::stderr().write_all(table.as_bytes());
}

fn cell<'a>(verdicts: impl Iterator<Item = &'a Verdict>) -> String {
    let (mut cases, mut failed) = (0, 0);
    for verdict in verdicts {
        cases += 1;
        failed += usize::from(verdict.failure.is_some());
    }
    format!("{:>12}", if failed == 0 { format!("{cases}") } else { format!("{cases}, {failed}") })
}
