//! No file uses another that uses it in turn, directly or through others.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::Imports;
use super::tree::{assert_none, rust_files};

/// The circles: files that reach each other.
fn circles(edges: &BTreeMap<&str, BTreeSet<&str>>) -> BTreeSet<BTreeSet<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> = edges
        .keys()
        .map(|&file| {
            let (mut reached, mut next) = (BTreeSet::new(), vec![file]);
            while let Some(file) = next.pop() {
                let new =
                    edges.get(file).into_iter().flatten().filter(|used| reached.insert(**used));
                next.extend(new);
            }
            (file, reached)
        })
        .collect();
    let on_a_circle = reached.iter().filter(|(file, reached)| reached.contains(*file));
    let circle = |file: &str, from: &BTreeSet<&str>| -> BTreeSet<String> {
        let back = from.iter().filter(|used| reached[**used].contains(file));
        back.map(|used| (*used).to_owned()).collect()
    };
    on_a_circle.map(|(file, reached)| circle(file, reached)).collect()
}

/// What closes a circle: who uses whom in it.
fn uses_within(circle: &BTreeSet<String>, edges: &BTreeMap<&str, BTreeSet<&str>>) -> String {
    let uses = circle.iter().map(|file| {
        let used = edges[file.as_str()].iter().filter(|used| circle.contains(**used));
        format!("    {file} uses {}", used.copied().collect::<Vec<_>>().join(", "))
    });
    uses.collect::<Vec<_>>().join("\n")
}

#[test]
fn files_import_each_other_in_no_circle() {
    let files = rust_files();
    let mut complaints = Vec::new();
    for (package, least) in
        [("", 300), ("crates/zklock-cli/", 100), ("crates/zklock-lock-test/", 20)]
    {
        let sources = files
            .iter()
            .filter_map(|(path, source)| Some((path.strip_prefix(package)?, source.as_str())))
            .filter(|(path, _)| path.starts_with("src/"));
        let imports = Imports::of(sources);
        let edges = imports.edges();
        let uses = edges.values().map(BTreeSet::len).sum::<usize>();
        assert!(uses > least, "{package}: too few imports were found: {uses}");
        let found = circles(&edges);
        let circle = |one| format!("{package}: a circle:\n{}", uses_within(one, &edges));
        complaints.extend(found.iter().map(circle));
    }
    assert_none(&complaints);
}

/// The circles of a crate of these files, each with its imports.
fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let imports = Imports::of(files.iter().copied());
    circles(&imports.edges()).into_iter().map(|circle| circle.into_iter().collect()).collect()
}

#[test]
fn circles_are_found_by_every_kind_of_path() {
    let a = "src/a.rs";
    let b = "src/b.rs";
    for (in_a, in_b) in [
        ("use crate::b::B;", "use crate::a::A;"),
        ("use super::b::{self, B};", "fn f() -> crate::a::A {}"),
        ("use crate::{c, b::{x, y::Z}};", "use super::{a::A as Other};"),
        ("fn f() { super::b::f() }", "mod inner { fn g() { super::super::a::f() } }"),
        ("pub use crate::b::B; fn f(b: B) {}", "use crate::a;"),
        ("use crate::B;", "use crate::a::A;"),
        ("use crate::Renamed;", "use crate::a::A;"),
        ("use crate::b::*;", "use super::a::*;"),
    ] {
        let lib = "mod a; mod b; pub use b::B; pub use self::b::B as Renamed;";
        let found = circles_of(&[("src/lib.rs", lib), (a, in_a), (b, in_b)]);
        assert_eq!(found, [[a, b]], "{in_a} | {in_b}");
    }
    let three =
        [(a, "use crate::b::B;"), (b, "use crate::c::C;"), ("src/c.rs", "use crate::a::A;")];
    assert_eq!(circles_of(&three), [[a, b, "src/c.rs"]]);
    let parent = "mod child; struct Own; fn f() { child::g() }";
    let found = circles_of(&[("src/m/mod.rs", parent), ("src/m/child.rs", "use super::Own;")]);
    assert_eq!(found, [["src/m/child.rs", "src/m/mod.rs"]]);
    let program = [("src/main.rs", "mod a; fn f() { a::g() }"), ("src/a.rs", "use crate::f;")];
    assert_eq!(circles_of(&program), [["src/a.rs", "src/main.rs"]]);
}

#[test]
fn what_is_handed_on_and_what_tests_use_makes_no_circle() {
    let siblings = [
        ("src/m/mod.rs", "mod a; mod b; pub use a::A; pub(crate) use self::b::B;"),
        ("src/m/a.rs", "struct A; use super::B;"),
        ("src/m/b.rs", "struct B;"),
        ("src/other.rs", "use crate::m::{A, B};"),
    ];
    for files in [
        &siblings[..],
        &[
            ("src/a.rs", "use crate::b::B;"),
            ("src/b.rs", "#[cfg(test)] mod tests { use crate::a::A; }"),
        ],
        &[("src/a.rs", "use crate::b::B;"), ("src/b.rs", "#[cfg(all(test, x))]\nuse crate::a::A;")],
        &[
            ("src/a.rs", "use crate::b::B;"),
            ("src/b.rs", "#[cfg(test)]\npub(crate) mod tests;"),
            ("src/b/tests.rs", "use crate::a::A;"),
            ("src/b/tests/more.rs", "use crate::a::A; use super::super::B;"),
        ],
        &[
            ("src/a.rs", "use std::b::B; use b::C; // use crate::b;"),
            ("src/b.rs", "use crate::a::A;"),
        ],
        &[
            ("src/a.rs", "mod b { pub struct B; } use self::b::B;"),
            ("src/b.rs", "use crate::a::A;"),
        ],
    ] {
        assert_eq!(circles_of(files), [[""; 0]; 0], "{files:?}");
    }
}
