//! Which servers, and a client of them.

use std::collections::HashMap;
use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use zklock::{Client, ClientOptions};

use crate::failure::Failure;
use crate::secure::{self, Secure, SecureArgs};

/// Where a file with settings is looked for, after the one in the user's configuration.
const SYSTEM_FILE: &str = "/etc/zklock.toml";
/// All that such a file may say, besides what is secure.
const KEYS: [&str; 3] = ["hosts", "session-timeout", "tick-time"];

#[derive(Args, Clone, Debug)]
pub struct Servers {
    /// ZooKeeper servers, with a chroot where there is one: 10.0.0.1:2181,10.0.0.2:2181/chroot [default:
    /// ZKLOCK_HOSTS, then `hosts` in the configuration file]
    #[arg(long, value_name = "HOST:PORT,...", help_heading = "Servers")]
    pub hosts: Option<String>,

    /// A file with hosts = "...", and session-timeout = "30s" and tick-time = "2s" if wanted [default:
    /// ZKLOCK_CONFIG, ~/.config/zklock.toml, /etc/zklock.toml]
    #[arg(long, value_name = "FILE", help_heading = "Servers")]
    pub config: Option<PathBuf>,

    /// How long to try to get a first connection
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = humantime::parse_duration)]
    #[arg(help_heading = "Servers")]
    pub connect_timeout: Duration,

    #[command(flatten)]
    pub secure: SecureArgs,
}

/// What is known of the servers once arguments, environment and files were read.
#[derive(Debug)]
pub struct Settings {
    pub hosts: String,
    pub session_timeout: Option<Duration>,
    pub tick_time: Option<Duration>,
    pub secure: Secure,
    connect_timeout: Duration,
}

impl Servers {
    /// # Errors
    /// Where nothing names a server, or a file can't be read.
    pub fn settings(&self) -> Result<Settings, Failure> {
        let file = self.file()?;
        let named = self.hosts.clone().or_else(|| env::var("ZKLOCK_HOSTS").ok());
        let hosts = named.or(file.hosts).filter(|hosts| !hosts.is_empty()).ok_or_else(|| {
            Failure::new(format!(
                "which ZooKeeper servers? Give --hosts HOST:PORT, set ZKLOCK_HOSTS, or write hosts = \"HOST:PORT\" into {SYSTEM_FILE}"
            ))
        })?;
        let (session_timeout, tick_time) = (file.session_timeout, file.tick_time);
        let secure = self.secure.read(|key| file.secure.get(key).cloned())?;
        let connect_timeout = self.connect_timeout;
        Ok(Settings { hosts, session_timeout, tick_time, secure, connect_timeout })
    }

    fn file(&self) -> Result<FileSettings, Failure> {
        let named = self.config.clone().or_else(|| env::var_os("ZKLOCK_CONFIG").map(Into::into));
        if let Some(named) = named {
            let text = std::fs::read_to_string(&named)
                .map_err(|error| Failure::new(format!("{}: {error}", named.display())))?;
            return read(&named, &text);
        }
        let configuration = env::var_os("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")));
        let users = configuration.map(|directory| directory.join("zklock.toml"));
        for file in users.into_iter().chain([PathBuf::from(SYSTEM_FILE)]) {
            if let Ok(text) = std::fs::read_to_string(&file) {
                return read(&file, &text);
            }
        }
        Ok(FileSettings::default())
    }
}

impl Settings {
    pub fn options(&self, session_timeout: Duration) -> ClientOptions {
        let options = Client::options()
            .session_timeout(session_timeout)
            .connect_timeout(self.connect_timeout);
        let options = self.secure.apply(options);
        match self.tick_time {
            Some(tick) => options.tick_time(tick),
            None => options,
        }
    }

    /// A client that looks, and holds nothing.
    ///
    /// # Errors
    /// Where no server answers.
    pub fn connect(&self) -> Result<Client, Failure> {
        Ok(self.options(Duration::from_secs(10)).connect(&self.hosts).wait()?)
    }
}

#[derive(Debug, Default, PartialEq)]
struct FileSettings {
    hosts: Option<String>,
    session_timeout: Option<Duration>,
    tick_time: Option<Duration>,
    secure: HashMap<String, String>,
}

fn read(file: &Path, text: &str) -> Result<FileSettings, Failure> {
    let refuse = |why: String| Failure::new(format!("{}: {why}", file.display()));
    let table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| refuse(error.to_string()))?;
    let keys = [&KEYS[..], &secure::KEYS].concat();
    if let Some(unknown) = table.keys().find(|key| !keys.contains(&key.as_str())) {
        return Err(refuse(format!("no such setting: {unknown}; there are {}", keys.join(", "))));
    }
    let text = |key: &str| match table.get(key) {
        None => Ok(None),
        Some(toml::Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(refuse(format!("{key} is a text in quotes"))),
    };
    let time = |key: &str| {
        let parse = |time: String| {
            humantime::parse_duration(&time).map_err(|error| refuse(format!("{key}: {error}")))
        };
        text(key)?.map(parse).transpose()
    };
    let mut secure = HashMap::new();
    for key in secure::KEYS {
        secure.extend(text(key)?.map(|value| (key.to_owned(), value)));
    }
    Ok(FileSettings {
        secure,
        hosts: text("hosts")?,
        session_timeout: time("session-timeout")?,
        tick_time: time("tick-time")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_hosts_and_times_and_nothing_else() {
        let file = Path::new("/etc/zklock.toml");
        let settings = read(file, "hosts = \"a:1,b/c\"\nsession-timeout = \"1m\"\n").unwrap();
        assert_eq!(settings.hosts.as_deref(), Some("a:1,b/c"));
        assert_eq!(settings.session_timeout, Some(Duration::from_secs(60)));
        for bad in ["host = \"a\"", "hosts = 1", "tick-time = \"two\"", "hosts"] {
            let error = read(file, bad).unwrap_err().to_string();
            assert!(error.starts_with("/etc/zklock.toml: "), "{error}");
        }
    }
}
