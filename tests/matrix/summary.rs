//! The table at the end.

use std::fmt::Write as _;
use std::io::Write as _;

use crate::fault::Fault;
use crate::pool::Verdict;
use crate::recipe::RECIPES;

/// Prints how many cases there were of each recipe and fault, and how many failed.
///
/// Straight to stderr: a passing test's own output is not shown.
pub fn print(verdicts: &[Verdict]) {
    let mut table = format!("\n{:<18}", "cases, failed");
    for recipe in RECIPES {
        let _ = write!(table, "{:>12}", recipe.name);
    }
    table.push('\n');
    for fault in Fault::ALL {
        let _ = write!(table, "{:<18}", fault.to_string());
        for recipe in RECIPES {
            let of = |verdict: &&Verdict| {
                verdict.case.fault == fault && verdict.case.recipe.name == recipe.name
            };
            table.push_str(&cell(verdicts.iter().filter(of)));
        }
        table.push('\n');
    }
    let _ = write!(table, "{:<18}", "all");
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
