//! What is published can be built and installed: each package has the files that it names.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use super::tree::{assert_none, text_of, walk};

/// Where the published packages lie, and files that the search below has to find in them.
pub(super) const PUBLISHED: [(&str, &[&str]); 4] = [
    (
        "",
        &[
            "include/zklock.h",
            "include/zklock.hpp",
            "packaging/zklock-zookeeper.pc",
            "packaging/zklock.supp",
            "src/redis/steps.lua",
            "docs/stores.md",
        ],
    ),
    ("zookeeper-sys/", &["build/main.rs", "build/secure_client.c", "README.md"]),
    ("tests/server/", &["README.md", "src/bin/server.rs"]),
    ("crates/zklock-cli/", &["README.md", "src/serve/page.css"]),
];

/// The files of a package, as cargo packs them.
pub(super) fn packed(directory: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["package", "--list", "--allow-dirty", "--offline", "--manifest-path"])
        .arg(format!("{}/{directory}Cargo.toml", env!("CARGO_MANIFEST_DIR")))
        .output()
        .expect("cargo");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo package --list: {errors}");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// The texts between quotation marks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('"').skip(1).step_by(2))
}

/// Without what leads back to where it came from.
pub(super) fn plain(path: &Path) -> String {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain.to_string_lossy().into_owned()
}

/// Whether a path is what `name` says, in which one `*` stands for anything within a directory.
fn is_named(path: &str, name: &str) -> bool {
    let Some((begin, end)) = name.split_once('*') else { return path == name };
    let rest = path.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end));
    rest.is_some_and(|rest| !rest.contains('/'))
}

/// The files that a package needs: those that its manifest and its build script name, and those that its sources include.
fn needed(directory: &str, packed: &BTreeSet<String>) -> BTreeSet<String> {
    let mut files = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join(directory), "", &mut files);
    let is_build_script = |file: &str| file == "build.rs" || file.starts_with("build/");
    let mut names = Vec::new();
    for file in packed.iter().filter(|file| file.ends_with(".rs")) {
        let text = text_of(&format!("{directory}{file}"));
        if is_build_script(file) {
            names.extend(quoted(&text).map(str::to_owned));
        }
        let beside = Path::new(file).parent().unwrap_or(Path::new(""));
        for included in text.split("include_").skip(1) {
            if included.starts_with("str!(\"") || included.starts_with("bytes!(\"") {
                names.extend(quoted(included).take(1).map(|name| plain(&beside.join(name))));
            }
        }
    }
    let manifest = text_of(&format!("{directory}Cargo.toml"));
    // "*" are all packages that a profile is for.
    names.extend(quoted(&manifest).filter(|name| *name != "*").map(str::to_owned));
    let is_needed = |file: &String| names.iter().any(|name| is_named(file, name));
    files.into_iter().filter(is_needed).collect()
}

#[test]
fn a_published_package_has_the_files_that_it_names() {
    let mut complaints = Vec::new();
    for (directory, known) in PUBLISHED {
        let packed = packed(directory);
        let needed = needed(directory, &packed);
        for file in known {
            assert!(needed.contains(*file), "{directory}{file} is not found: {needed:?}");
        }
        let missing = needed.difference(&packed);
        complaints.extend(missing.map(|file| format!("{directory}{file}: is not packed")));
    }
    assert_none(&complaints);
}
