//! `share COMMAND [ARGUMENT...]`: starts what test processes share, runs the command with it, and ends with the
//! command's exit status.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread;

use test_support::shared;
use zklock_testing::{Database, Scratch, Server};

fn main() -> ExitCode {
    let mut command = std::env::args_os().skip(1);
    let Some(program) = command.next() else {
        eprintln!("usage: share COMMAND [ARGUMENT...]");
        return ExitCode::from(2);
    };
    match run(Command::new(program).args(command)) {
        Ok(code) => code,
        Err(trouble) => {
            eprintln!("share: {trouble}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &mut Command) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let run = Scratch::new(&shared::tmpdir(), "shared-")?;
    let start = |kind: fn() -> zklock_testing::Result<Database>| thread::spawn(kind);
    let (mariadb, postgres) = (start(Database::mariadb), start(Database::postgres));
    let java = java_options(&run.path().join("classes.jsa"))?;
    let zookeeper = shared::with_id(Server::builder()).start()?;
    let [mariadb, postgres] =
        [mariadb, postgres].map(|server| server.join().expect("the start of a server panicked"));
    let (mariadb, postgres) = (mariadb?, postgres?);
    link(run.path(), shared::ZOOKEEPER, zookeeper.directory())?;
    link(run.path(), shared::MARIADB, mariadb.directory())?;
    link(run.path(), shared::POSTGRES, postgres.directory())?;
    command.env(shared::VARIABLE, run.path()).env("JDK_JAVA_OPTIONS", java);
    let status = command.env("ZKLOCK_TESTING_TEMPLATES", run.path()).status()?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1).into())
}

/// Makes the many short-lived servers of tests cheap: they map the classes that a leader has loaded, and do without
/// Java's second compiler, whose work would not pay off.
fn java_options(classes: &Path) -> zklock_testing::Result<String> {
    let record = format!("-XX:ArchiveClassesAtExit={}", classes.display());
    Server::builder().first_id(1).jvm_arg(record).start()?.stop()?;
    Ok(format!("-XX:TieredStopAtLevel=1 -XX:SharedArchiveFile={}", classes.display()))
}

fn link(run: &Path, name: &str, directory: &Path) -> io::Result<()> {
    symlink(fs::canonicalize(directory)?, run.join(name))
}
