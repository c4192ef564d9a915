//! `zklock clean`: what nobody will ever remove.

use std::collections::VecDeque;

use clap::Args;
use serde_json::json;
use zklock::zookeeper::{Children, Stat, Znode};
use zklock::{Client, Code, Pending};

use super::holders::confirmed;
use crate::failure::Failure;
use crate::look::kinds::recognise;
use crate::look::locks::join;
use crate::output::{say, show};
use crate::servers::Servers;

#[derive(Args, Debug)]
#[command(after_help = MORE)]
pub struct CleanOptions {
    /// The path to search, with everything below it
    #[arg(value_parser = crate::run::options::lock_path)]
    path: String,

    /// Also delete empty directories: znodes without data that have had children
    #[arg(long)]
    empty: bool,

    /// Only show what it would delete
    #[arg(long)]
    dry_run: bool,

    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,

    /// Print one JSON object a line for each znode
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    servers: Servers,
}

const MORE: &str = "\
Guarantees:
  Only znodes with a known library's names count as claims. A znode that is
  written to meanwhile, or gets children, stays.

Limits:
  Only ZooKeeper has such leftovers. A claim ends with its session. A persistent
  claim, which some program created by mistake, belongs to no session and blocks
  its queue for ever. Empty directories block nobody, and servers remove those
  that zklock created. Some libraries fail if theirs are deleted while they run,
  so `clean` deletes them only with --empty.

Exit status:
  0    all that was found was deleted, or only shown
  1    something could not be deleted
  125  zklock failed: the servers cannot be reached, or an argument is wrong

Examples:
  zklock clean --dry-run /locks
  zklock clean --yes --empty /locks";

/// How many requests are on their way at once.
const AT_ONCE: usize = 64;

/// A znode that can go.
struct Leftover {
    path: String,
    stat: Stat,
    why: &'static str,
}

/// # Errors
/// No server answers, nobody can be asked, or the answer was no.
pub fn clean(options: &CleanOptions) -> Result<u8, Failure> {
    let client = options.servers.zookeeper("clean")?.connect()?;
    let found = find(&client, options)?;
    for leftover in &found {
        let Leftover { path, stat, why } = leftover;
        if options.json {
            let line =
                json!({ "path": path, "why": why, "czxid": stat.czxid, "created_ms": stat.ctime });
            show(format_args!("{line}\n"));
        } else {
            show(format_args!("{}  {why}\n", path.escape_debug()));
        }
    }
    if found.is_empty() {
        if !options.json {
            show(format_args!("{}: nothing is left behind there\n", options.path));
        }
        return Ok(0);
    }
    if options.dry_run {
        return Ok(0);
    }
    let question = format_args!("delete these {} znodes?", found.len());
    let instead = "give --yes to delete them, or --dry-run to look only";
    if !options.yes && !confirmed(question, instead)? {
        return Err(Failure::new("nothing was deleted"));
    }
    let mut failed = 0;
    for Leftover { path, stat, .. } in &found {
        // The question may have taken long. Another znode may be at this path now.
        match client.exists(path).wait() {
            Ok(Some(now)) if (now.czxid, now.cversion) != (stat.czxid, stat.cversion) => {
                failed += 1;
                say(format_args!("left alone: {}: it has changed meanwhile", path.escape_debug()));
                continue;
            }
            _ => {}
        }
        match client.delete(path, Some(stat.version)).wait() {
            Ok(()) => {}
            Err(error) if error.is_no_node() => {}
            Err(error) => {
                failed += 1;
                say(format_args!("left alone: {error}"));
            }
        }
    }
    if !options.json {
        show(format_args!("{} deleted\n", found.len() - failed));
    }
    Ok(u8::from(failed > 0))
}

type Looking = (String, Pending<Znode>, Pending<Children>);

fn find(client: &Client, options: &CleanOptions) -> Result<Vec<Leftover>, Failure> {
    let mut found = Vec::new();
    let mut waiting = vec![options.path.clone()];
    let mut looking: VecDeque<Looking> = VecDeque::new();
    loop {
        while looking.len() < AT_ONCE {
            let Some(path) = waiting.pop() else { break };
            let (znode, children) = (client.get(&path), client.children(&path));
            looking.push_back((path, znode, children));
        }
        let Some((path, znode, children)) = looking.pop_front() else { break };
        let is_root = path == options.path;
        let (znode, children) = match (znode.wait(), children.wait()) {
            (Ok(znode), Ok(children)) => (znode, children),
            (Err(error), _) | (_, Err(error))
                if error.is_no_node() || !is_root && error.code() == Code::NO_AUTH =>
            {
                continue;
            }
            (Err(error), _) | (_, Err(error)) => return Err(error.into()),
        };
        let name = path.rsplit('/').next().unwrap_or_default();
        let stat = znode.stat;
        let is_empty = children.names.is_empty();
        if !is_root && is_empty && !stat.is_ephemeral() {
            if recognise(name).is_some() {
                found.push(Leftover {
                    path,
                    stat,
                    why: "a claim of no session: whoever comes after it waits for ever",
                });
                continue;
            }
            if options.empty && znode.data.is_empty() && stat.cversion > 0 {
                found.push(Leftover { path, stat, why: "an empty directory" });
                continue;
            }
        }
        let below = children.names.iter().map(|name| join(&path, name));
        waiting.extend(below.filter(|path| path != "/zookeeper"));
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}
