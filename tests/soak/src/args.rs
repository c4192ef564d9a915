//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::fault::FaultKind;
use crate::shape::{HIGHEST_FIRST_ID, Wishes};

/// Runs many clients against an ensemble while servers, clients and links fail, and proves from the
/// servers' own transaction log that no two of them ever held a lock together.
///
/// Three real servers, a proxy before each for every client process, several locks of each strategy and kind.
/// A seed draws what the ensemble is like, and the faults: servers killed, frozen, stalled around an
/// election, all down; clients killed, frozen past their sessions, cut off; locks deleted, and
/// holds broken, by an operator. Holders write their token to a register, in one transaction with the check that they
/// hold, and journal what they believe. At the end the log tells who held when, and every belief is
/// held against it.
#[derive(Debug, Parser)]
#[command(name = "soak", version, after_help = EXAMPLES, after_long_help = EXAMPLES)]
#[command(max_term_width = 100)]
pub struct Args {
    /// How long faults are made: in minutes; may be a fraction [default: 2, without --seconds]
    #[arg(long, value_name = "N", value_parser = minutes, help_heading = "Run")]
    pub minutes: Option<Duration>,

    /// How long faults are made: in seconds
    #[arg(long, value_name = "N", value_parser = seconds, conflicts_with = "minutes")]
    #[arg(help_heading = "Run")]
    pub seconds: Option<Duration>,

    /// What draws the faults; the same number draws the same ones [default: by chance]
    #[arg(long, value_name = "N", help_heading = "Run")]
    pub seed: Option<u64>,

    /// Makes only these faults, such as leader_stalled,lock_deleted: the names in --json
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kind)]
    #[arg(help_heading = "Run")]
    pub only: Vec<FaultKind>,

    /// Client processes
    #[arg(long, value_name = "N", default_value = "8", help_heading = "Clients")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    pub processes: u16,

    /// Sessions in all, shared out among the processes
    #[arg(long, value_name = "N", default_value = "64", help_heading = "Clients")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub sessions: u16,

    /// Locks of each sort: a queue, a watch and a poll, a read/write lock, a semaphore, an election
    #[arg(long, value_name = "N", default_value = "3", help_heading = "Clients")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    pub locks: u16,

    /// The session timeout, in seconds
    #[arg(long, value_name = "N", default_value = "4", value_parser = seconds)]
    #[arg(help_heading = "Clients")]
    pub session_timeout: Duration,

    /// The id of the first server; from 253 on the third has the id 255 [default: 1 or 253, drawn]
    #[arg(long, value_name = "N", help_heading = "Servers")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=i64::from(HIGHEST_FIRST_ID)))]
    pub first_id: Option<u8>,

    /// The servers' tick, in seconds [default: 0.1 or half the session timeout, drawn]
    #[arg(long, value_name = "N", value_parser = seconds, help_heading = "Servers")]
    pub tick: Option<Duration>,

    /// After how many seconds of silence servers give each other up, in whole ticks [default: 5, or an
    /// eighth of the session timeout, drawn]
    #[arg(long, value_name = "N", value_parser = seconds, help_heading = "Servers")]
    pub sync_limit: Option<Duration>,

    /// Writes the timeline picture here
    #[arg(long, value_name = "FILE.svg", help_heading = "Output")]
    pub svg: Option<PathBuf>,

    /// Writes what the clients did and believed here, for `history check FILE` (docs/history.md)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub history: Option<PathBuf>,

    /// One JSON object, and nothing else on stdout
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    /// Keeps the evidence in this directory: journals, faults, the servers' logs
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub keep: Option<PathBuf>,

    /// Judges again what --keep has kept, instead of running
    #[arg(long, value_name = "DIR", conflicts_with_all = ["keep", "minutes", "seconds", "seed"])]
    #[arg(help_heading = "Output")]
    pub check: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  soak --minutes 10 --seed 7 --svg soak.svg
  soak --seconds 30 --json
  soak --seed 7 --first-id 253 --only leader_stalled,leader_stutters
  soak --processes 16 --sessions 128 --locks 5 --session-timeout 6
  soak --seconds 30 --keep evidence; soak --check evidence --svg again.svg

Exit status:
  0 no violation    1 a violation: two holders, an orphan, a hung waiter ...
  2 bad arguments   3 the soak could not be made    130 interrupted, and no violation so far";

impl Args {
    pub fn time(&self) -> Duration {
        self.minutes.or(self.seconds).unwrap_or(Duration::from_secs(120))
    }

    pub fn wishes(&self) -> Wishes {
        let Args { first_id, tick, sync_limit, .. } = *self;
        Wishes { first_id, tick, sync_limit }
    }

    /// The faults to make.
    pub fn kinds(&self) -> &[FaultKind] {
        if self.only.is_empty() { &FaultKind::ALL } else { &self.only }
    }
}

fn minutes(text: &str) -> Result<Duration, String> {
    positive(text, 60.0)
}

fn seconds(text: &str) -> Result<Duration, String> {
    positive(text, 1.0)
}

fn kind(key: &str) -> Result<FaultKind, String> {
    FaultKind::of_key(key).ok_or_else(|| {
        let keys: Vec<&str> = FaultKind::ALL.into_iter().map(FaultKind::key).collect();
        format!("one of {}", keys.join(", "))
    })
}

fn positive(text: &str, unit: f64) -> Result<Duration, String> {
    const WEEK: f64 = 7.0 * 86_400.0;
    let time = text.parse::<f64>().ok().map(|number| number * unit);
    match time.filter(|time| *time > 0.0 && *time <= WEEK) {
        Some(time) => Ok(Duration::from_secs_f64(time)),
        None => Err("a number, more than 0 and no more than a week".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn faults_are_named_as_in_the_report() {
        let args = Args::parse_from(["soak", "--only", "link_cut,lock_deleted"]);
        assert_eq!(args.kinds(), [FaultKind::LinkCut, FaultKind::LockDeleted]);
        assert_eq!(Args::parse_from(["soak"]).kinds(), FaultKind::ALL);
        assert!(kind("rain").is_err());
    }

    #[test]
    fn times_are_numbers_and_not_nothing() {
        assert_eq!(minutes("0.5"), Ok(Duration::from_secs(30)));
        assert_eq!(seconds("30"), Ok(Duration::from_secs(30)));
        for bad in ["0", "-1", "x", "NaN", "inf", "1e300", ""] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
