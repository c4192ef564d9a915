//! Where the locks are, and a client of that.

use std::collections::HashMap;
use std::env;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use zklock::{Client, ClientOptions, Pending, Store, StoreOptions, Tls};

use crate::failure::Failure;
use crate::secure::{self, Secure, SecureArgs};
use crate::text::{parse_duration, variable};

/// The default session timeout of commands that hold nothing for long.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);
/// Where a file with settings is looked for, after the one in the user's configuration.
const SYSTEM_FILE: &str = "/etc/zklock.toml";
/// All that such a file may say, besides what is secure.
const KEYS: [&str; 4] = ["hosts", "store", "session-timeout", "tick-time"];

#[derive(Args, Clone, Debug)]
pub struct Servers {
    /// The servers: HOST:PORT,.../CHROOT of ZooKeeper, or the address of another store [default: ZKLOCK_STORE, then
    /// ZKLOCK_HOSTS, then the configuration file]
    ///
    /// Other stores are sqlite:FILE for the processes of this machine, redis://HOST:PORT, postgres://HOST/DATABASE and
    /// mysql://HOST/DATABASE, if this program was built with them. --tls-ca is for these servers too.
    #[arg(long, visible_alias = "store", value_name = "ADDRESS")]
    #[arg(global = true, help_heading = "Servers")]
    pub hosts: Option<String>,

    /// The configuration file [default: ZKLOCK_CONFIG, then ~/.config/zklock.toml, then /etc/zklock.toml]
    ///
    /// It has lines such as hosts = "10.0.0.1:2181" or store = "sqlite:/var/lib/locks.db". Optional are session-timeout =
    /// "30s" and tick-time = "2s".
    #[arg(long, value_name = "FILE", global = true, help_heading = "Servers")]
    pub config: Option<PathBuf>,

    /// How long to try to connect
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    #[arg(global = true, help_heading = "Servers")]
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

/// Where the locks are.
pub enum Place {
    Servers(Box<Settings>),
    Elsewhere(Box<Elsewhere>),
}

/// Another store.
pub struct Elsewhere {
    address: String,
    session_timeout: Option<Duration>,
    tls: Option<Tls>,
}

impl Elsewhere {
    pub fn connect(&self, options: StoreOptions) -> Pending<Store> {
        let options = match &self.tls {
            Some(tls) => options.tls(tls.clone()),
            None => options,
        };
        options.connect(&self.address)
    }
}

impl Place {
    /// The store's name, for messages.
    pub fn name(&self) -> &str {
        match self {
            Place::Servers(_) => "ZooKeeper",
            // The rest may contain a password.
            Place::Elsewhere(place) => place.address.split(':').next().unwrap_or_default(),
        }
    }

    /// The session timeout in the configuration file.
    pub fn session_timeout(&self) -> Option<Duration> {
        match self {
            Place::Servers(settings) => settings.session_timeout,
            Place::Elsewhere(place) => place.session_timeout,
        }
    }
}

impl Servers {
    /// # Errors
    /// Nothing names a store, it is one of this process alone, or a file can't be read.
    pub fn place(&self) -> Result<Place, Failure> {
        let file = self.file()?;
        let mut variables =
            [variable("ZKLOCK_STORE")?, variable("ZKLOCK_HOSTS")?].into_iter().flatten();
        let named = self.hosts.clone().or_else(|| variables.find(|value| !value.is_empty()));
        let named = named.or(file.store).or(file.hosts);
        let named = named.filter(|named| !named.is_empty()).ok_or_else(|| {
            Failure::new(format!(
                "which ZooKeeper servers? Give --hosts HOST:PORT, set ZKLOCK_HOSTS, or write hosts = \"HOST:PORT\" into {SYSTEM_FILE}"
            ))
        })?;
        let of_file = |key: &str| file.secure.get(key).cloned();
        let hosts = match named.strip_prefix("zookeeper://") {
            Some(hosts) if !hosts.is_empty() => hosts.to_owned(),
            None if are_hosts(&named) => named,
            _ if named.starts_with("local:") => {
                return Err(Failure::new(
                    "--store local: is for one process; sqlite:FILE is for all processes of this machine",
                ));
            }
            _ => {
                let is_file = named.starts_with("sqlite:");
                let tls = if is_file { None } else { self.secure.tls(of_file)? };
                let (address, session_timeout) = (named, file.session_timeout);
                return Ok(Place::Elsewhere(Box::new(Elsewhere { address, session_timeout, tls })));
            }
        };
        let (session_timeout, tick_time) = (file.session_timeout, file.tick_time);
        let secure = self.secure.read(of_file)?;
        let connect_timeout = self.connect_timeout;
        let settings = Settings { hosts, session_timeout, tick_time, secure, connect_timeout };
        Ok(Place::Servers(Box::new(settings)))
    }

    /// For what only ZooKeeper can do.
    ///
    /// # Errors
    /// As [`place`](Servers::place), and where that is another store.
    pub fn zookeeper(&self, command: &str) -> Result<Settings, Failure> {
        match self.place()? {
            Place::Servers(settings) => Ok(*settings),
            Place::Elsewhere(_) => Err(Failure::new(format!(
                "`zklock {command}` needs ZooKeeper: other stores have `run`, `hold`, `who`, `watch`, `ask`, `break` and `doctor`"
            ))),
        }
    }

