//! What a server is started with.

mod files;

use std::ffi::OsString;
use std::time::Duration;

use crate::ensemble::Ensemble;
use crate::error::{Error, Result};
use crate::server::Server;

/// Which of its messages a server writes to its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogLevel {
    /// Errors and warnings: what a failed start is explained with.
    Warn,
    /// The story of each session and election as well.
    Info,
    /// Everything, at a price that measurements see.
    Debug,
}

impl LogLevel {
    fn name(self) -> &'static str {
        match self {
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
        }
    }
}

/// Settings of a server or of every member of an ensemble, made by [`Server::builder`].
///
/// ```no_run
/// use std::time::Duration;
/// let server = zklock_testing::Server::builder()
///     .container_check_interval(Duration::from_secs(1))
///     .property("snapCount", "1000")
///     .start()?;
/// # Ok::<(), zklock_testing::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    tick_time: Duration,
    min_session_timeout: Duration,
    max_session_timeout: Duration,
    container_check_interval: Duration,
    init_limit: Duration,
    sync_limit: Duration,
    first_id: Option<u8>,
    port: Option<u16>,
    partitionable: bool,
    secure_client_port: bool,
    start_timeout: Duration,
    log_level: LogLevel,
    jvm_args: Vec<OsString>,
    properties: Vec<(String, String)>,
}

impl Default for Builder {
    fn default() -> Self {
        Builder {
            tick_time: Duration::from_millis(100),
            min_session_timeout: Duration::from_millis(200),
            max_session_timeout: Duration::from_secs(60),
            container_check_interval: Duration::from_secs(60),
            init_limit: Duration::from_secs(20),
            sync_limit: Duration::from_secs(3),
            first_id: None,
            port: None,
            partitionable: false,
            secure_client_port: false,
            start_timeout: Duration::from_secs(120),
            log_level: LogLevel::Warn,
            jvm_args: Vec::new(),
            properties: Vec::new(),
        }
    }
}

impl Builder {
    /// ZooKeeper's unit of time, a millisecond at least; sessions expire on its multiples. Default: 100 ms.
    pub fn tick_time(mut self, tick: Duration) -> Self {
        self.tick_time = tick;
        self
    }

    /// The shortest session timeout that a client can get. Default: 200 ms.
    pub fn min_session_timeout(mut self, timeout: Duration) -> Self {
        self.min_session_timeout = timeout;
        self
    }

    /// The longest session timeout that a client can get. Default: one minute.
    pub fn max_session_timeout(mut self, timeout: Duration) -> Self {
        self.max_session_timeout = timeout;
        self
    }

    /// How often empty container nodes and nodes past their time to live are removed. Default: one minute.
    pub fn container_check_interval(mut self, interval: Duration) -> Self {
        self.container_check_interval = interval;
        self
    }

    /// Ensembles: how long a member may take to join its leader. Default: 20 s.
    pub fn init_limit(mut self, limit: Duration) -> Self {
        self.init_limit = limit;
        self
    }

    /// Ensembles: after how long a silence leader and follower give each other up. Default: 3 s.
    pub fn sync_limit(mut self, limit: Duration) -> Self {
        self.sync_limit = limit;
        self
    }

    /// The id of the first member, `server.N`; the others count on from it, up to 255. Default: 1. The ids of sessions
    /// begin with the id of the member that opened them, as their highest byte.
    ///
    /// A single server has no id by itself. One that is given one runs as an ensemble of one, which leads itself.
    ///
    /// ZooKeeper has no nodes with a time to live at a member with the id 255, so an ensemble with such a member has
    /// none.
    pub fn first_id(mut self, id: u8) -> Self {
        self.first_id = Some(id);
        self
    }

    /// The port of a single server, on 127.0.0.1. Default: one that is free. A start fails where it is taken.
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Ensembles: whether members talk to each other through proxies, which is what [`Ensemble::isolate`] needs.
    /// Default: they do not.
    pub fn partitionable(mut self, partitionable: bool) -> Self {
        self.partitionable = partitionable;
        self
    }

