//! Size and conventions of the files.

use std::path::Path;

use super::tree::{assert_none, rust_files, tree, walk};

#[test]
fn a_source_file_has_one_idea_and_at_most_500_lines() {
    let mut complaints = Vec::new();
    for (path, source) in rust_files() {
        let lines = source.lines().count();
        let is_source =
            path.starts_with("src/") || path.starts_with("crates/") && path.contains("/src/");
        if is_source && lines > 500 {
            complaints.push(format!("{path}: {lines} lines"));
        }
        let name = path.rsplit('/').next().unwrap_or_default();
        if ["util.rs", "utils.rs", "helper.rs", "helpers.rs", "common.rs"].contains(&name) {
            complaints.push(format!("{path}: name it for its idea"));
        }
    }
    assert_none(&complaints);
}

#[test]
fn no_test_is_ignored() {
    let ignored = concat!("#[", "ignore");
    let mut complaints = Vec::new();
    for (path, source) in rust_files() {
        let lines = source.lines().filter(|line| line.trim_start().starts_with(ignored));
        complaints.extend(lines.map(|line| format!("{path}: {line}")));
    }
    assert_none(&complaints);
}

/// Hosts that packages come from, and directories of the machine something was built on.
/// Written in two halves, so that this file does not contain what it looks for.
const PRIVATE: &[&str] = &[
    concat!("deb.", "debian.org"),
    concat!("security.", "debian.org"),
    concat!("archive.", "ubuntu.com"),
    concat!("static.", "crates.io"),
    concat!("index.", "crates.io"),
    concat!("sh.", "rustup.rs"),
    concat!("static.", "rust-lang.org"),
    concat!("proxy.", "golang.org"),
    concat!("files.", "pythonhosted.org"),
    concat!("pypi.", "org"),
    concat!("registry.", "npmjs.org"),
    concat!("repo1.", "maven.org"),
    concat!("repo.", "maven.apache.org"),
    concat!("archive.", "apache.org"),
    concat!("dlcdn.", "apache.org"),
    concat!("downloads.", "apache.org"),
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
];

#[test]
fn no_file_names_a_package_host_or_a_path_of_a_build_machine() {
    let mut complaints = Vec::new();
    for (path, source) in tree() {
        for (number, line) in source.lines().enumerate() {
            for private in PRIVATE.iter().filter(|private| line.contains(*private)) {
                complaints.push(format!("{path}:{}: {private}", number + 1));
            }
        }
    }
    assert_none(&complaints);
}

#[test]
fn the_checks_read_the_whole_tree() {
    let paths: Vec<String> = tree().into_iter().map(|(path, _)| path).collect();
    let mut walked = Vec::new();
    walk(Path::new(env!("CARGO_MANIFEST_DIR")), "", &mut walked);
    for file in
        ["Cargo.toml", "src/lib.rs", "tests/architecture/main.rs", "zookeeper-sys/src/lib.rs"]
    {
        assert!(paths.iter().any(|path| path == file), "{file} is not listed");
        assert!(walked.iter().any(|path| path == file), "{file} is not walked");
    }
    assert!(!paths.iter().chain(&walked).any(|path| path.starts_with(".git/")));
}