    /// A store to look at.
    ///
    /// # Errors
    /// As [`place`](Servers::place), and where it can't be reached.
    pub fn connect(&self) -> Result<Store, Failure> {
        self.connect_for(self.place()?, None)
    }

    /// A store to hold locks in, which outlive a crash of this program for so long unless the file says otherwise.
    ///
    /// # Errors
    /// As [`connect`](Servers::connect).
    pub fn connect_for(&self, place: Place, session: Option<Duration>) -> Result<Store, Failure> {
        let session = session.or(place.session_timeout()).unwrap_or(SESSION_TIMEOUT);
        Ok(match place {
            Place::Servers(settings) => {
                settings.options(session).connect(&settings.hosts).wait()?.into()
            }
            Place::Elsewhere(place) => {
                let options = StoreOptions::new().session_timeout(session);
                let limit = self.connect_timeout;
                place.connect(options.connect_timeout(limit)).within(limit).wait()?
            }
        })
    }

    fn file(&self) -> Result<FileSettings, Failure> {
        let named = self.config.clone().or_else(|| env::var_os("ZKLOCK_CONFIG").map(Into::into));
        if let Some(named) = named {
            let text = std::fs::read_to_string(&named)
                .map_err(|error| Failure::new(format!("{}: {error}", named.display())))?;
            return read(&named, &text);
        }
        let directory =
            |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let configuration =
            directory("XDG_CONFIG_HOME").or_else(|| Some(directory("HOME")?.join(".config")));
        let users = configuration.map(|directory| directory.join("zklock.toml"));
        for file in users.into_iter().chain([PathBuf::from(SYSTEM_FILE)]) {
            match std::fs::read_to_string(&file) {
                Ok(text) => return read(&file, &text),
                Err(error)
                    if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
                // The next file may name other servers. Their locks exclude nobody here.
                Err(error) => {
                    let file = file.display();
                    return Err(Failure::new(format!(
                        "{file}: {error}: make it readable, or choose another by ZKLOCK_CONFIG=FILE"
                    )));
                }
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
        Ok(self.options(SESSION_TIMEOUT).connect(&self.hosts).wait()?)
    }
}

/// Whether all parts have the form of hosts: what is none may be an address, which may have a password anywhere.
fn are_hosts(text: &str) -> bool {
    let servers = text.split('/').next().unwrap_or_default();
    let is_address = text.contains("//") || text == "local:" || text.starts_with("sqlite:");
    let is_host = |host: &str| {
        let has_form = host.chars().all(|c| c.is_alphanumeric() || ".-_:[]%".contains(c));
        let is_ipv6 = host.ends_with(']') || host.matches(':').count() > 1;
        let port = host.rsplit_once(':').map(|(_, port)| port);
        has_form && (is_ipv6 || port.is_none_or(|port| port.parse::<u16>().is_ok()))
    };
    !is_address && servers.split(',').map(str::trim).all(is_host)
}

#[derive(Debug, Default, PartialEq)]
struct FileSettings {
    store: Option<String>,
    hosts: Option<String>,
    session_timeout: Option<Duration>,
    tick_time: Option<Duration>,
    secure: HashMap<String, String>,
}

fn read(file: &Path, text: &str) -> Result<FileSettings, Failure> {
    let refuse = |why: String| Failure::new(format!("{}: {why}", file.display()));
    // Not the line itself: it may contain a password.
    let at = |error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        refuse(format!("line {}: {}", before.matches('\n').count() + 1, error.message()))
    };
    let table: toml::Table = text.parse().map_err(at)?;
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
        let parse =
            |time: String| parse_duration(&time).map_err(|error| refuse(format!("{key}: {error}")));
        text(key)?.map(parse).transpose()
    };
    let mut secure = HashMap::new();
    for key in secure::KEYS {
        secure.extend(text(key)?.map(|value| (key.to_owned(), value)));
    }
    Ok(FileSettings {
        secure,
        store: text("store")?,
        hosts: text("hosts")?,
        session_timeout: time("session-timeout")?,
        tick_time: time("tick-time")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_told_from_addresses() {
        for hosts in [
            "a",
            "zookeeper:2181",
            "redis:1,b:2/chroot",
            "10.0.0.1:1, [::1]:2/c/d",
            "::1",
            "local:7",
        ] {
            assert!(are_hosts(hosts), "{hosts}");
        }
        for address in [
            "sqlite:1",
            "redis://a:1",
            "nowhere:a",
            "local:",
            "a@b",
            "host=a password=b",
            "a:1;b=c",
        ] {
            assert!(!are_hosts(address), "{address}");
        }
    }

    #[test]
    fn a_line_that_cannot_be_read_is_not_shown_for_it_may_have_a_password() {
        let text = "hosts = \"a\"\nstore = \"postgres://u:hunter2@db/locks\n";
        let why = read(Path::new("/etc/zklock.toml"), text).err().unwrap().to_string();
        assert!(why.contains("line 2") && !why.contains("hunter2"), "{why}");
    }

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
