//! Where the lock is kept: on servers, or in another store.

use std::time::Duration;

use super::options::RunOptions;
use crate::failure::Failure;
use crate::servers::{Servers, Settings};

pub enum Place {
    Servers(Box<Settings>),
    /// By its address.
    Elsewhere(String),
}

impl Place {
    /// # Errors
    /// Where nothing names one, or it lacks what is asked for.
    pub fn of(options: &RunOptions) -> Result<Place, Failure> {
        let refuse = |why: &str| Err(Failure::new(format!("--store: {why}")));
        let servers = match options.store.as_deref() {
            None => options.servers.clone(),
            Some(store) => match store.strip_prefix("zookeeper://") {
                Some(_) if options.tokens_above.is_some() => {
                    return refuse("--tokens-above: ZooKeeper's tokens cannot be raised");
                }
                Some(hosts) => Servers { hosts: Some(hosts.to_owned()), ..options.servers.clone() },
                None if store.starts_with("local:") => {
                    return refuse(
                        "local: has locks within one process, sqlite:FILE for all of this machine",
                    );
                }
                None if options.once_per.is_some() => {
                    return refuse(
                        "--once-per leaves its mark in ZooKeeper; elsewhere, have the command look \
                         when it ran last",
                    );
                }
                None if options.universal || options.acl.is_some() => {
                    return refuse(
                        "--universal and --acl are about znodes; a file's permissions say who may use it",
                    );
                }
                None => return Ok(Place::Elsewhere(store.to_owned())),
            },
        };
        Ok(Place::Servers(Box::new(servers.settings()?)))
    }

    /// What a file of settings says.
    pub fn session_timeout(&self) -> Option<Duration> {
        match self {
            Place::Servers(settings) => settings.session_timeout,
            Place::Elsewhere(_) => None,
        }
    }
}
