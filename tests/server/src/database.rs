//! Servers of PostgreSQL, MariaDB and Redis, from their start to their removal: for tests of what works on several stores.
//!
//! As a ZooKeeper [`Server`](crate::Server), one owns a process, a directory and a port, and listens on loopback alone.
//! The first two refuse to be run by root; there all run as the user `nobody`.
//!
//! Each process creates the empty data of a kind once and copies it for every server. If [`TEMPLATES`] names a
//! directory, all processes share the copy that is kept there.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Signal, geteuid};

use crate::data_dir::DataDir;
use crate::error::{Error, Result};
use crate::port::Port;
use crate::process::Process;

/// On a busy machine.
const STARTS_WITHIN: Duration = Duration::from_secs(60);
const GRACE: Duration = Duration::from_secs(5);
/// How often a start is tried: the port may be taken, or the last one's memory not be free yet.
const ATTEMPTS: usize = 5;
/// The file in its directory that says where clients connect to.
const URL: &str = "url";
/// The variable that names a directory for empty data, which processes share.
const TEMPLATES: &str = "ZKLOCK_TESTING_TEMPLATES";
/// The user that has no files.
const NOBODY: u32 = 65_534;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Postgres,
    MariaDb,
    Redis,
}

/// A database server on loopback, with nothing in it. Dropping it ends it, and removes its directory.
///
/// ```no_run
/// let server = zklock_testing::Database::postgres()?;
/// println!("psql {}", server.url());
/// server.kill(); // as a crash would
/// server.start_again()?; // with the same port and data
/// # Ok::<(), zklock_testing::Error>(())
/// ```
#[must_use = "a server that is dropped ends at once"]
pub struct Database {
    kind: Kind,
    // The order is the order of drop: the process first, its directory after it.
    process: Mutex<Option<Process>>,
    /// What more its program is given.
    arguments: Mutex<Vec<OsString>>,
    directory: DataDir,
    port: Port,
}

impl Database {
    /// Starts PostgreSQL. It serves when this returns.
    ///
    /// # Errors
    /// [`Error::NoDatabase`] names the package to install; [`Error::Database`] shows the end of the server's log.
    pub fn postgres() -> Result<Database> {
        Database::start(Kind::Postgres)
    }

    /// Starts MariaDB. It serves when this returns.
    ///
    /// # Errors
    /// As [`postgres`](Database::postgres).
    pub fn mariadb() -> Result<Database> {
        Database::start(Kind::MariaDb)
    }

    /// Starts Redis, which keeps everything in memory. It serves when this returns.
    ///
    /// # Errors
    /// As [`postgres`](Database::postgres).
    pub fn redis() -> Result<Database> {
        Database::start(Kind::Redis)
    }

    /// A server that another process has started, by its [`directory`](Database::directory) there. This process can
    /// work on it, and can neither stop nor start it.
    ///
    /// # Errors
    /// [`Error::Io`] when there is no such server.
    pub fn attach(directory: &Path) -> Result<Database> {
        let cannot = || Error::io(format!("attach to the server in {}", directory.display()));
        let url = fs::read_to_string(directory.join(URL)).map_err(cannot())?;
        let kinds = [Kind::Postgres, Kind::MariaDb, Kind::Redis];
        let of_kind = |kind| {
            let directory = DataDir::OfAnotherProcess(directory.to_path_buf());
            let port = url.rsplit(':').next()?.split('/').next()?.parse().ok()?;
            let port = Port::of_another_process(port);
            let server = Database::stopped(kind, directory, port);
            (server.url() == url).then_some(server)
        };
        let server = kinds.into_iter().find_map(of_kind);
        server.ok_or_else(|| cannot()(io::ErrorKind::InvalidData.into()))
    }

