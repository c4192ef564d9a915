//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, ValueEnum};
use zklock::Strategy;

const DEFAULT_PATH: &str = "/zklock/lock_test";
const DEFAULT_SECONDS: Duration = Duration::from_secs(5);

/// Lets threads contend for one lock on a real ZooKeeper server, and checks what they see.
///
/// Each thread is a client with a session of its own. It acquires the lock, increments a counter
/// file that nothing but the lock protects, and releases the lock, over and over. Nobody may ever
/// hold the lock together with somebody else, fencing tokens must grow, no increment may be lost,
/// and no node may be left on the server. Every fault is printed on stderr.
#[derive(Debug, Parser)]
#[command(name = "lock_test", version, after_help = EXAMPLES, after_long_help = EXAMPLES)]
#[command(max_term_width = 100)]
pub struct Args {
    /// Servers to test on, such as 10.0.0.1:2181,10.0.0.2:2181/chroot [default: starts one]
    #[arg(long, value_name = "HOST:PORT,...", help_heading = "Server")]
    pub hosts: Option<String>,

    /// Tests on another store, such as sqlite:/tmp/locks.db, redis://HOST:PORT,
    /// postgres://HOST/DATABASE, mysql://HOST/DATABASE or local:. A zookeeper://HOST:PORT,... is as --hosts
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["hosts", "ensemble"], help_heading = "Server")]
    pub store: Option<String>,

    /// Starts an ensemble of three servers instead of one
    #[arg(long, conflicts_with = "hosts", help_heading = "Server")]
    pub ensemble: bool,

    /// The session timeout that each client asks for
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = positive_duration)]
    #[arg(help_heading = "Server")]
    pub session_timeout: Duration,

    /// How to contend
    #[arg(long, value_enum, default_value = "all", help_heading = "Contention")]
    pub strategy: Choice,

    /// How many threads contend
    #[arg(
        long,
        value_name = "N",
        default_value = "3",
        help_heading = "Contention",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub threads: u16,

    /// How many sessions they share, thread by thread in turn [default: one for each thread]
    #[arg(long, value_name = "N", help_heading = "Contention", allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub sessions: Option<u16>,

    /// Releases are not announced: each waiter of the queue asks the servers once more
    #[arg(long, help_heading = "Contention")]
    pub unannounced: bool,

    /// How long each strategy runs, such as 10 or 0.5 [default: 5]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = "Contention", allow_negative_numbers = true)]
    pub seconds: Option<Duration>,

    /// How often each thread acquires the lock, instead of a time
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "seconds",
        help_heading = "Contention",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub rounds: Option<u64>,

    /// How long a thread stays inside the lock, such as 0, 500us, 10ms or 1s
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = duration)]
    #[arg(help_heading = "Contention")]
    pub hold: Duration,

    /// The lock's path; where several strategies run, each under its own name below it
    /// [default: /zklock/lock_test/STRATEGY]
    #[arg(long, value_parser = lock_path, help_heading = "Contention")]
    pub path: Option<String>,

    /// A file with one decimal integer to increment inside the lock; made if it is missing, and
    /// kept [default: a temporary file]
    ///
    /// Programs that share a counter must contend for the same --path by the same --strategy.
    #[arg(long, value_name = "FILE", help_heading = "Contention")]
    pub counter: Option<PathBuf>,

    /// One JSON object for each strategy and line, and nothing else on stdout
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    /// Draws who waited and who held, for a stretch of each run, into this file: SVG
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub timeline: Option<PathBuf>,

    /// Appends each call, return and look to this file, for `history check FILE` (docs/history.md)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub history: Option<PathBuf>,

    /// Tells of each acquisition: thread, node, "got lock" (on stderr with --json)
    #[arg(short, long, help_heading = "Output")]
    pub verbose: bool,
}

const EXAMPLES: &str = "\
Examples:
  lock_test                                       3 threads, each strategy, on a server of its own
  lock_test --strategy queue --threads 16 --seconds 10 --json
  lock_test --strategy queue --threads 1          what a lock costs when nobody wants it
  lock_test --threads 8 --sessions 2 --hold 1ms   threads that share sessions
  lock_test --strategy queue --threads 8 --unannounced
                                                  what the announcement of releases saves
  lock_test --threads 6 --hold 1ms --timeline waits.svg
                                                  a picture of who waits and who holds
  lock_test --store sqlite:/tmp/locks.db --threads 16
                                                  the same in a database file
  lock_test --hosts 127.0.0.1:2181 --strategy queue --path /jobs/lock --counter /tmp/n
                                                  start it twice: both share lock and counter

