//! One ZooKeeper server process, from its start to its removal.
//!
//! A [`Server`] owns a process, a directory and a port. Whatever happens to the process (stopped, killed, started
//! again) the port and the directory stay the same until the `Server` is dropped: then all three are gone. The
//! process never outlives this one, not even when this one is killed.

use std::fmt;
use std::fs::OpenOptions;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::Signal;

use crate::builder::Builder;
use crate::data_dir::DataDir;
use crate::deadline;
use crate::error::{Error, Result};
use crate::four_letter::four_letter;
use crate::install::Installation;
use crate::port::Port;
use crate::process::Process;

/// How long a probe waits: a server that is starting accepts connections but answers nothing.
pub(crate) const PROBE: Duration = Duration::from_millis(150);
/// How long [`Server::stop`] waits before it kills.
const GRACE: Duration = Duration::from_secs(5);
/// How often a start is tried when the port turns out to be taken.
const ATTEMPTS: usize = 5;

/// A ZooKeeper server on loopback, alone or a member of an [`Ensemble`](crate::Ensemble).
///
/// All methods take `&self`, so a test can freeze or kill the server from any thread. Those that start or stop it, or
/// ask it something, block until that is done.
///
/// Dropping it kills the process, waits for its end, frees the port and removes the directory with the data: a matter
/// of milliseconds.
///
/// ```no_run
/// let server = zklock_testing::Server::start()?;
/// println!("zkCli.sh -server {}", server.hosts());
/// server.kill(); // as a crash would; its clients lose their connections
/// server.start_again()?; // with the same port and data
/// assert_eq!(server.stats()?.ephemerals, 0);
/// # Ok::<(), zklock_testing::Error>(())
/// ```
#[must_use = "a server that is dropped ends at once"]
pub struct Server {
    // The order is the order of drop: the process first, its directory after it.
    process: Mutex<Option<Process>>,
    directory: DataDir,
    port: Port,
    secure_port: Option<Port>,
    java: PathBuf,
    arguments: Vec<std::ffi::OsString>,
    start_timeout: Duration,
    /// Ports that are ours for as long as the server is: those of an ensemble.
    _more_ports: Vec<Port>,
}

impl Server {
    /// Starts a server with the default [settings](Builder), on a free port. It serves when this returns, which takes
    /// about half a second.
    ///
    /// # Errors
    /// [`Error::NoJava`] and [`Error::NoZooKeeper`] name the package to install; [`Error::Start`] shows the end of
    /// the server's log.
    pub fn start() -> Result<Server> {
        Server::builder().start()
    }

    /// Settings for a server or an ensemble.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A server that another process has started, by its [`directory`](Server::directory) there. This process can ask
    /// it everything, and can neither stop nor start it.
    ///
    /// # Errors
    /// [`Error::Io`] when there is no such server, [`Error::NoJava`] and [`Error::NoZooKeeper`].
    pub fn attach(directory: &Path) -> Result<Server> {
        let cannot = || Error::io(format!("attach to the server in {}", directory.display()));
        let settings = std::fs::read_to_string(directory.join("zoo.cfg")).map_err(cannot())?;
        let port = settings.lines().find_map(|line| line.strip_prefix("clientPort=")?.parse().ok());
        let port = port.ok_or_else(|| cannot()(io::ErrorKind::InvalidData.into()))?;
        Ok(Server {
            process: Mutex::new(None),
            directory: DataDir::OfAnotherProcess(directory.to_path_buf()),
            port: Port::of_another_process(port),
            secure_port: None,
            java: Installation::find()?.java,
            arguments: Vec::new(),
            start_timeout: Duration::ZERO,
            _more_ports: Vec::new(),
        })
    }

    pub(crate) fn start_with(builder: &Builder) -> Result<Server> {
        if builder.fixed_port().is_some() {
            return Server::attempt(builder);
        }
        for _ in 1..ATTEMPTS {
            match Server::attempt(builder) {
                Err(Error::Start { tail, .. }) if tells_of_a_taken_port(&tail) => {}
                outcome => return outcome,
            }
        }
        Server::attempt(builder)
    }

