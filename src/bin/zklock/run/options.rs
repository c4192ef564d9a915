//! The arguments of `zklock run`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::acl::AclArgument;
use crate::servers::Servers;

#[derive(Args, Debug)]
#[command(after_long_help = MORE, after_help = "--help says more: guarantees, limits, signals, exit statuses, examples")]
pub struct RunOptions {
    /// The lock's path. Whoever names the same path waits for the same lock
    #[arg(value_parser = lock_path)]
    pub path: String,

    /// The command and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required_unless_present = "shell")]
    pub command: Vec<OsString>,

    /// Runs a line of the shell (/bin/sh) instead
    #[arg(short = 'c', long = "command", value_name = "LINE", conflicts_with = "command")]
    #[arg(help_heading = "Command")]
    pub shell: Option<String>,

    /// Holds the lock together with others that are --shared: they wait only for those that are not
    #[arg(short, long, help_heading = "Lock")]
    pub shared: bool,

    /// Takes N of the M permits at PATH, such as 1/4: up to four at a time. Where the path has a number of permits
    /// already, that counts instead of M
    #[arg(long, value_name = "N/M", value_parser = permits, help_heading = "Lock")]
    #[arg(conflicts_with = "shared")]
    pub permits: Option<Permits>,

    /// Has locks of all other libraries on the path wait, also of kazoo as it comes, which needs a second znode. With or
    /// without it, all who name the path wait for each other
    #[arg(long, help_heading = "Lock")]
    #[arg(conflicts_with_all = ["shared", "permits"])]
    pub universal: bool,

    /// Gives up when the lock was not to be had for so long, such as 500ms, 10s or 2h; 5 is 5 seconds, 0 as --no-wait
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration, help_heading = "Lock")]
    pub wait: Option<Duration>,

    /// Gives up at once where somebody has the lock or waits for it
    #[arg(short, long, conflicts_with = "wait", help_heading = "Lock")]
    pub no_wait: bool,

    /// The exit status where it gave up
    #[arg(short = 'E', long, value_name = "STATUS", default_value = "1", help_heading = "Lock")]
    pub conflict_exit_code: u8,

    /// Who may do what with the znodes that are made for the lock: open, creator (who has authenticated as this has),
    /// read-only, or SCHEME:ID:PERMISSIONS such as sasl:bob:cdrwa; several with commas between [default: open]
    #[arg(long, value_name = "ACL", value_parser = super::acl::parse, help_heading = "Lock")]
    pub acl: Option<AclArgument>,

    /// What others see of who has the lock [default: the command's name]
    #[arg(long, value_name = "TEXT", help_heading = "Lock")]
    pub label: Option<String>,

    /// How long the lock outlives a crash of this machine. A connection that is gone for a quarter of that costs
    /// the lock, so a shorter one makes others wait less, and losses more likely [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Lock")]
    pub session_timeout: Option<Duration>,

    /// From SIGTERM to SIGKILL when the lock is about to be lost, or when the command has ended and left others behind
    /// [default: a tenth of the session timeout]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Command")]
    pub grace: Option<Duration>,

    /// When SIGTERM was handed on to the command: sends SIGKILL so long after it. Without this, a command may take
    /// as long as it likes, and has the lock meanwhile
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Command")]
    pub kill_after: Option<Duration>,

    /// Takes the lock again and runs the command again after a loss, after it gave way, and after a crash (a signal that
    /// nobody sent to end it): a service of which one copy is active
    #[arg(long, help_heading = "Command")]
    pub restart: bool,

    /// Does not run the command again within so long after its last start, wherever that was, such as 20h
    ///
    /// A lock alone keeps runs apart in time, but five hosts that wait for it at 2:00 run one after the other.
    /// This leaves a mark at PATH.last of who ran when and how it ended (see `zklock last`). A run counts once it was
    /// started, whatever became of it.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Command")]
    #[arg(conflicts_with_all = ["restart", "shared", "permits"])]
    pub once_per: Option<Duration>,

    /// Of earlier runs, only those that have ended with status 0 count
    #[arg(long, requires = "once_per", help_heading = "Command")]
    pub retry_failed: bool,

    /// Writes the fencing token to this file before the command is started
    #[arg(long, value_name = "FILE", help_heading = "Command")]
    pub token_file: Option<PathBuf>,

    /// Tells systemd READY=1 once the lock is held (Type=notify)
    #[arg(long, help_heading = "Command")]
    pub notify: bool,

    /// Makes the tokens of --store larger than this one, for all its clients. Give the largest token of the store that
    /// you used before. Not for ZooKeeper, whose tokens cannot be raised
    #[arg(long, value_name = "TOKEN", help_heading = "Servers")]
    pub tokens_above: Option<i64>,

    /// Says whom it waits for
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,

    /// Says only what went wrong
    #[arg(short, long)]
    pub quiet: bool,

    #[command(flatten)]
    pub servers: Servers,
}

/// Some of a number of permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permits {
    pub wanted: u32,
    pub of: u32,
}

