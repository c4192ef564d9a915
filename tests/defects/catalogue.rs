//! The table in `docs/defects.md` names exactly the tests that there are.

use std::collections::BTreeSet;
use std::process::Command;

const HERE: &str = "catalogue::";
/// What another test starts as a process of its own.
const CHILD: &str = "in_a_child_process_";

/// The tests of this program, as its harness lists them.
fn tests() -> BTreeSet<String> {
    let program = std::env::current_exe().unwrap();
    let listed = Command::new(program).args(["--list", "--format", "terse"]).output().unwrap();
    let text = String::from_utf8(listed.stdout).unwrap();
    let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
    let is_one = |name: &&str| !name.starts_with(HERE) && !name.contains(CHILD);
    names.filter(is_one).map(str::to_owned).collect()
}

/// The cells of the table's rows, without its head.
fn rows() -> Vec<Vec<String>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/defects.md");
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| line.starts_with("| ")).skip(1);
    let cells =
        |line: &str| line.trim_matches('|').split(" | ").map(|c| c.trim().to_owned()).collect();
    lines.map(cells).collect()
}

#[test]
fn the_table_names_exactly_the_tests_that_there_are() {
    let mut named = BTreeSet::new();
    for row in rows() {
        assert_eq!(row.len(), 4, "number, system, defect, test: {row:?}");
        assert_eq!(row[0], (named.len() + 1).to_string(), "rows are numbered from one: {row:?}");
        assert!(row[1..].iter().all(|cell| !cell.is_empty()), "{row:?}");
        let test = row[3].trim_matches('`').to_owned();
        assert!(named.insert(test), "named twice: {row:?}");
    }
    if !cfg!(all(feature = "postgres", feature = "redis", feature = "sqlite")) {
        named.retain(|test| !test.starts_with("stores::"));
    }
    let tests = tests();
    let missing: Vec<_> = tests.difference(&named).collect();
    let unknown: Vec<_> = named.difference(&tests).collect();
    assert!(missing.is_empty(), "tests without a row in docs/defects.md: {missing:#?}");
    assert!(unknown.is_empty(), "rows of docs/defects.md without a test: {unknown:#?}");
}
