//! Files use each other downwards only, and in no circle.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::{Imports, Use};
use super::tree::{assert_none, rust_files};

/// Which floors each uses, besides what every floor may share (errors, say), which uses none.
const BELOW: &[(&str, &[&str])] = &[
    ("runtime", &[]),
    ("raw", &[]),
    ("client", &["raw", "runtime"]),
    ("lock", &["runtime"]),
    // Of the floor below only what notices a fork, and the end of the process.
    ("local", &["lock", "runtime", "raw"]),
    ("leased", &["lock", "runtime", "raw"]),
    ("sql", &["leased", "lock", "runtime"]),
    ("redis", &["leased", "lock", "runtime"]),
    ("zookeeper", &["client", "lock", "runtime"]),
    ("recipes", &["client", "lock", "runtime"]),
    ("stores", &["client", "leased", "local", "lock", "redis", "runtime", "sql", "zookeeper"]),
    ("capi", &["raw", "client", "lock", "zookeeper", "recipes", "runtime", "stores"]),
];

/// The file that declares all floors. A file that uses it can reach each of them.
const ROOT: &str = "src/lib.rs";

fn may_use(from: &str, to: &str) -> bool {
    let floor = |file: &str| {
        let name = file.trim_start_matches("src/").trim_end_matches(".rs");
        name.split('/').next().unwrap_or_default().to_owned()
    };
    let below =
        |floor: &str| BELOW.iter().find(|(name, _)| *name == floor).map(|(_, below)| *below);
    let (upper, lower) = (floor(from), floor(to));
    let is_floor = to == ROOT || below(&lower).is_some();
    from == ROOT
        || upper == lower
        || !is_floor
        || below(&upper).is_some_and(|below| below.contains(&lower.as_str()))
}

/// The uses that the floors forbid, and files of other places.
fn upward(imports: &Imports) -> Vec<String> {
    let uses = imports.uses().into_iter().filter(|one| !may_use(one.from, one.to));
    let uses = uses.map(|Use { from, to, .. }| format!("{from} uses {to}, which is not below it"));
    let takes_in =
        imports.taking_in_files().map(|file| format!("{file} takes in a file of another place"));
    uses.chain(takes_in).collect()
}

/// The uses that close circles.
fn circles(imports: &Imports) -> Vec<String> {
    let mut used: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    // A name that is handed on, and not used there, is used by those who import it from there.
    for Use { from, to, .. } in imports.uses().into_iter().filter(|one| !one.handed_on) {
        used.entry(from).or_default().insert(to);
    }
    let reaches = |from: &str, to: &str| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(file) = next.pop().filter(|file| *file != to) {
            next.extend(used.get(file).into_iter().flatten().filter(|file| seen.insert(**file)));
        }
        seen.contains(to) || from == to
    };
    let all = used.iter().flat_map(|(from, used)| used.iter().map(move |to| (*from, *to)));
    all.filter(|(from, to)| reaches(to, from))
        .map(|(from, to)| format!("{from} uses {to}"))
        .collect()
}

#[test]
fn files_use_each_other_downwards_and_in_no_circle() {
    let files = rust_files();
    let mut complaints = Vec::new();
    for (package, least) in
        [("", 300), ("crates/zklock-cli/", 100), ("crates/zklock-lock-test/", 20)]
    {
        let sources = files
            .iter()
            .filter_map(|(path, text)| Some((path.strip_prefix(package)?, text.as_str())));
        let imports = Imports::of(sources.filter(|(path, _)| path.starts_with("src/")));
        let uses = imports.uses().len();
        assert!(uses > least, "{package}: too few uses were found: {uses}");
        complaints
            .extend(circles(&imports).iter().map(|one| format!("{package}: in a circle, {one}")));
        if package.is_empty() {
            complaints.extend(upward(&imports));
        }
    }
    assert_none(&complaints);
}

fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
    circles(&Imports::of(files.iter().copied()))
}

#[test]
fn circles_are_found_by_every_kind_of_path() {
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
        let found = circles_of(&[("src/lib.rs", lib), ("src/a.rs", in_a), ("src/b.rs", in_b)]);
        assert_eq!(found, ["src/a.rs uses src/b.rs", "src/b.rs uses src/a.rs"], "{in_a} | {in_b}");
    }
    for (files, uses) in [
        (
            &[
                ("src/a.rs", "use crate::b::B;"),
                ("src/b.rs", "use crate::c::C;"),
                ("src/c.rs", "use crate::a::A;"),
            ][..],
            3,
        ),
        (
            &[
                ("src/m/mod.rs", "mod child; struct Own; fn f() { child::g() }"),
                ("src/m/child.rs", "use super::Own;"),
            ],
            2,
        ),
        (&[("src/main.rs", "mod a; fn f() { a::g() }"), ("src/a.rs", "use crate::f;")], 2),
    ] {
        assert_eq!(circles_of(files).len(), uses, "{files:?}");
    }
}

