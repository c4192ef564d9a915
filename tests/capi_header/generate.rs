//! Runs cbindgen over the files of the `zkl_*` API, in the order in which the header tells of them.

use std::path::{Path, PathBuf};

const FILES: &[&str] = &[
    "zkl/version",
    "codes",
    "zkl/errors",
    "callbacks",
    "zkl/options",
    "zkl/client",
    "zkl/store",
    "zkl/timeout",
    "zkl/lock",
    "zkl/sharing",
    "zkl/reentrant",
    "zkl/revocation",
    "zkl/attempt",
    "zkl/contenders",
    "zkl/guard",
    "zkl/change",
    "zkl/loss_signals",
    "zkl/async_calls",
    "zkl/multi_lock",
    "zkl/keyed",
    "zkl/watch",
    "zkl/election",
    "zkl/recipe",
    "zkl/counter",
    "zkl/queue",
    "zkl/group",
    "zkl/latch",
    "zkl/barrier",
    "zkl/double_barrier",
    "zkl/shutdown",
];

pub fn path_of(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

pub fn header() -> String {
    let mut config =
        cbindgen::Config::from_file(path_of("cbindgen.toml")).expect("a readable cbindgen.toml");
    let after = config.after_includes.take().unwrap_or_default();
    config.after_includes = Some(format!("{}{after}", versions()));
    let mut builder = cbindgen::Builder::new().with_config(config);
    for file in FILES {
        builder = builder.with_src(path_of(&format!("src/capi/{file}.rs")));
    }
    let mut text = Vec::new();
    builder.generate().expect("cbindgen accepts src/capi").write(&mut text);
    // What stands behind #endif; C89 has no such comments.
    let text = String::from_utf8(text).expect("a header in UTF-8");
    text.replace("// __cplusplus", "/* __cplusplus */")
}

/// The version macros, from Cargo.toml.
fn versions() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let parts = [
        ("MAJOR", env!("CARGO_PKG_VERSION_MAJOR")),
        ("MINOR", env!("CARGO_PKG_VERSION_MINOR")),
        ("PATCH", env!("CARGO_PKG_VERSION_PATCH")),
    ];
    let mut text =
        String::from("\n/* The version of this header; zkl_version() is the library's. */\n");
    let mut number = 0;
    for (name, part) in parts {
        text += &format!("#define ZKL_VERSION_{name} {part}\n");
        number = number * 1_000 + part.parse::<u32>().expect("a number");
    }
    text + &format!("#define ZKL_VERSION \"{version}\"\n#define ZKL_VERSION_NUMBER {number}\n")
}