    /// Whether each server has a second port, for TLS: see [`Server::secure_hosts`]. The server takes its certificate, and
    /// the authorities it knows, from properties such as `ssl.keyStore.location`, which have to be given. Default: it
    /// has none.
    pub fn secure_client_port(mut self, secure: bool) -> Self {
        self.secure_client_port = secure;
        self
    }

    /// How long a start may take, until the server serves. Default: 120 s, as long as a busy machine may take.
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = timeout;
        self
    }

    /// What the server logs. Default: [`LogLevel::Warn`].
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.log_level = level;
        self
    }

    /// One more argument for the Java machine, such as `-Dzookeeper.digest.enabled=false`. The last one wins.
    pub fn jvm_arg(mut self, argument: impl Into<OsString>) -> Self {
        self.jvm_args.push(argument.into());
        self
    }

    /// One more line of `zoo.cfg`; it replaces this crate's own line for that key. Port, address and `dataDir` are each
    /// server's own: those are refused at the start.
    pub fn property(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.push((key.into(), value.into()));
        self
    }

    /// Starts one server that stands alone. It serves when this returns.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start(self) -> Result<Server> {
        self.check()?;
        match self.first_id {
            Some(_) => Ok(self
                .check_without_port()
                .and_then(|()| Ensemble::start_with(&self, 1))?
                .into_only_member()),
            None => Server::start_with(&self),
        }
    }

    /// Starts an ensemble of `members` servers. It has a quorum and every member serves when this returns.
    ///
    /// # Errors
    /// As [`Ensemble::start`].
    pub fn start_ensemble(self, members: usize) -> Result<Ensemble> {
        self.check()?;
        self.check_without_port()?;
        Ensemble::start_with(&self, members)
    }

    /// What ZooKeeper would take, and make something unexpected of. What it refuses by itself, its log explains.
    fn check(&self) -> Result<()> {
        if self.tick_time < Duration::from_millis(1) {
            return Err(Error::bad_argument(format!(
                "start with ticks of {:?}: ZooKeeper counts in milliseconds",
                self.tick_time
            )));
        }
        const OURS: [&str; 5] = [
            "clientPort",
            "clientPortAddress",
            "secureClientPort",
            "secureClientPortAddress",
            "dataDir",
        ];
        match self.properties.iter().find(|(key, _)| OURS.contains(&key.as_str())) {
            Some((key, _)) => Err(Error::bad_argument(format!(
                "start with a {key}: each server gets an address and a directory of its own"
            ))),
            None => Ok(()),
        }
    }

    fn check_without_port(&self) -> Result<()> {
        match self.port {
            None => Ok(()),
            Some(port) => Err(Error::bad_argument(format!(
                "start members of an ensemble at port {port}: only a single server without an id has one of its own"
            ))),
        }
    }

    pub(crate) fn fixed_port(&self) -> Option<u16> {
        self.port
    }

    pub(crate) fn starts_within(&self) -> Duration {
        self.start_timeout
    }

    /// The ids of so many members, if there are so many.
    pub(crate) fn ids(&self, members: usize) -> Result<Vec<u8>> {
        let first = self.first_id.unwrap_or(1);
        let ids: Vec<u8> = (first..=u8::MAX).take(members).collect();
        if first == 0 || ids.len() < members {
            return Err(Error::bad_argument(format!(
                "start {members} members with ids from {first} on: ids are 1 to 255"
            )));
        }
        Ok(ids)
    }

    /// Whether a member that is the only one is an ensemble all the same.
    pub(crate) fn has_ids(&self) -> bool {
        self.first_id.is_some()
    }

    pub(crate) fn has_secure_port(&self) -> bool {
        self.secure_client_port
    }

    pub(crate) fn is_partitionable(&self) -> bool {
        self.partitionable
    }
}
