//! `zklock watch`: who comes to hold a lock, line by line.

use std::io::stdout;
use std::process::exit;
use std::time::SystemTime;

use clap::Args;
use serde_json::json;

use super::locks;
use super::who::{in_short, json_of};
use crate::failure::Failure;
use crate::output::{READER_GONE, show, when_gone};
use crate::servers::Servers;
use crate::text::stamp;

const MORE: &str = "\
Limits:
  A hold that begins and ends between two looks is not seen.

Exit status:
  0    as many lines were printed as --lines says
  125  zklock failed: the servers cannot be reached, or an argument is wrong
  141  nobody reads the lines any more

Examples:
  zklock watch /locks/report
  zklock watch --lines 1 --json /locks/report     # the present holder";

#[derive(Args, Debug)]
#[command(after_help = MORE)]
pub struct WatchOptions {
    /// The lock's path
    #[arg(value_parser = crate::run::options::lock_path)]
    path: String,

    /// End after this many lines
    #[arg(long, value_name = "N")]
    lines: Option<u64>,

    /// Print one JSON object a line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    servers: Servers,
}

/// Goes on until it is ended, or has printed as many lines as were asked for.
///
/// # Errors
/// No server answers at the beginning, or the lock may not be read.
pub fn watch(options: &WatchOptions) -> Result<u8, Failure> {
    let store = options.servers.connect()?;
    // It may be long before there is a line to write.
    when_gone(stdout(), || exit(READER_GONE))?;
    let mut holders = locks::at(&store, &options.path)?.watch_holder();
    let mut lines = 0;
    while options.lines.is_none_or(|limit| lines < limit) {
        let Some(holder) = holders.wait().transpose()? else { break };
        let now = stamp(SystemTime::now());
        match (&holder, options.json) {
            (holder, true) => {
                let holder = holder.as_ref().map(json_of);
                let line = json!({ "time": now, "path": options.path, "holder": holder });
                show(format_args!("{line}\n"));
            }
            (Some(holder), false) => {
                let (who, token) = (in_short(holder), holder.token);
                show(format_args!("{now} {} held by {who} token {token}\n", options.path));
            }
            (None, false) => show(format_args!("{now} {} free\n", options.path)),
        }
        lines += 1;
    }
    Ok(0)
}