impl RunOptions {
    /// The command with its arguments.
    pub fn argv(&self) -> Vec<OsString> {
        match &self.shell {
            Some(line) => vec!["/bin/sh".into(), "-c".into(), line.into()],
            None => self.command.clone(),
        }
    }

    pub fn no_wait(&self) -> bool {
        self.no_wait || self.wait == Some(Duration::ZERO)
    }
}

/// A time; a plain number is seconds, as in `flock` and `timeout`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string()),
        Err(_) => humantime::parse_duration(text).map_err(|error| error.to_string()),
    }
}

fn permits(text: &str) -> Result<Permits, String> {
    let read = || {
        let (wanted, of) = text.split_once('/')?;
        Some(Permits { wanted: wanted.parse().ok()?, of: of.parse().ok()? })
    };
    match read() {
        Some(permits) if 0 < permits.wanted && permits.wanted <= permits.of => Ok(permits),
        _ => Err("some of a number of permits, such as 1/4".to_owned()),
    }
}

/// The library checks the rest; here is what would otherwise be told of a path that the user never wrote.
pub fn lock_path(text: &str) -> Result<String, String> {
    match text {
        _ if !text.starts_with('/') => Err("a path starts with /, as in /locks/report".to_owned()),
        _ if text.ends_with('/') && text != "/" => {
            Err("a lock's path does not end with /".to_owned())
        }
        _ => Ok(text.to_owned()),
    }
}

const MORE: &str = "\
In the command's environment:
  ZKLOCK_TOKEN    the fencing token: grows with every acquire. A store that refuses smaller ones than it has
                  seen is safe from writes that arrive late
  ZKLOCK_PATH     the lock's path
  ZKLOCK_SESSION  the ZooKeeper session that holds it

Guarantees: the command never outlives the lock. A supervisor keeps the time, also while zklock is frozen.
  - Where no server proves in time that the lock is held, all that came of the command gets SIGTERM, and SIGKILL
    before the lock can pass to another; also what has put itself into a session of its own. Where zklock may make
    a control group (cgroup v2), the kernel kills all of it at once.
  - kill -9 of zklock ends the command (SIGTERM, SIGKILL after the grace), also where the supervisor was stopped.
    kill -9 of the supervisor kills it.
  - The lock is released when all of it is gone: what a command leaves behind in the background is ended.
  - Where /proc is of another pid namespace, nothing is started.

Limits: these may outlive the lock. What has to be safe even then checks the fencing token.
  - Processes that others start for the command: by systemd-run, at or docker.
  - A command that runs as another user, by sudo say, unless zklock runs as root.
  - What the command has started, where zklock and the supervisor are killed at once, or one is stopped and then the
    other killed, except as above. Under systemd, KillMode=mixed ends it.
  - A machine or container that stood still as a whole: its processes may go on for a moment before they are killed.

Signals: INT, TERM, HUP, QUIT, USR1, USR2 and WINCH to zklock go to the command's process group. On a terminal that
  is zklock's own, so keys reach both, and both ends of a pipe may read from it. TERM is followed by KILL only with
  --kill-after. Stopped by Ctrl-Z, the lock is not renewed: what does not go on soon is killed.

Exit status: that of the command. Where a signal ended it, zklock ends by the same (a shell shows 128+N), so that a
script stops at Ctrl-C. Otherwise
  1    the lock was not to be had in time (-E chooses another)
  124  the lock was lost, or somebody asked for it (`zklock ask`)
  125  zklock itself failed, or its arguments are wrong
  126  the command can't be run      127  there is no such command
  0    with --once-per also where it ran already

Examples:
  zklock run /locks/report -- make report
  zklock run --store sqlite:/var/lock/jobs.db /locks/report -- make report  on this machine alone, no servers
  zklock run --wait 10s /locks/deploy -- ./deploy.sh
  zklock run /locks/report -c 'make report | mail ops'
  zklock run --permits 1/4 /limits/transfers -- rsync ...                 four at a time, in the whole cluster
  zklock run --no-wait -E 0 /locks/sync -- rsync -a /srv/ backup:/srv/     skipped while another is at it
  zklock run --once-per 20h /locks/nightly -- ./nightly.sh                one of five hosts, nightly
  zklock run --restart /services/billing -- ./billing                    one active copy of a service";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_some_of_a_number() {
        assert_eq!(permits("3/10"), Ok(Permits { wanted: 3, of: 10 }));
        for bad in ["", "3", "0/4", "5/4", "1/x", "-1/4", "1/4/2"] {
            assert!(permits(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_plain_number_is_seconds() {
        assert_eq!(parse_duration("5"), Ok(Duration::from_secs(5)));
        assert_eq!(parse_duration("0.25"), parse_duration("250ms"));
        assert_eq!(parse_duration("0"), Ok(Duration::ZERO));
        for bad in ["", "-1", "5 parsecs", "inf", "NaN", "1e30"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_locks_path_is_absolute() {
        assert_eq!(lock_path("/a/b"), Ok("/a/b".to_owned()));
        assert!(lock_path("a").is_err() && lock_path("/a/").is_err() && lock_path("/").is_ok());
    }
}
