//! Builds the programs against the installed library, as their authors do, and starts them.

use std::path::{Path, PathBuf};

use test_support::{Process, c_programs};

/// How a program is built and run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Plain,
    Static,
    Valgrind,
    /// Under valgrind, which does not look for leaks.
    WithoutLeaks,
    /// Under valgrind, with an error for blocks that may be leaks as well.
    Shutdown,
    Sanitized,
}

const STRICT: &[&str] = &["-std=c99", "-D_POSIX_C_SOURCE=200809L", "-ldl"];

const SANITIZERS: &[&str] = &["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"];

/// Builds a program.
pub fn program(name: &str, mode: Mode) -> PathBuf {
    let source = format!("tests/capi/{name}.c");
    let program = format!("{name}-{mode:?}");
    match mode {
        Mode::Plain | Mode::Valgrind | Mode::WithoutLeaks | Mode::Shutdown => {
            c_programs::build(&source, &program, STRICT)
        }
        Mode::Static => c_programs::build_static(&source, &program, STRICT),
        Mode::Sanitized => c_programs::build(&source, &program, &[STRICT, SANITIZERS].concat()),
    }
}

/// Starts a program that was built so.
pub fn start(program: &Path, mode: Mode, arguments: &[String]) -> Process {
    let mut command = match mode {
        Mode::Valgrind => c_programs::valgrind(program, true),
        Mode::WithoutLeaks => c_programs::valgrind(program, false),
        Mode::Shutdown => c_programs::valgrind_after_shutdown(program),
        _ => c_programs::command(program),
    };
    if mode == Mode::Sanitized {
        command.env("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0");
        command.env("LSAN_OPTIONS", leaks_of_the_c_client(program));
    }
    Process::start(command.args(arguments))
}

/// What `zookeeper_close` loses (see `packaging/zklock.supp`), for the leak sanitizer, which can't name
/// the functions of a stripped library.
fn leaks_of_the_c_client(program: &Path) -> String {
    let file = program.with_extension("supp");
    std::fs::write(&file, "leak:libzookeeper_mt\n").unwrap();
    format!("suppressions={}:print_suppressions=0", file.display())
}
