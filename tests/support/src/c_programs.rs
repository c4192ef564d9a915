//! C programs as tests: the library installed into a directory of its own, programs built against
//! it with nothing but what pkg-config says, and run with a limit of time.
//!
//! Each is installed or built [`once`] in a run.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use rustix::fs::{FlockOperation, flock};
use zklock_testing::Scratch;

use crate::shared::{once, tmpdir};

/// The last of what is found when a program hangs; nothing here takes so long.
const LIMIT_SECONDS: &str = "180";

/// What every program is built with.
const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// Where zklock is installed by `make install`.
pub fn prefix() -> PathBuf {
    once("prefix", |prefix| {
        // It builds in one place, where another run must not build meanwhile.
        let turn = File::create(tmpdir().join("c-install.lock")).expect("a file to lock");
        flock(&turn, FlockOperation::LockExclusive).expect("the turn to install");
        let mut install = command("make");
        install
            .args(["install", "PROFILE=dev", "COMMAND=no", "STORES=sqlite"])
            .arg(format!("PREFIX={}", prefix.display()));
        succeed(install.current_dir(root()));
    })
}

/// The checkout.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a crate of the checkout")
}

/// A place below cargo's directory for tests, for this test process alone.
pub fn scratch(name: &str) -> PathBuf {
    static OWN: LazyLock<Scratch> =
        LazyLock::new(|| Scratch::new(&tmpdir(), "c-programs-").expect("a directory for tests"));
    let scratch = OWN.path().join(name);
    fs::create_dir_all(&scratch).expect("a directory for tests");
    scratch
}

/// A command without what a `make` or a cargo above us has left in the environment.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for name in [
        "MAKEFLAGS",
        "MFLAGS",
        "MAKELEVEL",
        "PREFIX",
        "DESTDIR",
        "LIBDIR",
        "INCLUDEDIR",
        "LD_LIBRARY_PATH",
        "CFLAGS",
        "CXXFLAGS",
        "LDFLAGS",
    ] {
        command.env_remove(name);
    }
    command
}

/// A command that finds the installed tree with pkg-config, and no other.
pub fn with_pkg_config(program: &str) -> Command {
    let mut command = command(program);
    command.env_remove("PKG_CONFIG_PATH").env("PKG_CONFIG_LIBDIR", prefix().join("lib/pkgconfig"));
    command
}

/// Builds `source`, C at a path from the checkout's root, with `more` options. Names the program.
///
/// `name`: what the program is called.
pub fn build(source: &str, name: &str, more: &[&str]) -> PathBuf {
    compile(c_compiler(), source, name, more, &pkg_config(&["--libs"]))
}

/// As [`build`], linked with these libraries of the installed tree instead of what pkg-config says.
pub fn build_with_libraries(
    source: &str,
    name: &str,
    more: &[&str],
    libraries: &[&str],
) -> PathBuf {
    let mut found = pkg_config(&["--libs-only-L"]);
    found.extend(libraries.iter().map(|&library| library.to_owned()));
    compile(c_compiler(), source, name, more, &found)
}

/// As [`build`], with zklock itself in the program.
pub fn build_static(source: &str, name: &str, more: &[&str]) -> PathBuf {
    // By its file name: -lzklock would prefer the shared library beside it.
    let archive =
        |flag: String| if flag == "-lzklock" { "-l:libzklock.a".to_owned() } else { flag };
    let libraries: Vec<String> =
        pkg_config(&["--static", "--libs"]).into_iter().map(archive).collect();
    compile(c_compiler(), source, name, more, &libraries)
}

/// As [`build`], by the C++ compiler, whatever the source's name says.
pub fn build_as_cpp(source: &str, name: &str) -> PathBuf {
    let mut compiler = command(std::env::var_os("CXX").unwrap_or_else(|| "c++".into()));
    compiler.arg("-std=c++17");
    compile(compiler, source, name, &["-x", "c++"], &pkg_config(&["--libs"]))
}

