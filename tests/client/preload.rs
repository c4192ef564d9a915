//! Libraries that stand before the C library, in a process of their own.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// What names resolve to, for `names.c`.
pub const NAMES_FILE: &str = "ZKLOCK_TEST_NAMES_FILE";

/// A library, made of a C program beside this one, for a child to load before the C library; and the directory
/// in which it lies.
pub fn preloaded(source: &str) -> (PathBuf, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let library = directory.path().join(source).with_extension("so");
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
        .arg(&library)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/client").join(source))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (library, directory)
}