#[test]
fn what_is_handed_on_and_what_tests_use_makes_no_circle() {
    let siblings = [
        ("src/m/mod.rs", "mod a; mod b; pub use a::A; pub(crate) use self::b::B;"),
        ("src/m/a.rs", "struct A; use super::B;"),
        ("src/m/b.rs", "struct B;"),
        ("src/other.rs", "use crate::m::{A, B};"),
    ];
    let a = ("src/a.rs", "use crate::b::B;");
    for files in [
        &siblings[..],
        &[a, ("src/b.rs", "#[cfg(test)] mod tests { use crate::a::A; }")],
        &[a, ("src/b.rs", "#[cfg(all(test, x))]\nuse crate::a::A;")],
        &[a, ("src/b.rs", "struct B { #[cfg(test)] a: crate::a::A, b: u8 }")],
        &[
            a,
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
        assert_eq!(circles_of(files), [""; 0], "{files:?}");
    }
}

#[test]
fn each_way_up_is_found_and_each_way_down_allowed() {
    for (table, up) in [(UP, true), (DOWN, false)] {
        for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (file, source) = line.split_once(' ').expect("a file and a source");
            let source = source.trim_start().replace("\\n", "\n");
            let mut files: BTreeMap<&str, &str> = SKELETON.iter().copied().collect();
            files.insert(file, &source);
            let found = upward(&Imports::of(files));
            assert_eq!(!found.is_empty(), up, "{file}: {source}: {found:?}");
        }
    }
}

const SKELETON: &[(&str, &str)] = &[
    (
        ROOT,
        "mod raw; pub mod client; pub use client::Client; pub use crate::lock::{Guard as Held, Lock};",
    ),
    ("src/error.rs", ""),
    ("src/capi/mod.rs", ""),
    ("src/client/mod.rs", "struct Client;"),
    ("src/lock/mod.rs", "struct Guard; struct Lock;"),
    ("src/raw/mod.rs", "struct Handle;"),
    ("src/recipes/mod.rs", ""),
    ("src/runtime/mod.rs", ""),
    ("src/zookeeper/mod.rs", ""),
];

/// One case a line: a file and what stands in it, with `\n` for a new line.
const UP: &str = r##"
    src/raw/handle.rs    use crate::client::Client;
    src/raw/handle.rs    use crate::{error::Error, client::{self}, raw::Slot};
    src/raw/handle.rs    use super::super::lock;
    src/raw/mod.rs       pub(crate) use super::lock::Guard;
    src/raw/handle.rs    fn f() { let c = crate::client::connect(); }
    src/raw/handle.rs    fn f(h: &super::super::lock::Guard) {}
    src/raw/handle.rs    use crate::Client;
    src/client/node.rs   fn f() -> crate::Held { g() }
    src/raw/handle.rs    use crate as all; fn f() { all::lock::g() }
    src/raw/handle.rs    use crate::{self as all};
    src/raw.rs           use super::*;
    src/raw/handle.rs    mod tests { use super::super::super::client::Client; }
    src/raw/handle.rs    mod a { mod b {} } use super::super::client;
    src/raw/handle.rs    macro_rules! m { () => { $crate::lock::f() } }
    src/error.rs         use crate::raw::Code;
    src/client/mod.rs    use crate::\n    lock::\n    Lock;
    src/lock/mod.rs      use crate::capi::zkl_lock;
    src/lock/mod.rs      use crate::client::Client;
    src/lock/mod.rs      use crate::zookeeper::name;
    src/runtime/mod.rs   use crate::raw::Handle;
    src/lock/mod.rs      use crate::raw::Handle;
    src/recipes/queue.rs fn f(h: crate::raw::Handle) {}
    src/raw/mod.rs       #[path = "../lock/mod.rs"] mod other;
    src/zookeeper/mod.rs #[path = "../../tests/inside/simulation/mod.rs"] mod simulation;
    src/client/node.rs   include!("../raw/mod.rs");
"##;

const DOWN: &str = r##"
    src/raw/handle.rs    use crate::error::Error; use super::slots; use self::a::b;
    src/raw/handle.rs    /* /* */ crate::lock::x */ use std::fmt; // use crate::client;
    src/raw/handle.rs    const A: &str = "use crate::client;"; const B: char = '"';
    src/raw/handle.rs    const A: &str = r#"" crate::lock::f()"#; fn f<'a>(x: &'a u8) {}
    src/error.rs         mod tests { use super::*; }
    src/raw/handle.rs    mod tests { use super::*; use super::super::slots; }
    src/raw/handle.rs    pub(crate) fn f() -> impl Sized + use<> {} pub(super) struct X;
    src/client/mod.rs    use crate::raw::Handle; use tokio::sync; use lock_api::RawMutex;
    src/client/mod.rs    use other::client::super_lock; fn f() { std::fs::lock::x() }
    src/zookeeper/acquire/queue.rs use crate::{Client, Lock, client::{Stat, node::*}, runtime::x};
    src/zookeeper/mod.rs #[cfg(test)] #[path = "../../tests/inside/simulation/mod.rs"] mod simulation;
    src/capi/mod.rs      use crate::{raw::Handle, lock, recipes, client};
    src/lib.rs           pub use lock::Lock; mod prelude { pub use crate::raw::Code; }
"##;
