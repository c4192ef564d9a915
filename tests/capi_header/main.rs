//! `include/zklock.h` is what cbindgen makes of `src/capi`, and every compiler takes it.

mod abi;
mod compile;
mod generate;

use std::fs;

use generate::{header, path_of};

const UPDATE: &str = "ZKLOCK_HEADER_UPDATE=1 cargo test --test capi_header";

fn checked_in() -> String {
    fs::read_to_string(path_of("include/zklock.h")).expect("the checked-in header")
}

/// What a macro of the header is defined as.
fn macro_of<'a>(header: &'a str, name: &str) -> &'a str {
    let mut defined = header.lines().filter_map(|line| {
        let (key, value) = line.strip_prefix("#define ")?.split_once(' ')?;
        (key == name).then_some(value.trim())
    });
    defined.next().unwrap_or_else(|| panic!("zklock.h does not define {name}"))
}

#[test]
fn the_checked_in_header_is_what_cbindgen_writes() {
    let generated = header();
    if std::env::var_os("ZKLOCK_HEADER_UPDATE").is_some_and(|value| !value.is_empty()) {
        fs::write(path_of("include/zklock.h"), &generated).expect("a writable header");
        return;
    }
    let checked_in = checked_in();
    let end = std::iter::once("(the end)");
    let ours = checked_in.lines().chain(end.clone());
    let theirs = generated.lines().chain(end);
    if let Some((number, (ours, theirs))) = (1..).zip(ours.zip(theirs)).find(|(_, (a, b))| a != b) {
        panic!(
            "include/zklock.h:{number} is\n    {ours}\nbut src/capi gives\n    {theirs}\nto write \
             it again: {UPDATE}"
        );
    }
}

#[test]
fn the_headers_version_is_the_packages() {
    let header = checked_in();
    let number = |name: &str| macro_of(&header, name).parse::<u32>().unwrap();
    let (major, minor) = (number("ZKL_VERSION_MAJOR"), number("ZKL_VERSION_MINOR"));
    let patch = number("ZKL_VERSION_PATCH");
    assert_eq!(macro_of(&header, "ZKL_VERSION"), format!("{:?}", env!("CARGO_PKG_VERSION")));
    assert_eq!(format!("{major}.{minor}.{patch}"), env!("CARGO_PKG_VERSION"));
    assert_eq!(number("ZKL_VERSION_NUMBER"), major * 1_000_000 + minor * 1_000 + patch);
}

#[test]
fn the_header_names_no_recipe_and_documents_every_function() {
    let header = checked_in();
    assert!(!header.contains("zkr_"), "the recipes have headers of their own");
    let lines: Vec<&str> = header.lines().collect();
    let mut functions = 0;
    for (at, line) in lines.iter().enumerate() {
        if line.contains(" zkl_") && line.contains('(') && !line.starts_with([' ', '#', '/']) {
            functions += 1;
            assert_eq!(lines[at - 1].trim(), "*/", "{line}: no comment above it");
        }
    }
    assert!(functions > 30, "only {functions} functions were read");
}
