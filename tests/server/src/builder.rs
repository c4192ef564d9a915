//! What a server is started with, and the files that tell ZooKeeper so.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::time::Duration;

use crate::data_dir::DataDir;
use crate::ensemble::Ensemble;
use crate::error::{Error, Result};
use crate::install::Installation;
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
    partitionable: bool,
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
            partitionable: false,
            start_timeout: Duration::from_secs(30),
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

    /// Ensembles: whether members talk to each other through proxies, which is what [`Ensemble::isolate`] needs.
    /// Default: they do not.
    pub fn partitionable(mut self, partitionable: bool) -> Self {
        self.partitionable = partitionable;
        self
    }

    /// How long a start may take, until the server serves. Default: 30 s.
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
        Server::start_with(&self)
    }

    /// Starts an ensemble of `members` servers. It has a quorum and every member serves when this returns.
    ///
    /// # Errors
    /// As [`Ensemble::start`].
    pub fn start_ensemble(self, members: usize) -> Result<Ensemble> {
        self.check()?;
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
        const OURS: [&str; 3] = ["clientPort", "clientPortAddress", "dataDir"];
        match self.properties.iter().find(|(key, _)| OURS.contains(&key.as_str())) {
            Some((key, _)) => Err(Error::bad_argument(format!(
                "start with a {key}: each server gets an address and a directory of its own"
            ))),
            None => Ok(()),
        }
    }

    pub(crate) fn starts_within(&self) -> Duration {
        self.start_timeout
    }

    pub(crate) fn is_partitionable(&self) -> bool {
        self.partitionable
    }

    /// The arguments of `java`, for the server whose directory this is.
    pub(crate) fn arguments(
        &self,
        installation: &Installation,
        directory: &DataDir,
    ) -> Vec<OsString> {
        let path = directory.path().display();
        let level = self.log_level.name();
        let mut arguments: Vec<OsString> = vec![
            "-Xms64m".into(),
            "-Xmx128m".into(),
            "-XX:+UseSerialGC".into(),
            // It writes a file to /tmp for each process, which a killed one leaves there.
            "-XX:-UsePerfData".into(),
            "-Djava.net.preferIPv4Stack=true".into(),
            "-Dzookeeper.admin.enableServer=false".into(),
            "-Dzookeeper.jmx.log4j.disable=true".into(),
            format!("-Dorg.slf4j.simpleLogger.defaultLogLevel={level}").into(),
            "-Dorg.slf4j.simpleLogger.showDateTime=true".into(),
            "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS".into(),
            format!("-Dlogback.configurationFile={path}/logback.xml").into(),
            format!("-Dlog4j.configuration=file:{path}/log4j.properties").into(),
        ];
        let interval = self.container_check_interval.as_millis();
        arguments.push(format!("-Dznode.container.checkIntervalMs={interval}").into());
        arguments.extend(self.jvm_args.iter().cloned());
        arguments.extend([
            "-cp".into(),
            installation.class_path.clone(),
            "org.apache.zookeeper.server.quorum.QuorumPeerMain".into(),
            directory.path().join("zoo.cfg").into(),
        ]);
        arguments
    }

    /// Writes what the server reads at its start. `ensemble`: its number and the `server.N` lines.
    pub(crate) fn write_files(
        &self,
        directory: &DataDir,
        client_port: u16,
        ensemble: Option<(usize, &[(String, String)])>,
    ) -> io::Result<()> {
        let path = directory.path();
        let mut config = self.config(directory, client_port);
        if let Some((number, members)) = ensemble {
            for (key, value) in members {
                set(&mut config, key, value.clone());
            }
            fs::write(directory.data().join("myid"), number.to_string())?;
        }
        let mut text = String::new();
        for (key, value) in &config {
            let _ = writeln!(text, "{key}={value}");
        }
        fs::write(path.join("zoo.cfg"), text)?;
        let level = self.log_level.name();
        fs::write(
            path.join("logback.xml"),
            format!(
                "<configuration><appender name=\"log\" class=\"ch.qos.logback.core.ConsoleAppender\"><encoder>\
                 <pattern>%d{{HH:mm:ss.SSS}} [%t] %level %logger{{0}} - %m%n</pattern></encoder></appender>\
                 <root level=\"{level}\"><appender-ref ref=\"log\"/></root></configuration>\n"
            ),
        )?;
        fs::write(
            path.join("log4j.properties"),
            format!(
                "log4j.rootLogger={level}, log\nlog4j.appender.log=org.apache.log4j.ConsoleAppender\n\
                 log4j.appender.log.layout=org.apache.log4j.PatternLayout\n\
                 log4j.appender.log.layout.ConversionPattern=%d{{HH:mm:ss,SSS}} [%t] %p %c{{1}} - %m%n\n"
            ),
        )
    }

    fn config(&self, directory: &DataDir, client_port: u16) -> Vec<(String, String)> {
        // Limits are counted in ticks; a zero would mean "not at all".
        let ticks =
            |limit: Duration| limit.as_millis().div_ceil(self.tick_time.as_millis().max(1)).max(1);
        let mut config = Vec::new();
        for (key, value) in [
            ("tickTime", self.tick_time.as_millis().to_string()),
            ("dataDir", directory.data().display().to_string()),
            ("clientPort", client_port.to_string()),
            ("clientPortAddress", "127.0.0.1".into()),
            ("maxClientCnxns", "0".into()),
            ("minSessionTimeout", self.min_session_timeout.as_millis().to_string()),
            ("maxSessionTimeout", self.max_session_timeout.as_millis().to_string()),
            ("initLimit", ticks(self.init_limit).to_string()),
            ("syncLimit", ticks(self.sync_limit).to_string()),
            ("admin.enableServer", "false".into()),
            ("4lw.commands.whitelist", "*".into()),
            // Nodes with a time to live are off by default.
            ("extendedTypesEnabled", "true".into()),
            // In kilobytes. ZooKeeper's own 64 MB would fill a small memory file system.
            ("preAllocSize", "1024".into()),
        ] {
            set(&mut config, key, value);
        }
        for (key, value) in &self.properties {
            set(&mut config, key, value.clone());
        }
        config
    }
}

fn set(config: &mut Vec<(String, String)>, key: &str, value: String) {
    match config.iter_mut().find(|(known, _)| known == key) {
        Some(entry) => entry.1 = value,
        None => config.push((key.to_owned(), value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_property_replaces_the_line_of_its_key() {
        let directory = DataDir::create().unwrap();
        let builder = Builder::default().property("tickTime", "50").property("snapCount", "7");
        builder.write_files(&directory, 2181, None).unwrap();
        let config = fs::read_to_string(directory.path().join("zoo.cfg")).unwrap();
        assert_eq!(config.matches("tickTime=").count(), 1);
        assert!(config.contains("tickTime=50\n") && config.contains("snapCount=7\n"), "{config}");
    }
}
