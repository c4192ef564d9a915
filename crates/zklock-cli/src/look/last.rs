//! `zklock last`: who ran last under a lock with `zklock run --once-per`.

use clap::Args;
use serde_json::json;

use crate::failure::Failure;
use crate::mark;
use crate::output::show;
use crate::servers::Servers;
use crate::text::{ago, stamp};

const MORE: &str = "\
Limits:
  Only ZooKeeper keeps the mark of the last run.

Exit status:
  0    there was a run
  1    there was none
  125  zklock failed: the servers cannot be reached, or an argument is wrong

Examples:
  zklock run --once-per 20h /jobs/nightly -- ./nightly.sh
  zklock last /jobs/nightly";

#[derive(Args, Debug)]
#[command(after_help = MORE)]
pub struct LastOptions {
    /// The lock's path
    #[arg(value_parser = crate::run::options::lock_path)]
    path: String,

    /// Print one JSON object on one line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    servers: Servers,
}

/// There was no such run.
const NEVER: u8 = 1;

/// # Errors
/// No server answers, or what is there is no mark.
pub fn last(options: &LastOptions) -> Result<u8, Failure> {
    let client = options.servers.zookeeper("last")?.connect()?;
    let Some((mark, _)) = mark::read(&client, &options.path)? else {
        if options.json {
            show(format_args!("{}\n", json!({ "path": options.path, "last": null })));
        } else {
            show(format_args!("{}: never run with --once-per\n", options.path));
        }
        return Ok(NEVER);
    };
    let holder = client.lock(&options.path).holder().wait()?;
    let is_running = mark.outcome.is_none() && holder.is_some_and(|h| h.token == mark.token);
    if options.json {
        let last = json!({
            "host": mark.host, "pid": mark.pid, "label": mark.label, "token": mark.token,
            "started": stamp(mark.started()), "ended": mark.ended().map(stamp),
            "outcome": mark.outcome, "running": is_running,
        });
        show(format_args!("{}\n", json!({ "path": options.path, "last": last })));
        return Ok(0);
    }
    let end = match (&mark.outcome, mark.ended()) {
        _ if !mark.was_started() => "nothing was started, so it does not count".to_owned(),
        (Some(outcome), Some(ended)) if outcome == "lost" => {
            format!("ended {}, because the lock was lost", stamp(ended))
        }
        (Some(status), Some(ended)) => format!("ended {} with status {status}", stamp(ended)),
        _ if is_running => "still running".to_owned(),
        _ => "how it ended is not known: its lock was lost, or its machine".to_owned(),
    };
    show(format_args!(
        "{}: {} pid {} ({}) started {} ({} ago) with token {}; {end}\n",
        options.path,
        mark.host,
        mark.pid,
        mark.label,
        stamp(mark.started()),
        ago(mark.started()),
        mark.token
    ));
    Ok(0)
}
