//! `zklock who`: all that contend for one lock.

use std::time::UNIX_EPOCH;

use clap::Args;
use serde_json::{Value, json};
use zklock::Contender;

use super::kinds::{Kind, Library};
use super::locks;
use super::table;
use crate::failure::Failure;
use crate::output::show;
use crate::servers::Servers;
use crate::text::{ago, one_line};

const MORE: &str = "\
Limits:
  FOR counts from when the claim was made: a holder that had to wait has held
  for less.

Exit status:
  0    somebody holds the lock or waits for it
  1    the lock is free
  125  zklock failed: the servers cannot be reached, or an argument is wrong

Examples:
  zklock who /locks/report
  zklock who --json /locks/report | jq '.contenders | length'";

#[derive(Args, Debug)]
#[command(after_help = MORE)]
pub struct WhoOptions {
    /// The lock's path
    #[arg(value_parser = crate::run::options::lock_path)]
    path: String,

    /// Print one JSON object on one line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    servers: Servers,
}

/// Nobody holds it or waits for it.
const FREE: u8 = 1;

/// Of the table of a lock's contenders.
pub const HEADING: [&str; 9] =
    ["", "HOST", "PID", "LABEL", "FOR", "KIND", "LIBRARY", "SESSION", "TOKEN"];

/// # Errors
/// No server answers.
pub fn who(options: &WhoOptions) -> Result<u8, Failure> {
    let store = options.servers.connect()?;
    let contenders = locks::at(&store, &options.path)?.contenders().wait()?;
    let is_free = contenders.is_empty();
    if options.json {
        let contenders: Vec<Value> = contenders.iter().map(json_of).collect();
        show(format_args!("{}\n", json!({ "path": options.path, "contenders": contenders })));
    } else if is_free {
        let otherwise = "nobody holds it or waits for it";
        show(format_args!("{}\n", locks::nobody(store.client(), &options.path, otherwise)?));
    } else {
        let rows: Vec<Vec<String>> = contenders.iter().map(row).collect();
        table::print(&HEADING, &rows);
    }
    Ok(if is_free { FREE } else { 0 })
}

/// A contender in the table.
pub fn row(contender: &Contender) -> Vec<String> {
    let dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let pid = if contender.pid == 0 { "-".to_owned() } else { contender.pid.to_string() };
    let since = contender.held_since.map_or(contender.since, |held| held.earliest);
    vec![
        if contender.held_since.is_some() { "holds" } else { "waits" }.to_owned(),
        dash(&contender.host),
        pid,
        dash(&contender.label),
        ago(since),
        dash(kind_of(contender).unwrap_or_default()),
        library_of(contender).to_owned(),
        if contender.session == 0 { "-".to_owned() } else { format!("{:#x}", contender.session) },
        contender.token.to_string(),
    ]
}

/// `report (web1, pid 7)`: what a contender calls itself, and where it is.
pub fn in_short(contender: &Contender) -> String {
    let Contender { host, pid, label, session, .. } = contender;
    let place = match host.as_str() {
        "" => format!("session {session:#x}"),
        host => format!("{host}, pid {pid}"),
    };
    match label.as_str() {
        "" => place,
        label => format!("{} ({place})", one_line(label)),
    }
}

/// One of several holders.
pub fn among(holders: usize, one: Option<&Contender>) -> String {
    let one = one.map_or_else(|| "-".to_owned(), in_short);
    if holders > 1 { format!("{holders} holders: {one}") } else { one }
}

/// Only ZooKeeper's claims say it.
fn kind_of(contender: &Contender) -> Option<&'static str> {
    let is_znode = contender.session != 0;
    let kind = locks::claim_of(contender).map_or(Kind::Exclusive, |claim| claim.kind);
    is_znode.then_some(kind.name())
}

pub fn library_of(contender: &Contender) -> &'static str {
    match locks::claim_of(contender) {
        Some(claim) => claim.library.name(),
        // A lock of one znode, with an owner as only ours write it.
        None if contender.pid != 0 => Library::Zklock.name(),
        None => "unknown",
    }
}

/// The fields that programs rely on.
pub fn json_of(contender: &Contender) -> Value {
    let millis = |time: std::time::SystemTime| {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(0)
    };
    let held = contender.held_since.map(
        |held| json!({ "earliest_ms": millis(held.earliest), "latest_ms": millis(held.latest) }),
    );
    json!({
        "holds": contender.held_since.is_some(),
        "znode": contender.path,
        "host": contender.host,
        "pid": contender.pid,
        "thread": contender.thread,
        "label": contender.label,
        "session": format!("{:#x}", contender.session),
        "token": contender.token,
        "since_ms": millis(contender.since),
        "held_since": held,
        "kind": kind_of(contender),
        "library": library_of(contender),
    })
}
