//! The command line.

use std::path::PathBuf;

use clap::Parser;

use crate::peer::Role;
use crate::question::Key;

/// Measures zklock beside its peers, on a ZooKeeper server that it starts itself.
///
/// In each round every contestant has its turn, in an order that rotates, as a process of its own; what is printed are
/// medians of the rounds, with the least and the most. Ratios are formed within each round, so that what slows the
/// machine for a while slows both sides of them. On a machine that does something else besides, believe only ratios.
///
/// The peers: the C client itself (create and delete, no lock), the recipe of ZooKeeper's documentation written on
/// it, the Rust crate zookeeper-client, kazoo (installed from PyPI below cargo's target directory), and Curator
/// where CURATOR_JARS names its jars, separated by colons. Who can't be had is named, and left out.
#[derive(Debug, Parser)]
#[command(name = "bench", version, after_help = EXAMPLES, after_long_help = EXAMPLES)]
#[command(max_term_width = 100, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    pub role: Option<Role>,

    /// On an ensemble of three servers instead of one
    #[arg(long)]
    pub ensemble: bool,

    /// How often each contestant has its turn [default: 5; 2 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: Option<u32>,

    /// How long a turn is measured; a quarter of that goes before [default: 2; 0.3 with --quick]
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub seconds: Option<f64>,

    /// A minute or so: two short rounds, fewer locks
    #[arg(long)]
    pub quick: bool,

    /// Only these questions
    #[arg(long, value_enum, value_name = "QUESTION", value_delimiter = ',')]
    pub only: Vec<Key>,

    /// Leaves contestants out, by their names in the tables
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub without: Vec<String>,

    /// One more contestant, for the questions uncontended and handoff
    ///
    /// The command is split at blanks, and called with four more arguments: HOSTS PATH N SECONDS. PATH is a znode
    /// without children. N clients, each with a session of its own, contend for the lock there from the beginning.
    /// After a quarter of the time the program prints "begin", SECONDS later "end", each on a line of its own and
    /// flushed, and then one line of JSON: {"count": acquisitions in between, "seconds": the time, "p50_us", "p99_us"}.
    /// The latter two are of an acquire where N is 1, else from a release to the next one's acquisition.
    #[arg(long, value_name = "NAME=COMMAND", value_parser = peer)]
    pub peer: Vec<(String, Vec<String>)>,

    /// Locks that are held at once, in the question memory [default: 10000; 1000 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(20..))]
    pub locks: Option<u32>,

    /// One JSON object instead of tables
    #[arg(long)]
    pub json: bool,

    /// Writes tables and pictures into docs/performance.md and docs/performance/ of the checkout
    #[arg(long)]
    pub write: bool,

    /// Writes the pictures into this directory
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  bench --quick                          a first look
  bench --only handoff --rounds 9        waiters, more exactly
  bench --write && bench --ensemble --write
                                         the figures of docs/performance.md
  bench --quick --without kazoo          installs nothing
  bench --peer 'mine=./my-lock --fast'   beside a program of your own

Exit status: 0 measured    2 bad arguments    3 it could not be measured";

impl Args {
    pub fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.quick { 2 } else { 5 })
    }

    pub fn seconds(&self) -> f64 {
        self.seconds.unwrap_or(if self.quick { 0.3 } else { 2.0 })
    }

    pub fn locks(&self) -> u32 {
        self.locks.unwrap_or(if self.quick { 1_000 } else { 10_000 })
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.05..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number of seconds, from 0.05 to 3600".to_owned()),
    }
}

fn peer(text: &str) -> Result<(String, Vec<String>), String> {
    let words = |command: &str| command.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    match text.split_once('=').map(|(name, command)| (name.trim(), words(command))) {
        Some((name, words)) if !name.is_empty() && !words.is_empty() => {
            Ok((name.to_owned(), words))
        }
        _ => Err("a name, = and a command, such as mine=./my-lock".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_peer_has_a_name_and_a_command() {
        let words = vec!["./my-lock".to_owned(), "--fast".to_owned()];
        assert_eq!(peer("mine=./my-lock --fast"), Ok(("mine".to_owned(), words)));
        for bad in ["mine", "=x", "mine= ", ""] {
            assert!(peer(bad).is_err(), "{bad}");
        }
    }
}
