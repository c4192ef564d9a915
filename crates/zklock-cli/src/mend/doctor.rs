//! `zklock doctor`: whether locks can be relied on here.

use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use serde_json::Value;
use zklock::Store;
use zklock::zookeeper::{Acl, Permissions};
use zklock::{C_CLIENT_VERSION, Client};

use super::finding::{CHECKS, Finding, Level};
use super::hosts;
use super::judgement;
use super::server;
use crate::failure::Failure;
use crate::look::table;
use crate::output::show;
use crate::servers::{Place, Servers, Settings};

#[derive(Args, Debug)]
#[command(after_help = MORE)]
pub struct DoctorOptions {
    /// Also check the permissions of this path
    #[arg(long, value_name = "PATH", value_parser = crate::run::options::lock_path)]
    path: Option<String>,

    /// Acquire and release a lock at this path, and show the time it takes and the servers' clock
    #[arg(long, value_name = "PATH", value_parser = crate::run::options::lock_path)]
    probe: Option<String>,

    /// Ignore the findings of this check, also in the exit status. May be given several times
    #[arg(long, value_name = "CHECK", value_parser = CHECKS, hide_possible_values = true)]
    ignore: Vec<String>,

    /// Print one JSON object a line for each finding
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    servers: Servers,
}

const MORE: &str = "\
Checks, as --ignore takes them:
  server    each server by itself      sessions  the servers' timeouts
  ensemble  all servers together       session   one that is opened
  version   known defects              watches   clients that leave many behind
  acl       of --path                  probe, clock  of --probe
  client    this program's C client

Limits:
  Servers are asked by srvr, conf and mntr. Where 4lw.commands.whitelist does
  not allow a word, what it would say is not known. Of stores other than
  ZooKeeper, only the connection and --probe are looked at.

Exit status:
  0    all is fine
  1    warnings: locks work, and something is not as it should be, such as one
       server of three that is down
  2    bad: locks cannot be had, or cannot be relied on
  125  zklock could not look: wrong arguments, or nothing names the servers

Examples:
  zklock doctor --probe /locks/doctor
  zklock doctor --ignore ensemble           # one standalone server is meant";

const NO_LOCKS: &str = "no lock can be had until that is mended";
/// Clocks that differ by more make what people read wrong.
const CLOCKS: Duration = Duration::from_secs(2);
/// What an acquire and a release may take in all.
const PROBE: Duration = Duration::from_secs(10);
/// What is asked for where nothing else is configured, as `run` does.
const SESSION: Duration = Duration::from_secs(30);

/// # Errors
/// No server is named.
pub fn doctor(options: &DoctorOptions) -> Result<u8, Failure> {
    let mut found = match options.servers.place()? {
        Place::Servers(settings) => {
            let (is_served, session) = of_session(&settings, options);
            let mut found = of_servers(&settings, is_served);
            found.extend(session);
            found.push(Finding::fine("client", format!("the C client {C_CLIENT_VERSION}")));
            found
        }
        elsewhere => of_store(elsewhere, options)?,
    };
    found.retain(|finding| !options.ignore.iter().any(|check| check == finding.check));
    for finding in &found {
        if options.json {
            let line: Value = finding.json();
            show(format_args!("{line}\n"));
        } else {
            show(format_args!("{}", finding.text(table::width())));
        }
    }
    let worst = found.iter().map(|finding| finding.level).max();
    Ok(match worst {
        None | Some(Level::Fine) => 0,
        Some(Level::Warning) => 1,
        Some(Level::Bad) => 2,
    })
}

fn of_store(place: Place, options: &DoctorOptions) -> Result<Vec<Finding>, Failure> {
    if options.path.is_some() {
        return Err(Failure::new("--path looks at the permissions of a znode, in ZooKeeper alone"));
    }
    let begun = Instant::now();
    let store = match options.servers.connect_for(place, None) {
        Ok(store) => store,
        Err(failure) => return Ok(vec![Finding::bad("server", failure.to_string(), NO_LOCKS)]),
    };
    let (name, took) = (store.capabilities().store, begun.elapsed());
    let mut found = vec![Finding::fine("server", format!("{name}: opened within {took:.1?}"))];
    if let Some(path) = &options.probe {
        found.extend(probe(&store, path));
    }
    Ok(found)
}