Exit status:
  0 no fault found    1 a fault: holders together, a lost increment, nodes left, starvation ...
  2 bad arguments     3 the test could not be made     130 interrupted, and no fault so far";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// Create the node, and ask again after a pause
    Poll,
    /// Create the node, or watch it: each release wakes all
    Watch,
    /// Queue up, and watch only the one before: fair
    Queue,
    /// Each of them, one after the other
    All,
}

impl Args {
    /// Reads the program's arguments; ends the program with status 2 when they can't be followed.
    pub fn read() -> Args {
        let args = Args::parse();
        if args.sessions.is_some_and(|sessions| sessions > args.threads) {
            let message =
                format!("--sessions: there are only {} threads to use them", args.threads);
            Args::command().error(ErrorKind::ValueValidation, message).exit();
        }
        args
    }

    pub fn strategies(&self) -> Vec<Strategy> {
        match self.strategy {
            // It has one way to contend, whatever is asked for.
            _ if self.other_store().is_some() => vec![Strategy::Queue],
            Choice::Poll => vec![Strategy::Poll],
            Choice::Watch => vec![Strategy::Watch],
            Choice::Queue => vec![Strategy::Queue],
            Choice::All => vec![Strategy::Poll, Strategy::Watch, Strategy::Queue],
        }
    }

    /// The servers that are given, if any are.
    pub fn hosts(&self) -> Option<&str> {
        let store = self.store.as_deref().and_then(|store| store.strip_prefix("zookeeper://"));
        self.hosts.as_deref().or(store)
    }

    /// A store that is not ZooKeeper.
    pub fn other_store(&self) -> Option<&str> {
        self.store.as_deref().filter(|_| self.hosts().is_none())
    }

    pub fn path(&self, strategy: Strategy) -> String {
        match &self.path {
            Some(path) if self.strategy != Choice::All => path.clone(),
            Some(path) => format!("{path}/{strategy}"),
            None => format!("{DEFAULT_PATH}/{strategy}"),
        }
    }

    pub fn threads(&self) -> usize {
        usize::from(self.threads)
    }

    pub fn sessions(&self) -> usize {
        usize::from(self.sessions.unwrap_or(self.threads))
    }

    /// How long a strategy runs; `None` when it is counted in rounds.
    pub fn time(&self) -> Option<Duration> {
        match self.rounds {
            Some(_) => None,
            None => Some(self.seconds.unwrap_or(DEFAULT_SECONDS)),
        }
    }
}

/// Reads `0`, `500us`, `10ms`, `1.5s`, `2m`.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == 'µ');
    let number: f64 = digits.trim().parse().map_err(|_| hint())?;
    let unit = match &text[digits.len()..] {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "" if number == 0.0 => 1.0,
        _ => return Err(hint()),
    };
    in_seconds(number * unit).ok_or_else(hint)
}

fn hint() -> String {
    "a time is a number and its unit, such as 500us, 10ms, 1.5s or 2m".to_owned()
}

/// Nobody tests for longer than a year, and a deadline that far can still be named.
fn in_seconds(seconds: f64) -> Option<Duration> {
    const YEAR: f64 = 365.0 * 86_400.0;
    (seconds <= YEAR).then(|| Duration::try_from_secs_f64(seconds).ok()).flatten()
}

fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("it has to be more than 0".to_owned()),
        time => Ok(time),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.trim_end_matches('s').parse().ok().and_then(in_seconds);
    match seconds {
        Some(time) if time > Duration::ZERO => Ok(time),
        _ => Err("a number of seconds, such as 10 or 0.5, more than 0".to_owned()),
    }
}

/// The library checks the rest; here is what would otherwise be told of a path that the user never
/// wrote.
fn lock_path(text: &str) -> Result<String, String> {
    match text {
        _ if !text.starts_with('/') => Err("a path starts with /".to_owned()),
        _ if text.ends_with('/') => Err("a lock's path does not end with /".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn times_need_a_unit_unless_they_are_zero() {
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert_eq!(duration("500us"), Ok(Duration::from_micros(500)));
        assert_eq!(duration("10ms"), Ok(Duration::from_millis(10)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1_500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for bad in ["", "5", "ms", "-1s", "1h30", "NaNs", "infs", "1e99s", "10 parsecs", "µ"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn seconds_may_be_fractions_but_not_nothing() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for bad in ["0", "-1", "x", "NaN", "inf", "1e300", ""] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn each_strategy_has_a_path_of_its_own() {
        let all = Args::parse_from(["lock_test", "--path", "/a"]);
        assert_eq!(all.path(Strategy::Poll), "/a/poll");
        let one = Args::parse_from(["lock_test", "--path", "/a", "--strategy", "queue"]);
        assert_eq!(one.path(Strategy::Queue), "/a");
        let none = Args::parse_from(["lock_test", "--strategy", "queue"]);
        assert_eq!(none.path(Strategy::Queue), "/zklock/lock_test/queue");
    }
}
