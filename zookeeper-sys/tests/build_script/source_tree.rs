//! The build script's errors for a source tree that it cannot compile.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A tree of empty files.
fn tree(name: &str, files: &[&str]) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("source").join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("a writable directory");
    for file in files {
        let file = dir.join(file);
        fs::create_dir_all(file.parent().expect("a parent")).expect("a writable directory");
        fs::write(file, "").expect("a writable file");
    }
    dir
}

#[test]
fn a_tree_of_something_else_is_refused() {
    let dir = tree("other", &["README"]);
    let error = crate::source::headers(&dir, &dir).expect_err("no C client");
    assert!(error.contains("ZOOKEEPER_SRC_DIR"), "{error}");
    assert!(error.contains("not the C client"), "{error}");
}

#[test]
fn missing_generated_files_are_an_error_that_says_how_to_make_them() {
    let files: Vec<&str> = crate::source::SOURCES
        .iter()
        .chain(crate::source::HEADERS)
        .copied()
        .filter(|file| !file.starts_with("generated/"))
        .collect();
    let dir = tree("ungenerated", &files);
    let error = crate::source::headers(&dir, &dir).expect_err("not generated");
    assert!(error.contains("no generated/zookeeper.jute.c"), "{error}");
    assert!(error.contains("jute compiler"), "{error}");
    assert!(error.contains("ci/c-client-source.sh"), "{error}");
}

#[test]
fn headers_are_laid_out_as_an_installation_has_them() {
    let files: Vec<&str> =
        crate::source::SOURCES.iter().chain(crate::source::HEADERS).copied().collect();
    let dir = tree("whole", &files);
    let include = crate::source::headers(&dir, &dir.join("out")).expect("a whole tree");
    assert!(include.ends_with("include/zookeeper"));
    assert!(include.join("zookeeper.h").is_file());
    assert!(include.join("zookeeper.jute.h").is_file());
}

/// The build script is run by cargo, as for a user: what cargo hides from users does not count.
#[test]
fn a_feature_that_cannot_be_had_fails_the_build() {
    for feature in ["source", "tls", "sasl"] {
        let error = check(feature, &[]).expect_err("there is no source");
        for hint in [
            &format!("the feature `{feature}`"),
            "ZOOKEEPER_SRC_DIR does not name",
            "ci/c-client-source.sh DIR",
            "org.apache.jute.compiler",
            "turn the feature off",
            "DOCS_RS=1",
        ] {
            assert!(error.contains(hint), "{hint} is not in: {error}");
        }
        check(feature, &[("DOCS_RS", "1")]).expect("nothing is linked");
    }
}

/// What `cargo check` says of this crate with a feature, and no source named.
fn check(feature: &str, variables: &[(&str, &str)]) -> Result<(), String> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("features");
    let output = Command::new(env!("CARGO"))
        .args(["check", "--quiet", "--offline", "--features", feature, "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .arg("--target-dir")
        .arg(target)
        .env_remove("ZOOKEEPER_SRC_DIR")
        .env_remove(&crate::find::names_of("ZOOKEEPER_SRC_DIR", env!("ZOOKEEPER_SYS_TARGET"))[0])
        .env_remove("DOCS_RS")
        .envs(variables.iter().copied())
        .output()
        .expect("cargo runs");
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}