/// Whether the servers have granted a session says what one that is down means.
fn of_servers(settings: &Settings, is_served: bool) -> Vec<Finding> {
    if settings.secure.has_tls() {
        let why = "not asked one by one: that is done without TLS, and their ports expect it";
        return vec![Finding::fine("server", why.to_owned())];
    }
    let (mut found, mut servers, mut silent) = (Vec::new(), Vec::new(), 0);
    for host in hosts::of(&settings.hosts) {
        let name = host.name;
        let answer = match host.addresses {
            Ok(addresses) => {
                // Clients try each address of a name, so one that answers is enough.
                let ask = |address: &SocketAddr| server::ask(&name, *address);
                let others = || addresses[1..].iter().find_map(|address| ask(address).ok());
                ask(&addresses[0]).or_else(|why| others().ok_or(why))
            }
            Err(why) => Err((format!("cannot resolve {name}: {why}"), "check the name in DNS")),
        };
        match answer {
            Ok(says) => {
                if let (Some(version), Some(mode)) = (&says.version, &says.mode) {
                    found.push(Finding::fine("server", format!("{name} is up: {mode}, {version}")));
                }
                found.extend(judgement::of_server(&says, settings.tick_time));
                servers.push(says);
            }
            Err((why, remedy)) => {
                silent += 1;
                found.push(match is_served {
                    true => Finding::warning("server", why, remedy),
                    false => Finding::bad("server", why, remedy),
                });
            }
        }
    }
    found.extend(judgement::of_ensemble(&servers, silent));
    found
}

/// And whether there is one.
fn of_session(settings: &Settings, options: &DoctorOptions) -> (bool, Vec<Finding>) {
    let asked = settings.session_timeout.unwrap_or(SESSION);
    let begun = Instant::now();
    let client = match settings.options(asked).connect(&settings.hosts).wait() {
        Ok(client) => client,
        Err(error) => {
            let why = Failure::from(error).to_string();
            return (false, vec![Finding::bad("session", why, NO_LOCKS)]);
        }
    };
    let took = begun.elapsed();
    let granted = client.session_timeout().unwrap_or_default();
    let mut found = vec![if granted == asked {
        Finding::fine("session", format!("granted {granted:?}, as asked for, within {took:.1?}"))
    } else {
        Finding::warning(
            "session",
            format!(
                "asked for {asked:?}, got {granted:?} ({}): after a crash, locks stay taken for {granted:?}",
                if granted < asked { "maxSessionTimeout" } else { "minSessionTimeout" }
            ),
            "a session-timeout between the servers' minSessionTimeout and maxSessionTimeout (2 and 20 ticks by default)",
        )
    }];
    if let Some(path) = &options.path {
        found.push(of_permissions(&client, path));
    }
    if let Some(path) = &options.probe {
        found.extend(probe(&client.into(), path));
    }
    (true, found)
}

fn of_permissions(client: &Client, path: &str) -> Finding {
    let list = match client.get_acl(path).wait() {
        Ok(list) => list.entries,
        Err(error) if error.is_no_node() => {
            return Finding::fine(
                "acl",
                format!("{path} is not there yet: the first acquire makes it"),
            );
        }
        Err(error) => {
            let remedy =
                "what may not be read can't be locked: READ, CREATE and DELETE are needed there";
            return Finding::bad("acl", error.to_string(), remedy);
        }
    };
    let may_delete =
        |entry: &&Acl| entry.scheme == "world" && entry.permissions.contains(Permissions::DELETE);
    match list.iter().find(may_delete) {
        Some(_) => Finding::warning(
            "acl",
            format!(
                "{path}: whoever reaches the servers may delete its claims, and so take a lock away"
            ),
            "an ACL that names your programs (Lock::acl, zkCli setAcl)",
        ),
        None => Finding::fine("acl", format!("{path}: not everyone may delete its claims")),
    }
}

fn probe(store: &Store, path: &str) -> Vec<Finding> {
    let lock = store.lock(path).label("zklock doctor");
    let begun = Instant::now();
    let guard = match lock.acquire().within(PROBE).wait() {
        Ok(guard) => guard,
        Err(error) => {
            return vec![Finding::bad(
                "probe",
                error.to_string(),
                "a path that nobody uses, where zklock may create",
            )];
        }
    };
    let took = begun.elapsed();
    let now = SystemTime::now();
    let claim = lock.holder().wait().ok().flatten();
    let released = guard.release().wait();
    let mut found = vec![match released {
        Ok(()) => {
            Finding::fine("probe", format!("{path}: acquired within {took:.1?}, and released"))
        }
        Err(error) => {
            Finding::bad("probe", error.to_string(), "DELETE on the lock's path is needed")
        }
    }];
    if let Some(claim) = claim {
        let made = now.checked_sub(took).unwrap_or(now);
        let ahead = claim.since.duration_since(now).unwrap_or_default();
        let behind = made.duration_since(claim.since).unwrap_or_default();
        let differs = ahead.max(behind);
        found.push(if differs > CLOCKS {
            Finding::warning(
                "clock",
                format!("this machine's clock and the servers' differ by {differs:.1?}: times that are shown are wrong by that"),
                "NTP on both; locks themselves use no wall clock",
            )
        } else {
            Finding::fine("clock", "this machine's clock and the servers' agree")
        });
    }
    found
}