    /// Its own directory. Removed on drop.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    fn stopped(kind: Kind, directory: DataDir, port: Port) -> Database {
        let (process, arguments) = (Mutex::default(), Mutex::default());
        Database { kind, process, arguments, directory, port }
    }

    fn start(kind: Kind) -> Result<Database> {
        let template = template(kind)?;
        let mut attempt = 1;
        loop {
            let directory = DataDir::create().map_err(Error::io("create a server's directory"))?;
            // The empty directory makes way for the copy.
            fs::remove_dir(directory.data()).map_err(Error::io("make a server's directory"))?;
            copy(template, &directory.data())?;
            own(directory.path()).map_err(Error::io("give a server its directory"))?;
            let port = Port::reserve().map_err(Error::io("reserve a port"))?;
            let server = Database::stopped(kind, directory, port);
            let url = server.directory.path().join(URL);
            fs::write(url, server.url()).map_err(Error::io("write a server's address"))?;
            match server.start_again() {
                Err(_) if attempt < ATTEMPTS => attempt += 1,
                started => return started.map(|()| server),
            }
        }
    }

    /// Where clients connect to.
    pub fn addr(&self) -> SocketAddr {
        self.port.addr()
    }

    /// Where clients connect to, with the user and the database that are there.
    pub fn url(&self) -> String {
        self.url_at(self.addr())
    }

    /// The same by way of another address: that of a [`Proxy`](crate::Proxy), say.
    pub fn url_at(&self, address: SocketAddr) -> String {
        match self.kind {
            Kind::Postgres => format!("postgres://zklock@{address}/postgres"),
            Kind::MariaDb => format!("mysql://zklock@{address}/zklock"),
            Kind::Redis => format!("redis://{address}"),
        }
    }

    /// The process's id, `None` while it is stopped.
    pub fn pid(&self) -> Option<u32> {
        self.process.lock().as_ref().map(Process::pid)
    }

    /// Kills the process, as a crash would, and waits for its end. Killing a stopped server does nothing.
    pub fn kill(&self) {
        let process = self.process.lock().take();
        drop(process);
    }

    /// Starts the stopped server with the same port and data; it serves when this returns. Does nothing to a server
    /// that runs.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub fn start_again(&self) -> Result<()> {
        let mut process = self.process.lock();
        let missing = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => no_database(server_of(self.kind).as_ref()),
            _ => Error::io("start a database server")(error),
        };
        let mut attempt = 1;
        while process.is_none() {
            let mut started = self.spawn().map_err(missing)?;
            match self.wait_ready(&mut started) {
                Ok(()) => *process = Some(started),
                // What a killed one has left behind goes within moments.
                Err(_) if attempt < ATTEMPTS => {
                    attempt += 1;
                    thread::sleep(Duration::from_millis(100));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Kills the process and starts it again, from now on with these arguments as well: `--require-secure-transport`
    /// for MariaDB, for example.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub fn start_again_with(
        &self,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<()> {
        self.kill();
        *self.arguments.lock() = arguments.into_iter().map(Into::into).collect();
        self.start_again()
    }

    fn spawn(&self) -> io::Result<Process> {
        if let DataDir::OfAnotherProcess(_) = self.directory {
            return Err(io::Error::other("another process starts and stops this server"));
        }
        let log = OpenOptions::new().create(true).append(true).open(self.directory.log())?;
        let (data, port) = (self.directory.data(), self.port.number().to_string());
        let mut command = Command::new(program(self.kind, server_of(self.kind)));
        match self.kind {
            Kind::Postgres => {
                command.arg("-D").arg(&data).args(["-p", &port]);
                for setting in [
                    "listen_addresses=127.0.0.1",
                    "unix_socket_directories=",
                    "max_connections=1000",
                    "shared_buffers=16MB",
                    "dynamic_shared_memory_type=mmap",
                ] {
                    command.args(["-c", setting]);
                }
            }
            Kind::MariaDb => {
                command = mariadb(server_of(self.kind), &self.directory);
                command.args(["--port", &port, "--bind-address=127.0.0.1"]);
                command.arg(option("socket", &data.join("socket")));
                command.arg(option("pid-file", &data.join("pid")));
                command.args([
                    "--max-connections=1000",
                    "--innodb-buffer-pool-size=16M",
                    "--innodb-log-file-size=16M",
                    "--skip-name-resolve",
                ]);
            }
            Kind::Redis => {
                command.args(["--port", &port, "--bind", "127.0.0.1", "--save", ""]);
                command.arg("--dir").arg(&data);
            }
        }
        command.args(&*self.arguments.lock());
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        as_nobody(&mut command);
        Process::start_dying_by(command, self.end())
    }

    /// What ends it at once, but for its clients.
    fn end(&self) -> Signal {
        match self.kind {
            // One that is killed leaves a piece of the system's memory behind.
            Kind::Postgres => Signal::QUIT,
            Kind::MariaDb | Kind::Redis => Signal::KILL,
        }
    }

    fn wait_ready(&self, process: &mut Process) -> Result<()> {
        let deadline = Instant::now() + STARTS_WITHIN;
        loop {
            if self.serves(process.pid()) {
                return Ok(());
            }
            let ended = process.ended().map_err(Error::io("look after a server"))?;
            if ended.is_some() || Instant::now() >= deadline {
                let log = fs::read(self.directory.log()).unwrap_or_default();
                let log = String::from_utf8_lossy(&log).into_owned();
                let lines: Vec<&str> = log.lines().collect();
                let tail = lines[lines.len().saturating_sub(20)..].join("\n");
                return Err(Error::Database { tail });
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether this very process serves.
    fn serves(&self, pid: u32) -> bool {
        match self.kind {
            Kind::Postgres => {
                let file = fs::read_to_string(self.directory.data().join("postmaster.pid"));
                let file = file.unwrap_or_default();
                let is_ours = file.lines().next().is_some_and(|line| line == pid.to_string());
                is_ours && file.lines().last().is_some_and(|line| line.trim() == "ready")
            }
            Kind::MariaDb => {
                let file = fs::read_to_string(self.directory.data().join("pid"));
                let is_ours = file.is_ok_and(|file| file.trim() == pid.to_string());
                // The version of its protocol.
                is_ours && says(self.addr(), b"").is_some_and(|greeting| greeting[4] == 10)
            }
            Kind::Redis => says(self.addr(), b"PING\r\n").is_some_and(|answer| answer == *b"+PONG"),
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let end = self.end();
        if let Some(process) = self.process.get_mut() {
            let _ = process.signal(end).and_then(|()| process.wait_ended(GRACE));
        }
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Database").field("url", &self.url()).finish_non_exhaustive()
    }
}

/// The first that a server says, after it was asked.
fn says(address: SocketAddr, question: &[u8]) -> Option<[u8; 5]> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_millis(150)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
    stream.write_all(question).ok()?;
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).ok()?;
    Some(answer)
}

fn server_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Postgres => "postgres",
        Kind::MariaDb => "mariadbd",
        Kind::Redis => "redis-server",
    }
}

/// Where Debian keeps it, or, if that is elsewhere, its name.
fn program(kind: Kind, name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut places: Vec<PathBuf> = match kind {
        Kind::Postgres => versions.map(|version| version.path().join("bin")).collect(),
        Kind::MariaDb => vec![PathBuf::from("/usr/sbin")],
        Kind::Redis => Vec::new(),
    };
    places.sort();
    let found = places.into_iter().rev().map(|place| place.join(name)).find(|file| file.exists());
    found.unwrap_or_else(|| PathBuf::from(name))
}

fn option(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(format!("--{name}="));
    option.push(path);
    option
}

fn as_nobody(command: &mut Command) {
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
}

/// Gives a directory, and all in it, to whom the server runs as.
fn own(path: &Path) -> io::Result<()> {
    if geteuid().is_root() {
        chown(path, Some(NOBODY), Some(NOBODY))?;
        if path.is_dir() {
            for entry in fs::read_dir(path)? {
                own(&entry?.path())?;
            }
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    run(Command::new("cp").arg("-a").arg(from).arg(to))
}

fn run(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => no_database(&name),
        _ => Error::io(format!("run {}", name.to_string_lossy()))(error),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(Error::Database { tail: String::from_utf8_lossy(&said).into_owned() })
}

fn no_database(program: &OsStr) -> Error {
    let package = match program.to_string_lossy() {
        name if name.contains("maria") => "mariadb-server",
        name if name.contains("redis") => "redis-server",
        _ => "postgresql",
    };
    Error::NoDatabase { program: program.to_string_lossy().into_owned(), package }
}

/// A program of MariaDB for the data in that directory.
fn mariadb(name: &str, directory: &DataDir) -> Command {
    let mut command = Command::new(program(Kind::MariaDb, name));
    command.arg("--no-defaults").arg(option("datadir", &directory.data()));
    // A server that starts deletes the temporary tables of all others that use the same directory for them.
    command.env("TMPDIR", directory.path());
    command
}

/// The data of a server in which there is nothing.
fn template(kind: Kind) -> Result<&'static Path> {
    static MADE: [Mutex<()>; 3] = [const { Mutex::new(()) }; 3];
    static TEMPLATES: [OnceLock<PathBuf>; 3] = [const { OnceLock::new() }; 3];
    let (made, template) = (&MADE[kind as usize], &TEMPLATES[kind as usize]);
    let _one_makes_it = made.lock();
    if let Some(template) = template.get() {
        return Ok(template);
    }
    let data = match std::env::var_os(self::TEMPLATES) {
        Some(shared) => shared_template(kind, Path::new(&shared))?,
        // It stays until the process ends; the next process removes it.
        None => Box::leak(Box::new(create(kind)?)).data(),
    };
    Ok(template.get_or_init(|| data))
}

/// The data in that directory, which the first process puts there.
fn shared_template(kind: Kind, shared: &Path) -> Result<PathBuf> {
    let data = shared.join(format!("{kind:?}"));
    let cannot = || Error::io("share the empty data of servers");
    let turn = File::create(data.with_extension("lock")).map_err(cannot())?;
    flock(&turn, FlockOperation::LockExclusive).map_err(|error| cannot()(error.into()))?;
    if !data.exists() {
        let unfinished = data.with_extension("unfinished");
        let _ = fs::remove_dir_all(&unfinished);
        copy(&create(kind)?.data(), &unfinished)?;
        fs::rename(unfinished, &data).map_err(cannot())?;
    }
    Ok(data)
}

/// Creates empty data.
fn create(kind: Kind) -> Result<DataDir> {
    let directory = DataDir::create().map_err(Error::io("create a server's directory"))?;
    own(directory.path()).map_err(Error::io("give a server its directory"))?;
    let mut command;
    match kind {
        Kind::Postgres => {
            command = Command::new(program(kind, "initdb"));
            command.arg("-D").arg(directory.data());
            command.args(["-U", "zklock", "-A", "trust", "-E", "UTF8"]);
            command.args(["--locale=C", "--no-sync", "--no-instructions"]);
        }
        Kind::MariaDb => {
            command = mariadb("mariadb-install-db", &directory);
            command.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
        }
        Kind::Redis => return Ok(directory),
    }
    command.current_dir(directory.path());
    as_nobody(&mut command);
    run(&mut command)?;
    if kind == Kind::MariaDb {
        set_up(&directory)?;
    }
    Ok(directory)
}

/// Gives MariaDB the database and the user of tests.
fn set_up(directory: &DataDir) -> Result<()> {
    // It reads one statement a line.
    let setup = [
        "FLUSH PRIVILEGES;",
        "CREATE DATABASE zklock;",
        "CREATE USER zklock@'%';",
        "GRANT ALL ON *.* TO zklock@'%' WITH GRANT OPTION;",
    ];
    let mut command = mariadb(server_of(Kind::MariaDb), directory);
    command.args(["--bootstrap", "--innodb-log-file-size=16M"]);
    let file = directory.path().join("setup.sql");
    fs::write(&file, setup.join("\n") + "\n").map_err(Error::io("write a server's set-up"))?;
    let setup = File::open(file).map_err(Error::io("read a server's set-up"))?;
    as_nobody(&mut command);
    let output = command.stdin(setup).output().map_err(Error::io("set a server up"))?;
    if !output.status.success() {
        let tail = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Error::Database { tail });
    }
    Ok(())
}
