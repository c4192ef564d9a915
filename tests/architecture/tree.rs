//! The project's text files.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Every text file of the project as (path with `/` from the root, content).
pub(super) fn tree() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output();
    let mut paths: Vec<String> = match listed {
        Ok(out) if out.status.success() => {
            let names = String::from_utf8_lossy(&out.stdout);
            names.lines().map(str::to_owned).collect()
        }
        _ => Vec::new(),
    };
    if paths.is_empty() {
        walk(root, "", &mut paths);
    }
    paths.sort();
    // Binary files and files that are listed but deleted drop out here.
    paths
        .into_iter()
        .filter_map(|path| fs::read_to_string(root.join(&path)).ok().map(|text| (path, text)))
        .collect()
}

pub(super) fn walk(root: &Path, under: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(root.join(under)).expect("a readable directory").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if under.is_empty() { name.clone() } else { format!("{under}/{name}") };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && name != "target" && name != ".git" => {
                walk(root, &path, found);
            }
            Ok(kind) if kind.is_file() => found.push(path),
            _ => {}
        }
    }
}

pub(super) fn rust_files() -> Vec<(String, String)> {
    tree().into_iter().filter(|(path, _)| path.ends_with(".rs")).collect()
}

pub(super) fn text_of(path: &str) -> String {
    let full = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(full).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub(super) fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
