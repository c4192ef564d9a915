//! The build script's question to the preprocessor, about headers made for it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::version::Version;

fn header(name: &str, text: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("version").join(name);
    fs::create_dir_all(&dir).expect("a writable directory");
    fs::write(dir.join("zookeeper_version.h"), text).expect("a writable file");
    dir
}

fn read(dir: &Path) -> Result<Version, String> {
    let target = env!("ZOOKEEPER_SYS_TARGET");
    let mut build = cc::Build::new();
    build.target(target).host(target).opt_level(0);
    let scratch = header("scratch", "");
    let scratch = scratch.join(dir.file_name().expect("a named directory"));
    fs::create_dir_all(&scratch).expect("a writable directory");
    Version::of_header(dir, &scratch, build)
}

#[test]
fn a_version_in_one_string_is_read() {
    let dir = header("string", "#define ZOO_VERSION \"3.9.12\"\n");
    let version = read(&dir).expect("a version");
    assert_eq!(version.to_string(), "3.9.12");
    assert_eq!(version.number(), 3_009_012);
    assert_eq!(version.require_supported(&dir), Ok(()));
}

#[test]
fn a_version_in_three_numbers_is_read() {
    let dir = header(
        "numbers",
        "#define ZOO_MAJOR_VERSION 3\n#define ZOO_MINOR_VERSION 5\n#define ZOO_PATCH_VERSION 10\n",
    );
    assert_eq!(read(&dir).map(Version::number), Ok(3_005_010));
}

#[test]
fn the_preprocessor_decides_not_the_text() {
    let dir = header(
        "conditional",
        "/* #define ZOO_VERSION \"1.0.0\" */\n#define PART \"3.7.\"\n#if 0\n\
         #define ZOO_VERSION \"2.0.0\"\n#else\n#define ZOO_VERSION PART \"1-SNAPSHOT\"\n#endif\n",
    );
    assert_eq!(read(&dir).map(Version::number), Ok(3_007_001));
}

#[test]
fn a_version_that_is_too_old_is_refused_by_its_name() {
    let dir = header("old", "#define ZOO_VERSION \"3.6.4\"\n");
    let version = read(&dir).expect("a version");
    let error = version.require_supported(&dir).expect_err("too old");
    assert!(error.contains("ZooKeeper 3.6.4"), "{error}");
    assert!(error.contains("3.7 or later") && error.contains("ZOOKEEPER_SRC_DIR"), "{error}");
}

#[test]
fn a_header_that_does_not_say_is_an_error_that_names_it() {
    let dir = header("silent", "\n");
    let error = read(&dir).expect_err("no version");
    assert!(error.contains("zookeeper_version.h"), "{error}");
    let error = read(&dir.join("nowhere")).expect_err("no header");
    assert!(error.contains("zookeeper_version.h"), "{error}");
}

#[test]
fn the_version_of_the_crate_is_that_of_its_header() {
    let version = read(Path::new(env!("ZOOKEEPER_SYS_INCLUDE"))).expect("a version");
    assert_eq!(version.to_string(), zookeeper_sys::HEADER_VERSION);
}
