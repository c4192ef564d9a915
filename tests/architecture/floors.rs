//! Imports go down only.

use std::collections::HashMap;

use super::rust_text::{Named, code_of, modules_of, named_paths};
use super::tree::{assert_none, rust_files, text_of};

/// Stands for the crate's root as a whole, from which every floor can be reached.
const WHOLE_CRATE: &str = "*";

/// Holds tests that need private items, included as modules.
const FOR_TESTS: &str = "/tests/inside/";

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

fn below(module: &str) -> Option<&'static [&'static str]> {
    BELOW.iter().find(|(floor, _)| *floor == module).map(|(_, below)| *below)
}

fn may_use(from: &str, to: &str) -> bool {
    let is_floor = to == WHOLE_CRATE || below(to).is_some();
    from == to || !is_floor || below(from).is_some_and(|below| below.contains(&to))
}

/// Which module each name comes from that `lib.rs` re-exports at the root, and complaints about
/// re-exports that hide it.
fn root_names(lib: &str) -> (HashMap<String, String>, Vec<String>) {
    let (mut names, mut complaints) = (HashMap::new(), Vec::new());
    for Named { mut path, name, line, within, .. } in named_paths(&code_of(lib)) {
        if !within.is_empty() {
            continue;
        }
        if matches!(path.first().map(String::as_str), Some("crate" | "self")) {
            path.remove(0);
        }
        if path.len() > 1 && below(&path[0]).is_some() {
            if name == "*" {
                complaints.push(format!("src/lib.rs:{line}: re-export {} by name", path[0]));
            }
            names.insert(name, path.remove(0));
        }
    }
    (names, complaints)
}

/// Complaints about what a file of the library takes from floors it may not use.
fn upward_imports(file: &str, source: &str, root_names: &HashMap<String, String>) -> Vec<String> {
    let code = code_of(source);
    let own = modules_of(file);
    let mut complaints = Vec::new();
    let mut complain =
        |line: usize, what: String| complaints.push(format!("{file}:{line}: {what}"));
    for (number, (line, written)) in code.lines().zip(source.lines()).enumerate() {
        let bare: String = line.split_whitespace().collect();
        let is_of_tests = written.starts_with("#[path = ") && written.contains(FOR_TESTS);
        if bare.contains("#[path=") && !is_of_tests || bare.contains("include!(") {
            complain(number + 1, "takes in a file of another place".to_owned());
        }
    }
    if own.is_empty() {
        return complaints; // lib.rs holds all floors together.
    }
    for named in named_paths(&code) {
        let Some(to) = target(&own, &named, root_names) else {
            continue;
        };
        if !may_use(&own[0], &to) {
            complain(named.line, format!("{} uses {to}, which is not below it", own[0]));
        }
    }
    complaints
}

/// The top-level module a path leads to, when it leads into this crate.
fn target(own: &[String], named: &Named, root_names: &HashMap<String, String>) -> Option<String> {
    let mut place: Vec<&str> = own.iter().chain(&named.within).map(String::as_str).collect();
    let mut ours = false;
    for part in &named.path {
        match part.as_str() {
            "crate" if !ours => place.clear(),
            "self" if !ours => {}
            "super" => drop(place.pop()),
            // Another crate, or a module of our own below this one.
            _ if !ours => return None,
            part => place.push(part),
        }
        ours = true;
    }
    let first = place.first().copied().unwrap_or(WHOLE_CRATE);
    Some(root_names.get(first).map_or(first, String::as_str).to_owned())
}

#[test]
fn no_module_imports_from_a_higher_floor() {
    let files = rust_files();
    let (names, mut complaints) = root_names(&text_of("src/lib.rs"));
    for (path, source) in files.iter().filter(|(path, _)| path.starts_with("src/")) {
        complaints.extend(upward_imports(path, source, &names));
    }
    assert_none(&complaints);
}

#[test]
fn the_floor_check_finds_every_way_up_and_allows_every_way_down() {
    let lib = "mod raw; pub mod client;\npub use client::Client;\npub use crate::lock::{Guard as Held, Lock};\n";
    let (names, complaints) = root_names(lib);
    assert_none(&complaints);
    assert_eq!(root_names("pub use client::*;").1.len(), 1);

    for (file, source) in cases(UP) {
        let found = upward_imports(&file, &source, &names);
        assert_eq!(found.len(), 1, "{file}: {source}: {found:?}");
    }
    for (file, source) in cases(DOWN) {
        assert_none(&upward_imports(&file, &source, &names));
    }
}

/// One case a line: a file and what stands in it, with `\n` for a new line.
fn cases(table: &str) -> impl Iterator<Item = (String, String)> {
    let lines = table.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| {
        let (file, source) = line.split_once(' ').expect("a file and a source");
        (file.to_owned(), source.trim_start().replace("\\n", "\n"))
    })
}

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
    src/local/mod.rs     use crate::zookeeper::name;
    src/runtime/mod.rs   use crate::raw::Handle;
    src/lock/mod.rs      use crate::raw::Handle;
    src/recipes/queue.rs fn f(h: crate::raw::Handle) {}
    src/raw/mod.rs       #[path = "../lock/mod.rs"] mod other;
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
    src/zookeeper/mod.rs #[path = "../../tests/inside/simulation/mod.rs"] mod simulation;
    src/capi/mod.rs      use crate::{raw::Handle, lock, recipes, client};
    src/lib.rs           pub use lock::Lock; mod prelude { pub use crate::raw::Code; }
"##;
