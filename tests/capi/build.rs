//! Builds the library once, and the programs against it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// How a program is built and run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Plain,
    Static,
    Valgrind,
    Sanitized,
}

const STRICT: &[&str] = &[
    "-std=c99",
    "-D_POSIX_C_SOURCE=200809L",
    "-DTHREADED",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Werror",
];

/// The shared and the static library, as cargo names them.
fn libraries() -> &'static (PathBuf, PathBuf) {
    static BUILT: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    BUILT.get_or_init(|| {
        // Where this test was built, so that what both need is built once.
        let own = std::env::current_exe().unwrap();
        let target = own.ancestors().nth(3).expect("target/debug/deps/this");
        let output = Command::new(env!("CARGO"))
            .args(["rustc", "--lib", "--features", "capi", "--crate-type", "cdylib,staticlib"])
            .args(["--message-format", "json-render-diagnostics", "--target-dir"])
            .arg(target)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "the library is not built:\n{errors}");
        let files: Vec<PathBuf> = String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .filter(|message| message["target"]["name"] == "zklock")
            .filter_map(|message| message["filenames"].as_array().cloned())
            .flatten()
            .filter_map(|file| file.as_str().map(PathBuf::from))
            .collect();
        let find = |extension: &str| {
            let found = files.iter().find(|file| file.extension().is_some_and(|e| e == extension));
            found.unwrap_or_else(|| panic!("no library among {files:?}")).clone()
        };
        (find(std::env::consts::DLL_EXTENSION), find("a"))
    })
}

/// Builds a program into `directory`.
pub fn program(name: &str, mode: Mode, directory: &Path) -> PathBuf {
    let (shared, archive) = libraries();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = directory.join(name);
    let mut compiler = Command::new("cc");
    compiler.args(STRICT).args(["-g", "-o"]).arg(&program);
    compiler.arg("-I").arg(root.join("include")).arg(root.join(format!("tests/capi/{name}.c")));
    if mode == Mode::Sanitized {
        compiler.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]);
    }
    if mode == Mode::Static {
        compiler.arg(archive);
    } else {
        // As a file beside the program: the name it was linked by is the name it is looked for.
        let copy = directory.join("libzklock.so");
        std::fs::copy(shared, &copy).unwrap();
        compiler.arg(copy).arg(format!("-Wl,-rpath,{}", directory.display()));
    }
    compiler.args(["-lzookeeper_mt", "-lpthread", "-ldl", "-lm"]);
    let output = compiler.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}.c:\n{errors}");
    program
}
