//! The address of a store.

use std::path::PathBuf;

use crate::secret::place_of;

/// All that an address can begin with.
const SCHEMES: &str = "zookeeper://HOST:PORT,.../CHROOT, redis://HOST:PORT, rediss://HOST:PORT, postgres://HOST/DATABASE, \
    mysql://HOST/DATABASE, sqlite:FILE or local:";

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// Hosts, as a client takes them.
    ZooKeeper(String),
    #[cfg_attr(not(feature = "sqlite"), allow(dead_code))]
    Sqlite(PathBuf),
    Local,
    /// As the driver takes it.
    #[cfg_attr(not(feature = "redis"), allow(dead_code))]
    Redis(String),
    /// As the driver takes it.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code))]
    Postgres(String),
    /// As the driver takes it.
    #[cfg_attr(not(feature = "mysql"), allow(dead_code))]
    MySql(String),
}

impl Address {
    /// Reads an address, or describes the fault. An invalid address may have a password anywhere, so the error shows
    /// none of it.
    pub(super) fn parse(text: &str) -> Result<Address, String> {
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(format!("a store's address is {SCHEMES}"));
        };
        match scheme {
            "zookeeper" => match rest.strip_prefix("//") {
                Some(hosts) if !hosts.is_empty() && !hosts.starts_with('/') => {
                    Ok(Address::ZooKeeper(hosts.to_owned()))
                }
                _ => Err("which servers? zookeeper://HOST:PORT,HOST:PORT/CHROOT".to_owned()),
            },
            "sqlite" => sqlite(rest).map(Address::Sqlite),
            "local" if rest.is_empty() => Ok(Address::Local),
            "local" => {
                Err("a process has one store local: and nothing follows the colon".to_owned())
            }
            // The driver would take `#insecure`.
            "redis" | "rediss" if text.contains('#') => {
                Err("an address ends before #: write %23 for one in a password".to_owned())
            }
            "redis" | "rediss" if names_a_server(text) => Ok(Address::Redis(text.to_owned())),
            "redis" | "rediss" => Err(format!("which server? {scheme}://HOST:PORT")),
            "postgres" | "postgresql" if names_a_server(text) => {
                Ok(Address::Postgres(text.to_owned()))
            }
            "postgres" | "postgresql" => {
                Err("which database? postgres://USER:PASSWORD@HOST:PORT/DATABASE".to_owned())
            }
            "mysql" | "mariadb" if names_a_server(text) && names_a_database(rest) => {
                Ok(Address::MySql(format!("mysql:{rest}")))
            }
            "mysql" | "mariadb" => {
                Err("which database? mysql://USER:PASSWORD@HOST:PORT/DATABASE".to_owned())
            }
            "etcd" => Err(format!("there is no store for {scheme} yet: there are {SCHEMES}")),
            // Hosts, as a client takes them.
            _ if rest.starts_with(|c: char| c.is_ascii_digit()) && !may_have_options(text) => {
                Ok(Address::ZooKeeper(text.to_owned()))
            }
            _ => Err(format!("a store's address is {SCHEMES}")),
        }
    }
}

/// Whether it looks like an address with a user, a password or options, which ZooKeeper's hosts have not.
fn may_have_options(text: &str) -> bool {
    text.contains(['@', '=', ';', '?', '#', ' '])
}

impl Address {
    /// As errors show it: without a user, a password and options.
    pub(super) fn shown(&self) -> String {
        let server = |scheme: &str, address: &str| {
            format!("{scheme}://{}", place_of(address).unwrap_or("..."))
        };
        match self {
            Address::ZooKeeper(hosts) => format!("zookeeper://{hosts}"),
            Address::Sqlite(file) => format!("sqlite:{}", file.display()),
            Address::Local => "local:".to_owned(),
            Address::Redis(address) if self.names_tls() => server("rediss", address),
            Address::Redis(address) => server("redis", address),
            Address::Postgres(address) => server("postgres", address),
            Address::MySql(address) => server("mysql", address),
        }
    }

    /// Above which token its counter can be raised at the most, with room for many more: Redis counts in doubles.
    pub(super) fn largest_token(&self) -> i64 {
        match self {
            Address::ZooKeeper(_) => 0,
            Address::Redis(_) => 1 << 52,
            Address::Sqlite(_) | Address::Postgres(_) | Address::MySql(_) | Address::Local => {
                1 << 62
            }
        }
    }

    /// Whether the address itself asks for TLS.
    pub(super) fn names_tls(&self) -> bool {
        matches!(self, Address::Redis(address) if address.starts_with("rediss:"))
    }

    pub(super) fn has_tls_built_in(&self) -> bool {
        match self {
            Address::Redis(_) => cfg!(feature = "redis-tls"),
            Address::Postgres(_) => cfg!(feature = "postgres-tls"),
            Address::MySql(_) => cfg!(feature = "mysql-tls"),
            Address::ZooKeeper(_) | Address::Sqlite(_) | Address::Local => false,
        }
    }

    /// With what such a store is built in.
    pub(super) fn feature(&self) -> &'static str {
        match self {
            Address::Sqlite(_) => "sqlite",
            Address::Redis(_) => "redis",
            Address::Postgres(_) => "postgres",
            Address::MySql(_) => "mysql",
            Address::ZooKeeper(_) | Address::Local => "default",
        }
    }
}

/// Whether it names a server as a URL does. A user's password and the options may be anything.
fn names_a_server(address: &str) -> bool {
    let names =
        |rest: &str| !rest.is_empty() && (rest.contains('@') || place_of(address).is_some());
    address.split_once("//").is_some_and(|(scheme, rest)| scheme.ends_with(':') && names(rest))
}

