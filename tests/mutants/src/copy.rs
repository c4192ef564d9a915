//! The copy of the checkout that the bugs are planted in.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;
use crate::spot::Texts;

const SWITCH: &str = include_str!("switch.rs");

/// A copy of the checkout's files, tracked or not yet.
pub struct Copy {
    pub root: PathBuf,
    /// Whether it is built to count which lines the tests execute.
    pub coverage: bool,
}

/// Makes or renews the copy in `place`, but for the sources that are `mutated`. What did not change stays
/// as it is, so that cargo builds little.
pub fn copy(from: &Path, place: &Path, mutated: &Texts, coverage: bool) -> Outcome<Copy> {
    let root = place.join("tree");
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(from)
        .output()
        .map_err(|error| format!("git: {error}"))?;
    if !listed.status.success() {
        return Err(format!("git ls-files: {}", String::from_utf8_lossy(&listed.stderr)));
    }
    let copy = Copy { root, coverage };
    let listed = String::from_utf8_lossy(&listed.stdout);
    let files = || listed.split('\0').filter(|file| from.join(file).is_file());
    remove_others(&copy.root, &files().map(|file| copy.root.join(file)).collect())?;
    for file in files() {
        let source = from.join(file);
        if mutated.contains_key(file) {
            continue;
        }
        let mut text =
            fs::read(&source).map_err(|error| format!("{}: {error}", source.display()))?;
        match file {
            "src/lib.rs" => text.extend_from_slice(b"\nmod mutants;\n"),
            // The command's tests run it as a program, which inherits the switch.
            "crates/zklock-cli/src/main.rs" => {
                text.extend_from_slice(b"\n#[path = \"../../../src/mutants.rs\"]\nmod mutants;\n");
            }
            _ => {}
        }
        copy.write(file, &text)?;
        let permissions = fs::metadata(&source).map(|metadata| metadata.permissions());
        permissions
            .and_then(|permissions| fs::set_permissions(copy.root.join(file), permissions))
            .map_err(|error| format!("{}: {error}", source.display()))?;
    }
    copy.write("src/mutants.rs", SWITCH.as_bytes())?;
    Ok(copy)
}

/// Removes sources that the checkout has no more: Rust would take a module from both its old place and its new one.
fn remove_others(directory: &Path, files: &HashSet<PathBuf>) -> Outcome {
    let Ok(entries) = fs::read_dir(directory) else { return Ok(()) };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            if path.file_name().is_none_or(|name| name != "target") {
                remove_others(&path, files)?;
            }
        } else if path.extension().is_some_and(|is| is == "rs") && !files.contains(&path) {
            fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(())
}

impl Copy {
    /// Writes a file, unless it is so already.
    pub fn write(&self, name: &str, text: &[u8]) -> Outcome {
        let path = self.root.join(name);
        if fs::read(&path).is_ok_and(|old| old == text) {
            return Ok(());
        }
        let written = path.parent().map_or(Ok(()), fs::create_dir_all);
        written
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| format!("{}: {error}", path.display()))
    }
}
