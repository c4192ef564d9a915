//! What the test processes of one run share: servers that no test harms, and what takes long to make.
//!
//! A runner that starts a process for each test would start a server for each as well. `share COMMAND` starts them
//! once, in a directory that [`VARIABLE`] names to the command. Without it each process has its own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use rustix::fs::{FlockOperation, flock};
use zklock_testing::{Builder, Database, Result, Scratch, Server};

/// Names the directory of the run.
pub const VARIABLE: &str = "ZKLOCK_TEST_SHARED";

/// The ZooKeeper server in the directory of the run.
pub const ZOOKEEPER: &str = "zookeeper";
/// The MariaDB server in the directory of the run.
pub const MARIADB: &str = "mariadb";
/// The PostgreSQL server in the directory of the run.
pub const POSTGRES: &str = "postgres";

/// The directory of the run, if there is one.
fn run() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).map(PathBuf::from)
}

/// The server of that name in the directory of the run, or one of this process.
fn server<S>(
    name: &str,
    attach: fn(&Path) -> Result<S>,
    start: impl FnOnce() -> Result<S>,
) -> Arc<S> {
    let server = run().map_or_else(start, |run| attach(&run.join(name)));
    Arc::new(server.unwrap_or_else(|error| panic!("the shared server {name}: {error}")))
}

/// The ZooKeeper server for tests that leave it alone.
pub fn zookeeper() -> &'static Arc<Server> {
    static SHARED: LazyLock<Arc<Server>> =
        LazyLock::new(|| server(ZOOKEEPER, Server::attach, || with_id(Server::builder()).start()));
    &SHARED
}

/// The MariaDB server for tests that leave it alone.
pub fn mariadb() -> &'static Arc<Database> {
    static SHARED: LazyLock<Arc<Database>> =
        LazyLock::new(|| server(MARIADB, Database::attach, Database::mariadb));
    &SHARED
}

/// The PostgreSQL server for tests that leave it alone.
pub fn postgres() -> &'static Arc<Database> {
    static SHARED: LazyLock<Arc<Database>> =
        LazyLock::new(|| server(POSTGRES, Database::attach, Database::postgres));
    &SHARED
}

/// A server with the id that the environment asks for, if it does: the ids of its sessions begin with it.
pub fn with_id(builder: Builder) -> Builder {
    match std::env::var("ZKLOCK_TEST_SERVER_ID") {
        Ok(id) => builder.first_id(id.parse().expect("ZKLOCK_TEST_SERVER_ID is 1 to 255")),
        Err(_) => builder,
    }
}

/// The directory of that name, which is filled once in a run: the first process that asks for it calls `fill`, and
/// others wait.
pub fn once(name: &str, fill: impl FnOnce(&Path)) -> PathBuf {
    static OWN: LazyLock<Scratch> =
        LazyLock::new(|| Scratch::new(&tmpdir(), "once-").expect("a directory for tests"));
    let base = run().unwrap_or_else(|| OWN.path().to_path_buf());
    let (directory, filled) = (base.join(name), base.join(format!("{name}.filled")));
    let turn = File::create(base.join(format!("{name}.lock"))).expect("a file to lock");
    flock(&turn, FlockOperation::LockExclusive).expect("the turn to fill a directory");
    if !filled.exists() {
        // What an earlier attempt has left that failed.
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir(&directory).expect("a directory for tests");
        fill(&directory);
        File::create(filled).expect("a mark that a directory is filled");
    }
    directory
}

/// Cargo's directory for tests, where others write as well: beside that of the profile, in which the test programs
/// are.
pub fn tmpdir() -> PathBuf {
    let program = std::env::current_exe().expect("the test program");
    let is_of_cargo = |above: &Path| above.ends_with("deps") || above.ends_with("examples");
    let profile = program.ancestors().skip(1).find(|above| !is_of_cargo(above));
    let directory = profile.and_then(Path::parent).expect("cargo's directory").join("tmp");
    fs::create_dir_all(&directory).expect("a directory for tests");
    directory
}