/// Whether a compiler takes `source` with the project's headers, these arguments, and all warnings as
/// errors; what it says if it does not.
pub fn check_syntax(compiler: &str, arguments: &[&str], source: &Path) -> Result<(), String> {
    let mut compiler = command(compiler);
    compiler.args(arguments).args(WARNINGS).args(["-fsyntax-only", "-I"]);
    let output = outcome(compiler.arg(root().join("include")).arg(source).current_dir(root()));
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{compiler:?}:\n{errors}")) }
}

fn c_compiler() -> Command {
    let mut compiler = command(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    compiler.arg("-std=gnu11");
    compiler
}

fn pkg_config(what: &[&str]) -> Vec<String> {
    let flags = run(with_pkg_config("pkg-config").args(what).arg("zklock"));
    flags.split_whitespace().map(str::to_owned).collect()
}

fn compile(
    mut compiler: Command,
    source: &str,
    name: &str,
    more: &[&str],
    libraries: &[String],
) -> PathBuf {
    compiler.args(["-g", "-O1", "-pthread"]).args(WARNINGS).args(more);
    compiler.args(pkg_config(&["--cflags"])).arg(source).args(libraries);
    compiler.arg(format!("-Wl,-rpath,{}", prefix().join("lib").display()));
    // Tests may give one name to several programs.
    let mut hasher = DefaultHasher::new();
    compiler.get_args().for_each(|argument| argument.hash(&mut hasher));
    let directory = once(&format!("{name}-{:016x}", hasher.finish()), |directory| {
        run(compiler.arg("-o").arg(directory.join(name)).current_dir(root()));
    });
    directory.join(name)
}

/// `program`, ended if it takes too long.
pub fn limited(program: impl AsRef<OsStr>) -> Command {
    let mut command = command("timeout");
    command.args(["--kill-after=5", LIMIT_SECONDS]).arg(program);
    command
}

/// `program` under valgrind: it ends with 99 if memory is read or written that is not the program's
/// or, with `leaks`, if some is lost. Limited.
pub fn under_valgrind(program: &Path, leaks: bool) -> Command {
    with_threads(limited("valgrind"), program, leaks)
}

/// As [`under_valgrind`], without a limit: for who kills it himself.
pub fn valgrind(program: &Path, leaks: bool) -> Command {
    with_threads(command("valgrind"), program, leaks)
}

/// As [`valgrind`], for a program that shuts zklock down, as a user runs it: none of its memory may even look lost.
pub fn valgrind_after_shutdown(program: &Path) -> Command {
    add_program(command("valgrind"), program, Some("definite,possible"))
}

/// For a program with threads that run at its end.
fn with_threads(mut valgrind: Command, program: &Path, leaks: bool) -> Command {
    // At the end valgrind kills the other threads and has the C library free what it has; that waits
    // for ever when a handle's thread was just resolving its host names, under the resolver's lock.
    valgrind.arg("--run-libc-freeres=no");
    // What such a thread has is possibly lost.
    add_program(valgrind, program, leaks.then_some("definite,indirect"))
}

/// `leaks`: which kinds of them are errors.
fn add_program(mut valgrind: Command, program: &Path, leaks: Option<&str>) -> Command {
    valgrind.args(["--quiet", "--error-exitcode=99", "--fair-sched=yes", "--num-callers=30"]);
    if let Some(kinds) = leaks {
        valgrind.arg("--leak-check=full").arg(format!("--show-leak-kinds={kinds}"));
        valgrind.arg(format!("--errors-for-leak-kinds={kinds}"));
    }
    valgrind
        .arg(format!("--suppressions={}", root().join("packaging/zklock.supp").display()))
        .arg(program);
    valgrind
}

/// Runs the command and gives its standard output; it must succeed.
pub fn run(command: &mut Command) -> String {
    String::from_utf8(succeed(command).stdout).expect("text")
}

/// Runs the command, which must succeed.
fn succeed(command: &mut Command) -> Output {
    let output = outcome(command);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}\n{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    output
}

fn outcome(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}