/// Whether it is a host and a database.
fn names_a_database(rest: &str) -> bool {
    let path = rest.strip_prefix("//").and_then(|rest| rest.rsplit_once('/'));
    path.is_some_and(|(host, database)| {
        !host.is_empty() && !database.is_empty() && !database.starts_with('?')
    })
}

/// A file's name: `FILE`, `/FILE` or, as a URL has it, `///FILE`.
fn sqlite(rest: &str) -> Result<PathBuf, String> {
    let file = match rest.strip_prefix("//") {
        Some(path) if path.starts_with('/') => path,
        Some(_) => {
            return Err("a file has no host: sqlite:FILE, or sqlite:///DIRECTORY/FILE".to_owned());
        }
        None => rest,
    };
    match file {
        "" => Err("which file? sqlite:FILE".to_owned()),
        _ if file.starts_with(':') => {
            Err("a database in memory is no other process's: local: has locks within one"
                .to_owned())
        }
        _ if file.contains(['?', '#', '\0']) => {
            Err("a file's name has no ?, no # and no NUL: options are given beside the address"
                .to_owned())
        }
        _ => Ok(PathBuf::from(file)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Client, Code};

    #[test]
    fn an_address_says_which_store_and_where() {
        let zookeeper = |hosts: &str| Ok(Address::ZooKeeper(hosts.to_owned()));
        let sqlite = |file: &str| Ok(Address::Sqlite(PathBuf::from(file)));
        for (text, address) in [
            ("zookeeper://a:2181,[::1]:2181/chroot", zookeeper("a:2181,[::1]:2181/chroot")),
            ("a:2181,[::1]:2181/chroot", zookeeper("a:2181,[::1]:2181/chroot")),
            ("sqlite:locks.db", sqlite("locks.db")),
            ("sqlite:/var/lib/locks.db", sqlite("/var/lib/locks.db")),
            ("sqlite:///var/lib/locks.db", sqlite("/var/lib/locks.db")),
            ("local:", Ok(Address::Local)),
            ("postgres://a:1/b", Ok(Address::Postgres("postgres://a:1/b".to_owned()))),
            ("mariadb://a:1/b", Ok(Address::MySql("mysql://a:1/b".to_owned()))),
        ] {
            assert_eq!(Address::parse(text), address, "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_in_words_that_help() {
        for (text, helps) in [
            ("", "sqlite:FILE"),
            ("locks.db", "sqlite:FILE"),
            ("zookeeper:a:2181", "zookeeper://HOST"),
            ("zookeeper:///chroot", "which servers"),
            ("sqlite:", "which file"),
            ("sqlite://host/file", "no host"),
            ("sqlite::memory:", "local:"),
            ("sqlite:a.db?lease=1", "options"),
            ("local:a", "nothing follows"),
            ("redis:a", "redis://HOST"),
            ("postgres:a", "postgres://USER"),
            ("mysql://a", "/DATABASE"),
            ("mysql://a/?b", "/DATABASE"),
            ("rediss:a", "rediss://HOST"),
            ("rediss://a#insecure", "before #"),
            ("etcd://a", "no store for etcd"),
            ("ftp://a", "zookeeper://HOST"),
        ] {
            let why = Address::parse(text).unwrap_err();
            assert!(why.contains(helps), "{text}: {why}");
        }
    }

    #[test]
    fn nothing_of_what_is_no_address_is_shown() {
        for text in [
            "host=127.0.0.1 password=hunter2",
            "redis:hunter2@127.0.0.1",
            "redis://127.0.0.1;password=hunter2",
            "rediss:hunter2@127.0.0.1",
            "rediss://:hunter2@127.0.0.1#insecure",
            "root:hunter2@127.0.0.1/db",
            "mysql:root:hunter2@127.0.0.1/db",
            "mysql://root:hunter2@127.0.0.1",
            "mysql://127.0.0.1;Pwd=hunter2/db",
            "Server=127.0.0.1;Pwd=hunter2",
            "postgres://host=127.0.0.1 password=hunter2",
            "postgres://root:hunter2",
            "sqlite:locks.db?key=hunter2",
            "local:hunter2",
            "zookeeper:hunter2@127.0.0.1",
            "zookeeper://root:hunter2@127.0.0.1",
            "zookeeper://root:hunter2",
            "zookeeper://127.0.0.1:2181;hunter2",
            "127.0.0.1:6379,password=hunter2",
        ] {
            for error in [crate::connect(text).wait().err(), Client::connect(text).wait().err()] {
                let error = error.expect("it is no address");
                assert_eq!(error.code(), Code::BAD_ARGUMENTS, "{error}");
                let shown = format!("{error} {error:?}");
                assert!(!shown.contains("hunter2"), "{text}: {shown}");
            }
        }
    }

    #[test]
    fn tokens_go_on_above_a_number_or_connecting_is_refused() {
        let above = |token: i64, address: &str| {
            crate::stores::StoreOptions::new().tokens_above(token).connect(address).wait()
        };
        let refused = |token, address| above(token, address).expect_err("it has no such tokens");
        for error in [refused(1, "zookeeper://127.0.0.1:1"), refused(i64::MAX, "local:")] {
            assert_eq!(error.code(), Code::BAD_ARGUMENTS, "{error}");
            assert!(error.to_string().contains("the number of the move"), "{error}");
        }
        let token = |store: crate::stores::Store| {
            let guard = store.lock("/tokens/above").acquire().wait().unwrap();
            guard.fencing_token()
        };
        let first = token(above(1 << 40, "local:").unwrap());
        assert!(first > 1 << 40);
        assert!(token(above(7, "local:").unwrap()) > first, "no option lowers it");
    }
}
