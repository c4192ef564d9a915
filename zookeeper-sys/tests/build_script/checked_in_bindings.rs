//! The checked-in bindings are what bindgen makes of the header that this crate was built with.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/bindings.rs");
const UPDATE: &str = "ZOOKEEPER_SYS_UPDATE=1 cargo test -p zookeeper-sys --test build_script";
/// Of which release, and for which targets, the file can be compared as text.
const RELEASE: &str = "3.8.";
const COMPARABLE: bool = cfg!(all(target_os = "linux", target_pointer_width = "64"));

#[test]
fn the_checked_in_bindings_are_those_of_the_header() {
    let version = zookeeper_sys::HEADER_VERSION;
    let generated = crate::bindings::generate(Path::new(env!("ZOOKEEPER_SYS_INCLUDE")))
        .expect("bindgen accepts the header");
    if std::env::var_os("ZOOKEEPER_SYS_UPDATE").is_some_and(|value| !value.is_empty()) {
        fs::write(FILE, &generated).expect("a writable source file");
        return;
    }
    let checked_in = fs::read_to_string(FILE).expect("the checked-in bindings");

    if COMPARABLE && version.starts_with(RELEASE) {
        if let Some((number, (ours, theirs))) = first_difference(&checked_in, &generated) {
            panic!(
                "src/bindings.rs:{number} is\n    {ours}\nbut the header of {version} gives\n    \
                 {theirs}\nto write it again: {UPDATE}"
            );
        }
    } else {
        eprintln!("the header is of {version}, not {RELEASE}x for 64-bit Linux: comparing names");
    }
    let (ours, theirs) = (names(&checked_in), names(&generated));
    assert!(ours.len() > 150, "only {} names were read", ours.len());
    let missing: Vec<_> = ours.difference(&theirs).collect();
    assert!(missing.is_empty(), "the header of {version} does not have {missing:?}");
}

fn first_difference<'a>(a: &'a str, b: &'a str) -> Option<(usize, (&'a str, &'a str))> {
    let end = std::iter::once("(the end)");
    let (a, b) = (a.lines().chain(end.clone()), b.lines().chain(end));
    (1..).zip(a.zip(b)).find(|(_, (a, b))| a != b)
}

/// The public items of a file of bindings.
fn names(text: &str) -> BTreeSet<&str> {
    let kinds = ["fn", "static mut", "static", "const", "type", "struct", "union"];
    text.lines()
        .filter_map(|line| line.trim().strip_prefix("pub "))
        .filter_map(|item| kinds.iter().find_map(|kind| item.strip_prefix(kind)))
        .filter_map(|rest| rest.strip_prefix(' '))
        .filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next())
        .collect()
}