    fn attempt(builder: &Builder) -> Result<Server> {
        let port = match builder.fixed_port() {
            Some(number) => Port::reserve_this(number),
            None => Port::reserve(),
        };
        let port = port.map_err(Error::io("reserve a port"))?;
        let server = Server::prepare(builder, port, None, Vec::new())?;
        server.launch()?;
        server.wait_ready(builder.starts_within())?;
        Ok(server)
    }

    /// A server with all its files, not yet running.
    pub(crate) fn prepare(
        builder: &Builder,
        port: Port,
        ensemble: Option<(u8, &[(String, String)])>,
        more_ports: Vec<Port>,
    ) -> Result<Server> {
        let installation = Installation::find()?;
        let directory = DataDir::create().map_err(Error::io("create a server's directory"))?;
        let secure_port = builder.has_secure_port().then(Port::reserve).transpose();
        let secure_port = secure_port.map_err(Error::io("reserve a port"))?;
        builder
            .write_files(
                &directory,
                port.number(),
                secure_port.as_ref().map(Port::number),
                ensemble,
            )
            .map_err(Error::io("write a server's configuration"))?;
        Ok(Server {
            process: Mutex::new(None),
            arguments: builder.arguments(&installation, &directory),
            java: installation.java,
            directory,
            port,
            secure_port,
            start_timeout: builder.starts_within(),
            _more_ports: more_ports,
        })
    }

    /// Where clients connect to.
    pub fn addr(&self) -> SocketAddr {
        self.port.addr()
    }

    /// Where clients connect to, as they are told: `127.0.0.1:port`.
    pub fn hosts(&self) -> String {
        self.addr().to_string()
    }

    /// Where clients connect to by TLS: `127.0.0.1:port`, for a server with a
    /// [`secure_client_port`](Builder::secure_client_port).
    pub fn secure_hosts(&self) -> Option<String> {
        self.secure_port.as_ref().map(|port| port.addr().to_string())
    }

    /// The process's id, `None` while it is stopped.
    pub fn pid(&self) -> Option<u32> {
        self.process.lock().as_ref().map(Process::pid)
    }

    /// The server's own directory, with `zoo.cfg` and `server.log`. Removed on drop: what a failed test should leave
    /// behind must be copied.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// What `zoo.cfg` calls `dataDir`: snapshots and the transaction log are in `version-2` below it. Removed on drop.
    pub fn data_dir(&self) -> PathBuf {
        self.directory.data()
    }

