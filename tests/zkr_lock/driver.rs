//! `driver.c`, running: told a line at a time.

use std::path::PathBuf;
use std::process::Command;

use test_support::Process;
use test_support::c_programs::{build, build_with_libraries, command, valgrind};

pub struct Driver(Process);

/// How a program was compiled and linked.
pub struct Build {
    name: &'static str,
    options: &'static [&'static str],
    /// Instead of what pkg-config says.
    libraries: Option<&'static [&'static str]>,
}

/// The compiler runs in the checkout, whose header this is.
const OWN_HEADER: &[&str] = &["-Itests/zkr_lock/bundled"];

/// With our header, and what pkg-config says.
pub static PLAIN: Build = Build::new("driver", &[], None);
pub static RETURNS_OWNER: Build = Build::new("driver_owner", &["-DZKR_LOCK_RETURNS_OWNER"], None);
pub static RETURNS_ERRORS: Build =
    Build::new("driver_errors", &["-DZKR_LOCK_RETURNS_ERRORS"], None);
/// With a header of the program's own.
pub static OWN: Build =
    Build::new("driver_own", OWN_HEADER, Some(&["-lzoolock", "-lzookeeper_mt"]));
pub static OWN_LINKED_FOR_OWNER: Build = Build::new(
    "driver_own_linked_for_owner",
    OWN_HEADER,
    Some(&["-lzoolock-owner", "-lzookeeper_mt"]),
);
pub static OWN_LINKED_STATIC_FOR_OWNER: Build = Build::new(
    "driver_own_linked_static_for_owner",
    OWN_HEADER,
    Some(&["-Wl,-Bstatic", "-lzoolock-owner", "-Wl,-Bdynamic", "-lzookeeper_mt", "-lm"]),
);
pub static OWN_DEFINED_FOR_OWNER: Build = Build::new(
    "driver_own_defined_for_owner",
    &["-Itests/zkr_lock/bundled", "-Dzkr_lock_lock=zkr_lock_lock_owner"],
    Some(&["-lzoolock", "-lzookeeper_mt"]),
);

impl Build {
    const fn new(
        name: &'static str,
        options: &'static [&'static str],
        libraries: Option<&'static [&'static str]>,
    ) -> Build {
        Build { name, options, libraries }
    }

    fn program(&self) -> PathBuf {
        const SOURCE: &str = "tests/zkr_lock/driver.c";
        match self.libraries {
            None => build(SOURCE, self.name, self.options),
            Some(libraries) => build_with_libraries(SOURCE, self.name, self.options, libraries),
        }
    }
}

impl Driver {
    pub fn start() -> Driver {
        Driver::start_as(&PLAIN)
    }

    pub fn start_as(build: &Build) -> Driver {
        Driver::run(command(build.program()))
    }

    /// Under valgrind, which ends it with an error when it touches memory that is not its own or,
    /// with `leaks`, loses some.
    pub fn start_under_valgrind(leaks: bool) -> Driver {
        Driver::run(valgrind(&PLAIN.program(), leaks))
    }

    fn run(mut command: Command) -> Driver {
        Driver(Process::start(&mut command))
    }

    /// Has it do one thing, and waits until it is done.
    pub fn ask(&mut self, command: &str) -> String {
        self.0.ask(command).trim().to_owned()
    }

    /// Has it begin one thing; the [`answer`](Driver::answer) comes later.
    pub fn begin(&mut self, command: &str) {
        self.0.tell(command);
    }

    pub fn answer(&mut self, command: &str) -> String {
        let answer = self.0.hear().unwrap_or_else(|| panic!("{command}: no answer"));
        answer.trim().to_owned()
    }

    /// Has it do one thing, which must have that answer.
    #[track_caller]
    pub fn expect(&mut self, command: &str, answer: &str) {
        assert_eq!(self.ask(command), answer, "{command}");
    }

    /// Lets it end by itself, as programs do that never clean up; it must end well.
    pub fn end(self) {
        let status = self.0.end();
        assert!(status.success(), "the program ended with {status}");
    }
}
