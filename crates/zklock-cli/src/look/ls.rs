//! `zklock ls`: the locks below a path.

use clap::Args;
use serde_json::{Value, json};

use super::locks::{self, Found, Holding};
use super::table;
use super::who::{among, json_of};
use crate::failure::Failure;
use crate::output::show;
use crate::servers::Servers;
use crate::text::ago;

const MORE: &str = "\
Limits:
  Only ZooKeeper can list locks; other stores have `zklock who`. FOR counts
  from when the claim was made: a holder that had to wait has held for less.

Exit status:
  0    done, also if nobody holds a lock there
  125  zklock failed: the servers cannot be reached, or an argument is wrong

Examples:
  zklock ls /locks
  zklock ls --json /locks | jq -r 'select(.waiters > 0).path'";

#[derive(Args, Debug)]
#[command(after_help = MORE)]
pub struct LsOptions {
    /// The path to search, with everything below it
    #[arg(default_value = "/", value_parser = crate::run::options::lock_path)]
    path: String,

    /// Print one JSON object a line for each lock
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    servers: Servers,
}

/// # Errors
/// No server answers, or the path may not be read.
pub fn ls(options: &LsOptions) -> Result<u8, Failure> {
    let client = options.servers.zookeeper("ls")?.connect()?;
    let found = locks::below(&client, &options.path)?;
    let holdings = locks::holdings(&client, &found)?;
    if options.json {
        for (found, holding) in found.iter().zip(&holdings) {
            show(format_args!("{}\n", json_of_lock(found, holding)));
        }
        return Ok(0);
    }
    if found.is_empty() {
        let otherwise = "nobody holds a lock there, or waits for one";
        show(format_args!("{}\n", locks::nobody(Some(&client), &options.path, otherwise)?));
        return Ok(0);
    }
    let rows: Vec<Vec<String>> =
        found.iter().zip(&holdings).map(|(found, holding)| row(found, holding)).collect();
    table::print(&["PATH", "KIND", "HOLDER", "FOR", "WAIT", "LIBRARY"], &rows);
    Ok(0)
}

fn row(found: &Found, holding: &Holding) -> Vec<String> {
    let holder = holding.holder.as_ref();
    let since = holder.map(|holder| holder.held_since.map_or(holder.since, |held| held.earliest));
    vec![
        found.path.escape_debug().to_string(),
        found.kinds(),
        among(holding.holders, holder),
        since.map_or_else(|| "-".to_owned(), ago),
        holding.waiters.to_string(),
        found.libraries().join(", "),
    ]
}

fn json_of_lock(found: &Found, holding: &Holding) -> Value {
    json!({
        "path": found.path,
        "kind": found.kinds(),
        "libraries": found.libraries(),
        "holders": holding.holders,
        "waiters": holding.waiters,
        "holder": holding.holder.as_ref().map(json_of),
    })
}
