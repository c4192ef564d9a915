//! Tells ZooKeeper its settings: by arguments, and by the files in a server's directory.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::time::Duration;

use super::Builder;
use crate::data_dir::DataDir;
use crate::install::Installation;

impl Builder {
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
            // Most servers end before code that is compiled with more care would pay.
            "-XX:TieredStopAtLevel=1".into(),
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

    /// Writes what the server reads at its start. `ensemble`: its id and the `server.N` lines.
    pub(crate) fn write_files(
        &self,
        directory: &DataDir,
        client_port: u16,
        secure_port: Option<u16>,
        ensemble: Option<(u8, &[(String, String)])>,
    ) -> io::Result<()> {
        let path = directory.path();
        let mut config = self.config(directory, client_port);
        if let Some(port) = secure_port {
            set(&mut config, "secureClientPort", port.to_string());
            set(&mut config, "secureClientPortAddress", "127.0.0.1".into());
            // The only one that knows TLS.
            let factory = "org.apache.zookeeper.server.NettyServerCnxnFactory";
            set(&mut config, "serverCnxnFactory", factory.into());
        }
        if let Some((id, members)) = ensemble {
            for (key, value) in members {
                set(&mut config, key, value.clone());
            }
            // All members agree on what kinds of nodes there are.
            if members.iter().any(|(key, _)| key == "server.255") {
                set(&mut config, "extendedTypesEnabled", "false".into());
            }
            if self.has_ids() {
                set(&mut config, "standaloneEnabled", "false".into());
            }
            fs::write(directory.data().join("myid"), id.to_string())?;
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
        builder.write_files(&directory, 2181, None, None).unwrap();
        let config = fs::read_to_string(directory.path().join("zoo.cfg")).unwrap();
        assert_eq!(config.matches("tickTime=").count(), 1);
        assert!(config.contains("tickTime=50\n") && config.contains("snapCount=7\n"), "{config}");
    }
}
