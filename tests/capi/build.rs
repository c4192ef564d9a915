//! Builds the programs against the installed library, as their authors do.

use std::path::PathBuf;

use crate::c_programs;

/// How a program is built and run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Plain,
    Static,
    Valgrind,
    Sanitized,
}

const STRICT: &[&str] = &["-std=c99", "-D_POSIX_C_SOURCE=200809L", "-ldl"];

const SANITIZERS: &[&str] = &["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"];

/// Builds a program. To be called once for each of them in each mode.
pub fn program(name: &str, mode: Mode) -> PathBuf {
    let source = format!("tests/capi/{name}.c");
    let program = format!("{name}-{mode:?}");
    match mode {
        Mode::Plain | Mode::Valgrind => c_programs::build(&source, &program, STRICT),
        Mode::Static => c_programs::build_static(&source, &program, STRICT),
        Mode::Sanitized => c_programs::build(&source, &program, &[STRICT, SANITIZERS].concat()),
    }
}