    /// What the server has logged so far, over all its starts.
    ///
    /// # Errors
    /// [`Error::Io`], those of reading a file.
    pub fn log(&self) -> Result<String> {
        let read = std::fs::read(self.directory.log());
        let bytes = read.map_err(Error::io("read a server's log"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Ends the process as an operator would, and waits for its end; kills it after five seconds. A frozen server is
    /// thawed first. Clients see their connections closed; their sessions live on until they time out. Stopping a
    /// stopped server does nothing.
    ///
    /// # Errors
    /// [`Error::Io`], those of the system calls.
    pub fn stop(&self) -> Result<()> {
        // Taken out first: others may look while this waits.
        let process = self.process.lock().take();
        if let Some(mut process) = process {
            let stopped = process
                .signal(Signal::TERM)
                .and_then(|()| process.signal(Signal::CONT))
                .and_then(|()| process.wait_ended(GRACE));
            // On drop a process that is still there is killed.
            stopped.map_err(Error::io("stop a server"))?;
        }
        Ok(())
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
    /// [`Error::Start`], also when somebody took the port meanwhile. A member of an ensemble without a quorum cannot
    /// serve: see [`Server::launch`].
    pub fn start_again(&self) -> Result<()> {
        self.launch()?;
        self.wait_ready(self.start_timeout)
    }

    /// [`stop`](Server::stop), then [`start_again`](Server::start_again).
    ///
    /// # Errors
    /// Those of both.
    pub fn restart(&self) -> Result<()> {
        self.stop()?;
        self.start_again()
    }

    /// Starts the stopped server's process without waiting until it serves.
    ///
    /// # Errors
    /// [`Error::Io`] when the process cannot be started.
    pub fn launch(&self) -> Result<()> {
        let mut process = self.process.lock();
        if process.is_none() {
            *process = Some(self.spawn().map_err(Error::io("start java"))?);
        }
        Ok(())
    }

    fn spawn(&self) -> io::Result<Process> {
        if let DataDir::OfAnotherProcess(_) = self.directory {
            return Err(io::Error::other("another process starts and stops this server"));
        }
        let log = OpenOptions::new().create(true).append(true).open(self.directory.log())?;
        let mut command = Command::new(&self.java);
        command
            .args(&self.arguments)
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        Process::start(command)
    }

    /// Stops the process in its tracks: from the return of this it answers nothing, until [`Server::thaw`]. It keeps
    /// its connections, and the system goes on accepting new ones in its name.
    ///
    /// # Errors
    /// [`Error::Stopped`] when there is no process.
    pub fn freeze(&self) -> Result<()> {
        self.with_process("freeze a server", Process::freeze)
    }

    /// Lets a frozen process go on. Sessions whose time ran out meanwhile expire then.
    ///
    /// # Errors
    /// [`Error::Stopped`] when there is no process.
    pub fn thaw(&self) -> Result<()> {
        self.with_process("thaw a server", |process| process.signal(Signal::CONT))
    }

    fn with_process(&self, what: &str, act: impl FnOnce(&Process) -> io::Result<()>) -> Result<()> {
        match &*self.process.lock() {
            Some(process) => act(process).map_err(Error::io(what)),
            None => Err(Error::Stopped),
        }
    }

    /// Waits until this server serves clients.
    ///
    /// `timeout`: how long to wait in all; zero looks once.
    ///
    /// # Errors
    /// [`Error::Start`] when the process has ended or does not serve in time, [`Error::Stopped`] when there is none.
    pub fn wait_ready(&self, timeout: Duration) -> Result<()> {
        let deadline = deadline::after(timeout);
        loop {
            if self.serves() {
                return Ok(());
            }
            match self.process.lock().as_mut().map(Process::ended) {
                None => return Err(Error::Stopped),
                Some(Ok(None)) => {}
                Some(Ok(Some(status))) => {
                    return Err(self.start_failure(format!("the process ended ({status})")));
                }
                Some(Err(error)) => return Err(Error::io("look after a server")(error)),
            }
            if Instant::now() >= deadline {
                return Err(self.start_failure(format!("it does not serve after {timeout:?}")));
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether this very server serves: another one might have taken the port before it.
    fn serves(&self) -> bool {
        let ours = format!("dataDir={}", self.directory.data().display());
        self.mode().is_some()
            && four_letter(self.addr(), "conf", PROBE)
                .is_ok_and(|answer| answer.lines().any(|line| line.starts_with(&ours)))
    }

    /// One of ZooKeeper's own command-line tools by its Java class, from the same release as the server, such as
    /// `org.apache.zookeeper.server.persistence.TxnLogToolkit`. The caller adds arguments, runs it and sees to its end.
    pub fn tool(&self, class: &str) -> Command {
        let mut command = Command::new(&self.java);
        let class_path = self.arguments.iter().skip_while(|argument| *argument != "-cp").take(2);
        command.args(class_path).arg(class).current_dir(self.directory.path()).stdin(Stdio::null());
        command
    }

    fn start_failure(&self, reason: String) -> Error {
        const LINES: usize = 20;
        let log = self.log().unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let tail = match lines.len() {
            0 => "(nothing was logged)".to_owned(),
            length => lines[length.saturating_sub(LINES)..].join("\n"),
        };
        Error::Start { reason, log: self.directory.log(), tail }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Server")
            .field("hosts", &self.hosts())
            .field("pid", &self.pid())
            .field("directory", &self.directory())
            .finish_non_exhaustive()
    }
}

pub(crate) fn tells_of_a_taken_port(log: &str) -> bool {
    log.contains("BindException") || log.contains("Address already in use")
}
