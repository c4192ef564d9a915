//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

/// Runs many clients against an ensemble while servers, clients and links fail, and proves from the
/// servers' own transaction log that no two of them ever held a lock together.
///
/// Three real servers, a proxy before each for every client process, several locks of each strategy.
/// A seed draws the faults: servers killed, frozen, all down; clients killed, frozen past their
/// sessions, cut off. Holders write their token to a register, in one transaction with the check
/// that they hold, and journal what they believe. At the end the log tells who held when, and every
/// belief is held against it.
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

    /// Client processes
    #[arg(long, value_name = "N", default_value = "8", help_heading = "Clients")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    pub processes: u16,

    /// Sessions in all, shared out among the processes
    #[arg(long, value_name = "N", default_value = "64", help_heading = "Clients")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub sessions: u16,

    /// Locks of each of the three strategies
    #[arg(long, value_name = "N", default_value = "5", help_heading = "Clients")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    pub locks: u16,

    /// The session timeout, in seconds
    #[arg(long, value_name = "N", default_value = "4", value_parser = seconds)]
    #[arg(help_heading = "Clients")]
    pub session_timeout: Duration,

    /// Writes the timeline picture here
    #[arg(long, value_name = "FILE.svg", help_heading = "Output")]
    pub svg: Option<PathBuf>,

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
  soak --processes 16 --sessions 128 --locks 5 --session-timeout 6
  soak --seconds 30 --keep evidence; soak --check evidence --svg again.svg

Exit status:
  0 no violation    1 a violation: two holders, an orphan, a hung waiter ...
  2 bad arguments   3 the soak could not be made    130 interrupted, and no violation so far";

impl Args {
    pub fn time(&self) -> Duration {
        self.minutes.or(self.seconds).unwrap_or(Duration::from_secs(120))
    }
}

fn minutes(text: &str) -> Result<Duration, String> {
    positive(text, 60.0)
}

fn seconds(text: &str) -> Result<Duration, String> {
    positive(text, 1.0)
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
    fn times_are_numbers_and_not_nothing() {
        assert_eq!(minutes("0.5"), Ok(Duration::from_secs(30)));
        assert_eq!(seconds("30"), Ok(Duration::from_secs(30)));
        for bad in ["0", "-1", "x", "NaN", "inf", "1e300", ""] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
